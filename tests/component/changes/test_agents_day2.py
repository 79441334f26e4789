"""The agents' pack on an embedded platform: what is refused before it is written, and day 2."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
import requests
from agentsite import TEAM, Provider, agents_platform, spend
from commands import Command, Done, in_process
from consolebrowser import Browser

from ground.names import RepoId
from ground.objects.kube_objects import Kind, ObjectKey, dig
from orderkit.cli.connecting import token
from orderkit.flows.repeating import until
from orderkit.ports.clock import SystemClock
from orderkit.ports.requesters import Requester
from orderkit_standins.serve_platform import Running
from yamlfiles.manifests import parse_manifests

AWKWARD = 'He said "no": it\'s fine\nline two \\n # : -\n${{ values.x }} {{ y }} \U0001f3ce\ufe0f'


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with agents_platform(tmp_path_factory.mktemp("agents")) as found:
        yield found


@pytest.fixture
def orderkit(site: Running, capsys: pytest.CaptureFixture[str]) -> Command:
    return in_process(site.embedded.state.folder / "platform.yaml", capsys)


def order(orderkit: Command, name: str, **more: Any) -> Done:
    values = {
        "agent_name": name,
        "dataset": {"name": "resource:default/houses"},
        "budget_usd": 5,
        "description": "Answers questions.",
        "owner": f"group:default/{TEAM}",
        **more,
    }
    told = [f"{k}={v if isinstance(v, str) else json.dumps(v)}" for k, v in values.items()]
    return orderkit("order", "datasetagent", *told, "--no-wait")


def spec_of(site: Running, order_id: str) -> dict[str, Any]:
    repo = RepoId(TEAM, order_id)
    found = site.platform.forge.read(repo, PurePosixPath("manifests/xdatasetagent.yaml"), "main")
    assert found is not None
    (xr,) = parse_manifests("xr", found.data)
    spec: dict[str, Any] = xr["spec"]
    return spec


@dataclass(frozen=True)
class Bad:
    reason: str
    values: dict[str, Any]
    told: str


BAD = [
    Bad("no such dataset", {"dataset": {"name": "hoses"}}, "did you mean 'houses'?"),
    Bad("a dataset not ready", {"dataset": {"name": "resource:default/empty"}}, "not ready"),
    Bad("budget 0", {"budget_usd": 0}, "less than the minimum of 1"),
    Bad("budget 10001", {"budget_usd": 10001}, "greater than the maximum of 10000"),
    Bad("budget 1e400", {"budget_usd": "1e400"}, "greater than the maximum"),
    Bad('budget "5.0"', {"budget_usd": '"5.0"'}, "is not a number"),
    Bad("an empty description", {"description": ""}, "description"),
    Bad("a name with a capital", {"agent_name": "Bot"}, "must have 3 to 24"),
]


@pytest.mark.parametrize("case", BAD, ids=lambda case: case.reason)
def test_what_cannot_be_is_refused_before_anything_is_written(
    site: Running, orderkit: Command, case: Bad
) -> None:
    done = order(orderkit, "bad-bot", **case.values)

    assert done.code == 2
    assert case.told in done.err
    assert site.platform.forge.repo(RepoId(TEAM, "datasetagent-bad-bot")) is None


def test_a_form_with_a_text_for_a_number_is_shown_again_and_orders_nothing(site: Running) -> None:
    lead = Requester("user:default/lead", "a one-time link", frozenset({f"group:default/{TEAM}"}))
    browser = Browser(site.settings.service.url)
    browser.sign_in(token(site.settings.service), lead)
    form = browser.get("/kits/datasetagent").form("/kits/datasetagent")

    shown = browser.submit(form, "order", **{"v.agent_name": "text-bot", "v.budget_usd": "much"})

    assert shown.status == 400
    assert "is not a number" in shown.page.text
    assert "v.budget_usd" in {name for name, _ in shown.form("/kits/datasetagent").fields}
    assert site.platform.forge.repo(RepoId(TEAM, "datasetagent-text-bot")) is None


def test_an_awkward_description_reaches_the_cluster_word_for_word(
    site: Running, orderkit: Command
) -> None:
    assert order(orderkit, "odd-bot", description=AWKWARD).code == 0

    found = spec_of(site, "datasetagent-odd-bot")

    assert found["description"] == AWKWARD
    assert found["datasetRef"] == {"name": "houses"}
    assert found["owner"] == TEAM
    key = ObjectKey(Kind("whisperops.io", "v1alpha1", "XDatasetAgent"), "odd-bot")
    seen = until(
        SystemClock(),
        lambda: site.platform.cluster.get(key),
        lambda xr: dig(xr, "spec", "description") == AWKWARD,
        timeout_s=180,
        goal="delivery",
    )
    assert dig(seen, "spec", "baseDomain") == "apps.example.org"


def test_a_dataset_is_swapped_for_one_that_is_there(site: Running, orderkit: Command) -> None:
    """Not for itself, not for none, not for one that is not ready; by name or by reference."""
    assert order(orderkit, "swap-bot").code == 0
    agent = "datasetagent-swap-bot"

    def swap(name: str) -> Done:
        return orderkit("change", agent, f"datasetRef.name={name}", "--no-wait")

    itself, itself_again = swap("houses"), swap("resource:default/houses")
    nowhere, empty = swap("song"), swap("empty")
    done = swap("resource:default/songs")

    assert (itself.code, itself_again.code) == (4, 4)
    assert "datasetRef.name is already houses" in itself.err
    assert nowhere.code == 2
    assert "did you mean 'songs'?" in nowhere.err
    assert empty.code == 2
    assert "not ready" in empty.err
    assert done.code == 0
    assert spec_of(site, agent)["datasetRef"] == {"name": "songs"}


def test_an_agent_changes_as_its_kit_allows(site: Running, orderkit: Command) -> None:
    assert order(orderkit, "day2-bot").code == 0
    agent = "datasetagent-day2-bot"

    changes = ["budget_usd=20", "budget_usd=2.5", "enforcement=monitor-only", "description=Other."]
    for change in changes:
        assert orderkit("change", agent, change, "--no-wait").code == 0
    bucket = orderkit("change", agent, "bucketOnEnd=delete", "--direct", "--no-wait")
    owner = orderkit("change", agent, "owner=other", "--no-wait")
    base = orderkit("change", agent, "baseDomain=evil.example.org", "--no-wait")

    found = spec_of(site, agent)
    assert (found["budgetUsd"], found["enforcement"]) == (2.5, "monitor-only")
    assert found["description"] == "Other."
    assert (bucket.code, owner.code, base.code) == (4, 4, 4)
    assert "must be reviewed" in bucket.err


def test_a_budget_stays_within_what_its_team_may_spend(site: Running, orderkit: Command) -> None:
    assert order(orderkit, "dear-bot", budget_usd=40).code == 0
    agent = "datasetagent-dear-bot"
    assert orderkit("team", "change", TEAM, "--limit", "datasetagent.budgetUsd=30").code == 0
    try:
        more = orderkit("change", agent, "budget_usd=50", "--no-wait")
        new = order(orderkit, "dearer-bot", budget_usd=31)
        less = orderkit("change", agent, "budget_usd=25", "--no-wait")
        up = orderkit("change", agent, "budget_usd=30", "--no-wait")
    finally:
        orderkit("team", "change", TEAM, "--no-limit", "datasetagent.budgetUsd")

    assert (more.code, new.code, less.code, up.code) == (4, 4, 0, 0)
    assert "above the limit of team ae86" in more.err
    assert spec_of(site, agent)["budgetUsd"] == 30


def test_a_budget_below_what_is_spent_is_refused_and_the_form_shows_it(
    site: Running, orderkit: Command, provider: Provider
) -> None:
    key = spend(site, "busy-bot", "7.25")
    values = ["agent_name=busy-bot", "budget_usd=9", f"owner=group:default/{TEAM}"]
    assert orderkit("order", "agentbudget", *values).code == 0
    assert dig(site.platform.cluster.get(key), "status", "spentUsd") == 7.25
    assert provider.is_alive()
    budget = "agentbudget-busy-bot"

    with requests.Session() as session:
        session.trust_env = False
        url = f"{site.settings.service.url}/v1/orders/{budget}/changes/budget/form"
        link = session.get(url, allow_redirects=False, timeout=60).headers["Location"]
    less, exactly = (
        orderkit("change", budget, f"budget_usd={amount}", "--no-wait") for amount in (7.2, 7.25)
    )

    (data,) = parse_qs(urlsplit(link).query)["formData"]
    assert json.loads(data)["at_least"] == "7.25"
    assert (less.code, exactly.code) == (4, 0), exactly.err
    assert "budgetUsd 9 → 7.2 is refused: it may not be less than 7.25" in less.err
    assert "that much is spent already" in less.err
    assert "set at least 7.25" in less.err


@pytest.fixture
def provider(site: Running) -> Iterator[Provider]:
    thread = Provider(site)
    thread.start()
    yield thread
    thread.stop()


def test_the_end_of_a_budget_first_hands_its_paused_agent_back(
    site: Running, orderkit: Command, provider: Provider
) -> None:
    key = spend(site, "free-bot", "7.00")
    team = f"group:default/{TEAM}"
    values = ["agent_name=free-bot", "budget_usd=5", f"owner={team}"]
    assert orderkit("order", "agentbudget", *values).code == 0
    paused = site.platform.cluster.get(key)
    assert dig(paused, "status", "paused") is True

    ended = orderkit("destroy", "--yes", "agentbudget-free-bot", "--timeout", "180")

    assert ended.code == 0, ended.err
    assert site.platform.cluster.get(key) is None
    for name in ("planner-replicas", "worker-replicas"):
        assert provider.seen[key.namespace, name] == [0, 1]
    commits = site.platform.forge.commits(RepoId(TEAM, "agentbudget-free-bot"), limit=10)
    told = [commit.message.splitlines()[0] for commit in commits]
    assert any("enforcement" in line for line in told), told


def test_an_end_that_cannot_hand_back_does_not_begin(site: Running, orderkit: Command) -> None:
    """Nobody plays the provider: the agent stays paused, and nothing is taken away."""
    key = spend(site, "held-bot", "7.00")
    values = ["agent_name=held-bot", "budget_usd=5", f"owner=group:default/{TEAM}"]
    assert orderkit("order", "agentbudget", *values, "--no-wait").code == 0
    until(
        SystemClock(),
        lambda: site.platform.cluster.get(key),
        lambda xr: dig(xr, "status", "paused") is True,
        timeout_s=180,
        goal="the pause",
    )

    done = orderkit("destroy", "--yes", "agentbudget-held-bot", "--timeout", "2")

    assert done.code == 5
    assert "the change before its end" in done.err
    assert site.platform.cluster.get(key) is not None
