"""What Application, XR and commit show of an order that somebody changed past Orderkit."""

from __future__ import annotations

from pathlib import PurePath
from typing import Any

import pytest

from ground.names import CommitSha, OrderId, TeamName
from ground.objects.kube_objects import Manifest
from kubeschema.validate.findings import Finding, FindingSeverity, Located, Reason
from orderkit.core.order.damage import (
    CommitCheck,
    Damage,
    DamageKind,
    delivered_commits,
    in_cluster,
    in_entry,
    labelled_entry,
    source_order,
    state_with,
    weight,
    with_faults,
)
from orderkit.core.order.ledger import OrderEntry
from orderkit.core.order.ledger_applications import order_application
from orderkit.core.order.order_state import OrderState, Phase

HEAD, OLD = CommitSha("a" * 40), CommitSha("b" * 40)
FORGE = "https://git.example.org"
ENTRY = OrderEntry(TeamName("ae86"), OrderId("garage-x"))
ERROR = FindingSeverity.ERROR


def located(
    reason: Reason = Reason.REQUIRED, severity: FindingSeverity = ERROR, hint: str = ""
) -> Located:
    about = Finding("spec.size", reason, "Required value", hint=hint, severity=severity)
    return Located(PurePath("manifests/x.yaml"), 7, 3, "XGarage x", about)


FAULT, HOOK = located(hint="give it a size"), located(Reason.HOOK, hint="take it out")
NOTE = located(severity=FindingSeverity.WARNING)


@pytest.mark.parametrize(
    ("findings", "state", "summary"),
    [
        ((), "success", "valid"),
        ((NOTE,), "warning", "manifests/x.yaml:7: spec.size: Required value"),
        ((FAULT, NOTE), "failure", "manifests/x.yaml:7: spec.size: Required value (and 1 more)"),
    ],
)
def test_a_commit_is_told_by_its_first_finding(
    findings: tuple[Located, ...], state: str, summary: str
) -> None:
    check = CommitCheck(HEAD, findings)

    assert (check.state, check.summary) == (state, summary)
    assert [entry.line for entry in check.answers] == [7] * len(findings)


def test_errors_come_first_and_hooks_before_other_errors() -> None:
    assert sorted([NOTE, FAULT, HOOK], key=weight) == [HOOK, FAULT, NOTE]
    assert CommitCheck(HEAD, (HOOK, FAULT, NOTE)).errors == (HOOK, FAULT)
    assert CommitCheck(HEAD, (HOOK, FAULT, NOTE)).hooks == (HOOK,)


TOLD = "manifests/x.yaml:7: spec.size: Required value"


@pytest.mark.parametrize(
    ("phase", "findings", "revision", "expected"),
    [
        ("Ready", (FAULT,), HEAD, ("Attention", TOLD, "give it a size; commit and push")),
        ("Ready", (NOTE,), HEAD, ("Ready", "as it was", "")),
        ("Ready", (HOOK,), HEAD, ("Failing", TOLD, "take it out")),
        ("Attention", (FAULT,), HEAD, ("Attention", "as it was", "")),
        ("Delivering", (FAULT,), HEAD, ("Failing", TOLD, "give it a size; commit and push")),
        ("Delivering", (FAULT,), OLD, ("Delivering", TOLD, "give it a size; commit and push")),
        ("Assembling", (FAULT,), HEAD, ("Assembling", TOLD, "give it a size; commit and push")),
        ("Waiting", (HOOK,), HEAD, ("Waiting", "as it was", "")),
        ("Ending", (FAULT,), HEAD, ("Ending", "as it was", "")),
        ("Ended", (FAULT,), HEAD, ("Ended", "as it was", "")),
    ],
)
def test_faults_of_the_commit_change_what_is_said_of_an_order(
    phase: Phase, findings: tuple[Located, ...], revision: str, expected: tuple[str, str, str]
) -> None:
    state = OrderState(phase, "as it was", HEAD, revision)

    found = with_faults(state, CommitCheck(HEAD, findings))

    assert (found.phase, found.reason, found.advice) == expected
    assert with_faults(state, None) is state


def test_a_remedy_that_says_to_push_says_it_once() -> None:
    pushed = located(hint="give it a size; commit and push")

    found = with_faults(OrderState("Ready", ""), CommitCheck(HEAD, (pushed,)))

    assert found.advice == "give it a size; commit and push"


BLOCKING = Damage(DamageKind.PROTECTED, "main is protected", "unprotect it")
CAUSE = Damage(DamageKind.MOVED, "it was moved")
REMARK = Damage(DamageKind.REWRITTEN, "main was rewritten", "look at it")


@pytest.mark.parametrize(
    ("phase", "damages", "expected"),
    [
        ("Ready", [], ("Ready", "own", "own advice")),
        ("Ready", [REMARK], ("Ready", "own; main was rewritten", "own advice")),
        ("Ready", [BLOCKING], ("Failing", "main is protected", "unprotect it")),
        ("Failing", [BLOCKING], ("Failing", "main is protected; own", "unprotect it")),
        ("Failing", [CAUSE], ("Failing", "it was moved", "orderkit repair x")),
        (
            "Failing",
            [REMARK, BLOCKING],
            ("Failing", "main was rewritten; main is protected; own", "unprotect it"),
        ),
    ],
)
def test_damages_come_before_what_the_state_says(
    phase: Phase, damages: list[Damage], expected: tuple[str, str, str]
) -> None:
    found = state_with(OrderState(phase, "own", advice="own advice"), "x", damages)

    assert (found.phase, found.reason, found.advice) == expected


def test_a_remark_gives_its_remedy_if_nothing_better_is_known() -> None:
    assert state_with(OrderState("Ready", ""), "x", [REMARK]).advice == "look at it"


def application(state: dict[str, Any] | None = None, **status: Any) -> Manifest:
    made = order_application(ENTRY, kit="garage", forge_url=FORGE)
    sync = {"status": "Synced", "revision": HEAD}
    return {**made, "status": {"sync": sync, "operationState": state or {}, **status}}


def running(revision: str, **state: Any) -> dict[str, Any]:
    return {"phase": "Running", "operation": {"sync": {"revision": revision}}, **state}


RETRYING = {"retryCount": 2, "message": "boom"}
STUCK = application(running(OLD, **RETRYING))
PINNED = application(running(HEAD, **RETRYING))
PINNED["spec"]["source"]["targetRevision"] = HEAD


@pytest.mark.parametrize(
    ("found", "head", "kinds", "reason"),
    [
        (None, HEAD, [], "nothing is in the cluster"),
        (application(), HEAD, [], "it is delivered"),
        (STUCK, HEAD, [DamageKind.STUCK], "an older commit is retried"),
        (STUCK, OLD, [], "the commit that shall be there is retried"),
        (STUCK, None, [], "no commit is known"),
        (PINNED, OLD, [], "the Application names the commit that is retried"),
        (application(running(OLD)), HEAD, [], "an older commit is being applied"),
        (
            application({"phase": "Failed", "syncResult": {"revision": OLD}}),
            HEAD,
            [],
            "a newer commit took back what failed",
        ),
        (
            application(
                {"phase": "Error", "syncResult": {"revision": HEAD}},
                sync={"status": "OutOfSync", "revision": HEAD},
            ),
            HEAD,
            [DamageKind.STUCK],
            "Argo CD gave up",
        ),
    ],
)
def test_an_operation_that_keeps_a_commit_out_is_stuck(
    found: Manifest | None, head: CommitSha | None, kinds: list[DamageKind], reason: str
) -> None:
    assert [damage.kind for damage in in_cluster(found, None, head)] == kinds, reason


@pytest.mark.parametrize(
    ("born", "history", "is_told"),
    [
        ("2026-11-20T10:00:04Z", [("2026-11-20T10:00:00Z", HEAD)], True),
        ("2026-11-20T10:00:03Z", [("2026-11-20T10:00:00Z", HEAD)], False),
        (
            "2026-11-20T12:00:00Z",
            [("2026-11-20T10:00:00Z", HEAD), ("2026-11-20T11:00:00Z", OLD)],
            False,
        ),
        (
            "2026-11-20T12:00:00Z",
            [("2026-11-20T10:00:00Z", OLD), ("2026-11-20T11:00:00Z", HEAD)],
            True,
        ),
        (
            "2026-11-20T10:30:00Z",
            [("2026-11-20T10:00:00Z", OLD), ("2026-11-20T11:00:00Z", HEAD)],
            False,
        ),
        ("2026-11-20T12:00:00Z", [], False),
        (None, [("2026-11-20T10:00:00Z", HEAD)], False),
    ],
)
def test_an_xr_younger_than_the_delivery_of_its_commit_was_deleted(
    born: str | None, history: list[tuple[str, str]], *, is_told: bool
) -> None:
    entries = [{"deployedAt": at, "revision": revision} for at, revision in history]
    xr = {"metadata": {"creationTimestamp": born} if born else {}}

    found = [*in_cluster(application(history=entries), xr, HEAD)]

    assert [damage.kind for damage in found] == [DamageKind.RECREATED] * is_told
    assert delivered_commits(application(history=entries)) == [entry[1] for entry in history]


def test_an_application_without_a_history_delivered_nothing() -> None:
    assert delivered_commits(None) == []
    assert delivered_commits(application(history=[{"id": 1}])) == []


def test_finalizers_from_git_are_told_and_those_of_controllers_are_not() -> None:
    fields: dict[str, Any] = {
        "f:metadata": {"f:finalizers": {".": {}, 'v:"b.io/x"': {}, 'v:"a.io/x"': {}}}
    }
    managed = [
        {"manager": "argocd-controller", "fieldsV1": fields},
        {"manager": "crossplane", "fieldsV1": {"f:metadata": {"f:finalizers": {'v:"c/x"': {}}}}},
        {"manager": "argocd-controller", "fieldsV1": {"f:spec": {}}},
    ]

    (damage,) = in_cluster(application(), {"metadata": {"managedFields": managed}}, HEAD)

    assert damage.kind is DamageKind.FINALIZER
    assert damage.what.startswith("Git gives its XR the finalizer a.io/x, b.io/x: ")
    assert damage.is_remark


@pytest.mark.parametrize(
    ("steps", "value", "told"),
    [
        (
            ("project",),
            "other",
            "spec.project is 'other', not ae86 (the order left its team's AppProject)",
        ),
        (("source", "path"), None, "spec.source.path is missing, not manifests"),
        (("source", "targetRevision"), "dev", "spec.source.targetRevision is 'dev', not main"),
        (("source", "helm"), {"a": 1}, "spec.source.helm is {'a': 1}, not absent"),
        (("sources",), [], "spec.sources is [], not absent"),
        (("source", "targetRevision"), HEAD, ""),
    ],
)
def test_each_edited_field_is_told_with_what_it_should_be(
    steps: tuple[str, ...], value: Any, told: str
) -> None:
    edited = order_application(ENTRY, kit="garage", forge_url=FORGE)
    *parents, last = steps
    target = edited["spec"]
    for step in parents:
        target = target[step]
    if value is None:
        del target[last]
    else:
        target[last] = value

    found = [damage.what for damage in in_entry(ENTRY, edited, FORGE)]

    assert found == ([f"apps/ae86/garage-x.yaml was edited: {told}"] if told else [])


def test_nothing_is_told_of_an_application_that_the_api_server_refuses() -> None:
    edited = order_application(ENTRY, kit="garage", forge_url=FORGE)
    del edited["spec"]

    assert not list(in_entry(ENTRY, edited, FORGE))


@pytest.mark.parametrize(
    ("labels", "entry"),
    [
        ({"orderkit.dev/team": "ae86", "orderkit.dev/order": "garage-x"}, ENTRY),
        ({"orderkit.dev/team": "ae86"}, None),
        ({"orderkit.dev/order": "garage-x"}, None),
        ({}, None),
    ],
)
def test_labels_name_an_order_by_team_and_id(
    labels: dict[str, str], entry: OrderEntry | None
) -> None:
    assert labelled_entry({"metadata": {"labels": labels}}) == entry
    assert labelled_entry(None) is None


@pytest.mark.parametrize("url", ["", FORGE, f"{FORGE}/ae86", f"{FORGE}/ae86/"])
def test_an_address_that_is_no_repository_is_no_order(url: str) -> None:
    assert source_order({"spec": {"source": {"repoURL": url}}}, FORGE) is None
