"""What people see of an order: its row, from the cluster's objects and the kit's declarations."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

import pytest

from ground.names import OrderId, TeamName
from ground.objects.kube_objects import Kind, ObjectKey
from ground.secrets import MASK
from orderkit.core.kit.model import Kit
from orderkit.core.kit.pack import kit_of
from orderkit.core.order.ledger import OrderEntry
from orderkit.core.order.ledger_applications import order_application
from orderkit.core.order.order_state import REMEDIES, SENTENCES, Phase
from orderkit.core.order.order_summary import (
    REASON_MAX,
    VALUE_MAX,
    is_web_address,
    state_of,
    summarize,
)
from orderkit.core.order.order_view import OrderRow, OrderSources, PartState
from orderkit.core.secret_values import SecretTexts
from orderkit.flows.order.order_objects import without_secret_outputs

COMMIT = "a" * 40
ENTRY = OrderEntry(TeamName("ae86"), OrderId("agent-bot"))
STATUS = {
    "url": {"type": "string"},
    "paused": {"type": "boolean"},
    "spent": {"type": "number"},
    "bytes": {"type": "integer"},
    "password": {"type": "string"},
    "numbers": {"type": "array", "items": {"type": "integer"}},
}
SPEC: dict[str, Any] = {
    "outputs": [
        {"name": "chat", "title": "Chat", "path": "url", "link": True},
        {"name": "password", "path": "password", "secret": True},
        {"name": "token", "secret": {"name": "{metadata.name}-token", "key": "token"}},
    ],
    "facts": [
        {"name": "spent", "path": "spent", "format": "number", "unit": "USD"},
        {"name": "disk", "path": "bytes", "format": "bytes"},
    ],
    "changes": [{"name": "budget", "title": "Change the budget", "fields": ["budget"]}],
    "attention": [
        {
            "when": "status.paused",
            "sentence": "It is paused at {status.spent} of {spec.budget}.",
            "change": "budget",
        }
    ],
}


def kit(**spec: Any) -> Kit:
    schema = {
        "type": "object",
        "properties": {
            "spec": {"type": "object", "properties": {"budget": {"type": "integer"}}},
            "status": {"type": "object", "properties": STATUS},
        },
    }
    version = {"name": "v1", "referenceable": True, "schema": {"openAPIV3Schema": schema}}
    names = {"kind": "XAgent", "plural": "xagents"}
    xrd = {"spec": {"group": "example.org", "names": names, "versions": [version]}}
    return kit_of("agent", {**SPEC, **spec}, xrd)


def application(**status: Any) -> dict[str, Any]:
    delivered = {
        "sync": {"status": "Synced", "revision": COMMIT},
        "operationState": {"phase": "Succeeded", "syncResult": {"revision": COMMIT}},
        "resources": [{"kind": "XAgent", "name": "agent-bot", "status": "Synced"}],
    }
    return {
        "metadata": {
            "name": "agent-bot",
            "labels": {"orderkit.dev/kit": "agent"},
            "creationTimestamp": "2026-11-02T10:00:00Z",
        },
        "spec": order_application(ENTRY, kit="agent", forge_url="https://forge.example")["spec"],
        "status": {**delivered, **status},
    }


def xr(ready: str = "True", **status: Any) -> dict[str, Any]:
    conditions = [
        {"type": "Synced", "status": "True", "lastTransitionTime": "2026-11-02T10:01:00Z"},
        {"type": "Ready", "status": ready, "lastTransitionTime": "2026-11-02T10:05:00Z"},
    ]
    return {
        "apiVersion": "example.org/v1",
        "kind": "XAgent",
        "metadata": {"name": "agent-bot", "creationTimestamp": "2026-11-02T09:59:00Z"},
        "spec": {"budget": 5},
        "status": {"conditions": conditions, **status},
    }


@pytest.mark.parametrize(
    ("edited", "says"),
    [
        ({"project": "default"}, "spec.project is 'default', not ae86"),
        ({"project": None}, "spec.project is missing, not ae86"),
        ({"sources": [{}]}, "spec.sources is [{}], not absent"),
        ({"sourceHydrator": {}}, "spec.sourceHydrator is {}, not absent"),
    ],
)
def test_an_entry_that_somebody_edited_fails_in_lists(edited: dict[str, Any], says: str) -> None:
    found = application()
    found["spec"] = {**found["spec"], **edited}

    state = state_of(OrderSources(ENTRY, ending=False, application=found, xr=xr()))

    assert (state.phase, state.advice) == ("Failing", "orderkit repair agent-bot")
    assert f"apps/ae86/agent-bot.yaml was edited: {says}" in state.reason


def test_a_pinned_commit_and_another_address_of_the_forge_are_no_edits() -> None:
    found = application()
    url = "http://gitea.local/ae86/agent-bot.git"
    found["spec"]["source"] |= {"targetRevision": "a" * 40, "repoURL": url}

    assert state_of(OrderSources(ENTRY, ending=False, application=found, xr=xr())).ready


def row(live: dict[str, Any] | None = None, **more: Any) -> OrderRow:
    sources = OrderSources(
        ENTRY, ending=False, application=application(), xr=xr() if live is None else live
    )
    parts = more.pop("parts", ())
    return summarize(replace(sources, parts=parts), more.pop("kit", kit()), **more)


def part(name: str, ready: str = "True", synced: str = "-", reason: str = "") -> PartState:
    return PartState(ObjectKey(Kind("", "v1", "ConfigMap"), name), synced, ready, reason)


def test_a_ready_order_has_its_values_and_times() -> None:
    shown = row(xr(url="https://bot.example/", spent=1.239, bytes=3 * 2**20))

    assert (shown.phase, shown.kit, shown.team) == ("Ready", "agent", "ae86")
    assert (shown.since, shown.created) == ("2026-11-02T10:05:00Z", "2026-11-02T09:59:00Z")
    assert (shown.revision, shown.delivered) == (COMMIT, COMMIT)
    assert shown.repository == "https://forge.example/ae86/agent-bot"
    chat = shown.outputs[0]
    assert (chat.title, chat.value, chat.is_link) == ("Chat", "https://bot.example/", True)
    assert [fact.value for fact in shown.facts] == ["1.24 USD", "3 MiB"]
    assert shown.attention == ()


def test_what_is_not_known_yet_has_no_value() -> None:
    shown = row(xr(ready="False"))

    assert shown.phase == "Assembling"
    assert {output.value for output in shown.outputs} == {None}
    assert {fact.value for fact in shown.facts} == {None}
    assert row(None, kit=None).outputs == ()


def test_secret_outputs_are_masked_in_an_object_that_is_shown() -> None:
    live = xr(password="hunter2-hunter2", url="https://bot.example/")

    shown = without_secret_outputs(live, kit())

    assert shown["status"]["password"] == MASK
    assert shown["status"]["url"] == "https://bot.example/"
    assert live["status"]["password"] == "hunter2-hunter2", "what is shown is a copy"
    assert without_secret_outputs({"status": "gone"}, kit()) == {"status": "gone"}


def test_secrets_have_no_value_in_rows() -> None:
    shown = row(xr(password="hunter2-hunter2"))

    assert [(o.name, o.value) for o in shown.outputs if o.is_secret] == [
        ("password", None),
        ("token", None),
    ]
    assert "hunter2" not in str(shown.to_json())


def test_a_ready_order_whose_condition_holds_asks_for_attention() -> None:
    shown = row(xr(paused=True, spent=5.25))

    assert shown.phase == "Attention"
    assert shown.reason == "It is paused at 5.25 of 5."
    assert shown.remedy == "Change the budget: change 'budget'"
    (attention,) = shown.attention
    assert (attention.change, attention.button) == ("budget", "Change the budget")


def test_an_order_that_is_not_ready_has_other_problems_first() -> None:
    assert row(xr(ready="False", paused=True)).phase == "Assembling"


def test_an_order_that_crossplane_leaves_alone_asks_for_attention() -> None:
    paused = xr()
    paused["metadata"]["annotations"] = {"crossplane.io/paused": "true"}

    shown = row(paused)

    assert (shown.phase, shown.since) == ("Attention", "2026-11-02T10:01:00Z")
    assert "is paused (annotation crossplane.io/paused)" in shown.attention[0].sentence
    assert "remove the annotation" in shown.remedy


@pytest.mark.parametrize(
    ("when", "says"),
    [
        ("10 / spec.budget > 1", ""),
        ("10 / (spec.budget - 5) > 1", "divide by zero"),
        ("status.numbers.exists(a, status.numbers.exists(b, a + b < 0))", "10000 rounds"),
        ("status.(", "Syntax error"),
        ("status.missing", ""),
    ],
)
def test_a_condition_that_cannot_be_evaluated_is_a_fact(when: str, says: str) -> None:
    declared = kit(attention=[{"when": when, "sentence": "look"}], facts=[])

    shown = row(xr(numbers=list(range(1_000))), kit=declared)

    texts = [str(fact.value) for fact in shown.facts]
    assert [says in text and "cannot be evaluated" in text for text in texts] == [True] * bool(says)
    assert shown.phase == ("Attention" if when.startswith("10 / spec") else "Ready")


def test_a_value_of_another_type_than_the_schema_says_is_no_exception() -> None:
    shown = row(xr(paused="yes", spent="a lot", bytes={"a": [1]}, url=["x"]))

    assert [fact.value for fact in shown.facts[:2]] == ["a lot USD", '{"a": [1]}']
    assert "a value does not fit the schema" in str(shown.facts[2].value)
    assert (shown.outputs[0].value, shown.outputs[0].is_link) == ('["x"]', False)


@pytest.mark.parametrize(
    "address",
    [
        "javascript:alert(1)",
        "data:text/html,x",
        "https://",
        "https://bank.example@evil.example/",
        "https://evil.example/ x",
        "//evil.example",
        "https://e\u202evil.example/",
        "http://[::1",
        "https://e.example/" + "a" * VALUE_MAX,
    ],
)
def test_only_web_addresses_are_links(address: str) -> None:
    assert not is_web_address(address)
    assert not row(xr(url=address)).outputs[0].is_link


def test_hostile_values_are_bounded_and_visible() -> None:
    hostile = "\x1b[2J\u202e<script>" + "x" * 10_000_000
    live = xr(ready="False", url=hostile)
    live["status"]["conditions"][1]["message"] = hostile

    shown = row(live, parts=(part("a", "False", reason=hostile),))

    texts = [str(shown.outputs[0].value), shown.reason]
    texts.append(shown.parts.failing.reason if shown.parts.failing else "")
    for text in texts:
        assert text.startswith("\\u001b[2J\\u202e<script>")
        assert len(text) <= REASON_MAX + 20


def test_values_of_secrets_are_masked_everywhere() -> None:
    secret = "correct-horse-battery"
    live = xr(url=f"https://{secret}.example/", paused=True, spent=secret)
    declared = kit(attention=[{"when": "true", "sentence": "{status.url}"}])

    shown = row(
        live,
        kit=declared,
        secrets=SecretTexts([secret]),
        parts=(part("a", "False", reason=f"login with {secret} failed"),),
    )

    assert secret not in str(shown)


def test_parts_are_counted_and_the_one_to_blame_is_named() -> None:
    parts = (
        part("nested", "False", "True", "Unready resources: pod"),
        part("pod", "False", "-", "image not found"),
        part("config", "-"),
        part("bucket", "False", "False", "denied"),
    )

    shown = row(parts=parts).parts

    assert (shown.ready, shown.total) == (1, 4)
    assert shown.failing is not None
    assert shown.failing.key.name == "bucket"
    first = row(parts=parts[:3]).parts.failing
    assert first is not None
    assert first.key.name == "pod"


def test_every_bad_phase_has_a_remedy() -> None:
    failing = xr()
    failing["status"]["conditions"][0]["status"] = "False"
    ended = OrderSources(ENTRY, ending=True, application=application(), xr=xr())

    assert row(failing).remedy == "see which part fails and why: orderkit trace agent-bot"
    assert "orderkit destroy" in summarize(ended, kit()).remedy


def test_the_table_of_phases_in_the_docs_is_the_programs() -> None:
    page = Path("docs/exit-codes.md").read_text()
    rows = re.findall(r"^\| `(\w+)` \| ([^|]+) \| ([^|]*?) ?\|$", page, re.MULTILINE)
    phases = {phase: (meaning, remedy.replace("`", "")) for phase, meaning, remedy in rows}

    assert list(SENTENCES) == list(get_args(Phase))
    for phase, sentence in SENTENCES.items():
        assert phases[phase] == (sentence, REMEDIES.get(phase, ""))
