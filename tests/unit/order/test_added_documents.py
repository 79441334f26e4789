"""Files of the ledger with more than an order in them, conflicts, and what approvals are kept."""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import Any

import pytest
from ownforge import OwnForge

from ground.names import CommitSha, OrderId, TeamName
from ground.objects.kube_objects import Manifest
from orderkit.core.order.added_documents import (
    FILES_MAX,
    INTACT,
    Delivered,
    LedgerFile,
    delivered_by_team,
    kept,
    removal_by_hand,
    suspects,
)
from orderkit.core.order.approval import KEPT_MAX, Agreement, approvals_file, parse_approvals
from orderkit.core.order.change.conflicts import FieldConflict, FieldConflictError
from orderkit.core.order.ledger import FORMAT_ANNOTATION, OrderEntry
from orderkit.core.order.ledger_applications import order_application
from orderkit.flows.order.order_report import edited_files
from orderkit.flows.platform import RepositorySnapshot
from yamlfiles import yaml11

AE86, RX7 = TeamName("ae86"), TeamName("rx7")
PATH = PurePosixPath("apps/ae86/a.yaml")


def entry(order: str, team: TeamName = AE86) -> OrderEntry:
    return OrderEntry(team, OrderId(order))


ENTERING = order_application(entry("in"), kit="k", forge_url="https://f", stage="entering")
LIVING = order_application(entry("a"), kit="k", forge_url="https://f")
POD: Manifest = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}}
FOREIGN: Manifest = {"apiVersion": "v1", "kind": "Application", "metadata": {"name": "x"}}


@pytest.mark.parametrize(
    ("added", "every", "deleted"),
    [
        ([], "", ""),
        ([LIVING], "", ""),
        ([POD], "Pod p", "Pod p"),
        ([LIVING, POD], "Application a, Pod p", "Pod p"),
        ([FOREIGN], "Application x", "Application x"),
        ([ENTERING], "Application in", "Application in"),
    ],
)
def test_a_person_removes_what_argo_cd_would_delete(
    added: list[Manifest], every: str, deleted: str
) -> None:
    told = (
        f"take {every} out of apps/ae86/a.yaml, then commit and push the ledger: Argo CD deletes"
        f" {deleted} with its content"
    )

    assert removal_by_hand(PATH, added) == (told if deleted else "")


def test_applications_that_argo_cd_keeps_are_named() -> None:
    options = {"argocd.argoproj.io/sync-options": "Prune=false"}
    stays = {**POD, "metadata": {"name": "s", "annotations": options}}

    assert kept([POD, stays]) == ["s"]


def team_application(labels: dict[str, str], **status: Any) -> Manifest:
    return {"metadata": {"name": "team-ae86", "labels": labels}, "status": status}


TEAM = {"orderkit.dev/team": "ae86"}


def test_an_application_of_a_team_tells_what_it_delivers_and_misses() -> None:
    found = delivered_by_team(
        team_application(
            TEAM,
            resources=[
                {"kind": "Application", "name": "a"},
                {"kind": "Application", "name": "b", "requiresPruning": True},
                {"kind": "Pod", "name": "p", "requiresPruning": True},
            ],
            conditions=[
                {"type": "ComparisonError", "message": "bad"},
                {"type": "SyncError", "message": "other"},
            ],
        )
    )

    assert found == Delivered(frozenset({("Application", "a")}), frozenset({"b"}), "bad")
    assert delivered_by_team(team_application(TEAM)) == Delivered(frozenset(), frozenset(), "")
    order = {**TEAM, "orderkit.dev/order": "a"}
    assert delivered_by_team(team_application(order)) is None
    assert delivered_by_team(team_application({})) is None


def delivered(*names: str, missed: tuple[str, ...] = (), faults: str = "") -> Delivered:
    objects = frozenset(tuple(name.split(" ", 1)) for name in names)
    return Delivered(objects, frozenset(missed), faults)  # type: ignore[arg-type]  # pairs


MANY = [entry(f"a{number:03}") for number in range(FILES_MAX + 1)]


@pytest.mark.parametrize(
    ("ae86", "living", "orders", "reason"),
    [
        (delivered("Application a"), [entry("a")], [], "its own order"),
        (delivered("Application w"), [entry("a")], [], "one that waits"),
        (delivered("Application x"), [entry("a"), entry("b")], ["a", "b"], "a stranger"),
        (delivered("Pod a"), [entry("a")], ["a"], "another kind of that name"),
        (delivered(missed=("b",)), [entry("a"), entry("b")], ["b"], "one is missing"),
        (delivered(faults='at "a.yaml": bad'), [entry("a"), entry("aa")], ["a"], "a bad file"),
        (delivered("Pod x", missed=("b",)), [entry("b"), entry("a")], ["b", "a"], "each once"),
        (delivered("Pod x"), [entry("a", RX7)], [], "another team's orders"),
        (delivered("Pod x"), MANY, [each.order for each in MANY[:FILES_MAX]], "not all of many"),
    ],
)
def test_orders_are_suspected_if_their_files_may_have_been_edited(
    ae86: Delivered, living: list[OrderEntry], orders: list[str], reason: str
) -> None:
    found = suspects({"team-ae86": ae86}, living, [entry("w")])

    assert [each.order for each in found] == orders, reason


def with_note(format_: str) -> Manifest:
    notes = {FORMAT_ANNOTATION: format_}
    return {**LIVING, "metadata": {**LIVING["metadata"], "annotations": notes}}


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (yaml11.dump(LIVING), INTACT),
        (yaml11.dump_all([LIVING, POD]), LedgerFile((POD,))),
        ("# nothing", LedgerFile((), f"{PATH} has no Application")),
        ("a: [", LedgerFile(fault=f"{PATH}: line 2")),
        (yaml11.dump(with_note("orderkit.dev/v99")), INTACT),  # 'status' refuses it
    ],
)
def test_an_orders_file_is_told_if_it_has_more_or_less_than_the_order(
    forge: OwnForge, text: str, found: LedgerFile
) -> None:
    ledger = forge.ledger
    commit = forge.repo(ledger, {str(PATH): text})
    files = RepositorySnapshot(commit, forge.client.tree(ledger, commit))

    told = edited_files(forge.platform(), files, [entry("a")]).get(entry("a"), INTACT)

    assert told.added == found.added
    assert told.fault.startswith(found.fault)
    assert bool(told.fault) == bool(found.fault)


@pytest.mark.parametrize(
    ("conflict", "told"),
    [
        (
            FieldConflict("size", 1, 2, 3),
            "size is 2 now (it was 1), requested was 3",
        ),
        (
            FieldConflict("size", 1, 2, 3, CommitSha("a" * 40), "ann", "user:default/eve"),
            "size is 2 now (it was 1, by user:default/eve in aaaaaaaa), requested was 3",
        ),
        (
            FieldConflict("size", 1, 2, 3, CommitSha("a" * 40), "ann"),
            "size is 2 now (it was 1, by ann in aaaaaaaa), requested was 3",
        ),
        (
            FieldConflict("size", 1, 2, 3, CommitSha("a" * 40)),
            "size is 2 now (it was 1, by somebody in aaaaaaaa), requested was 3",
        ),
    ],
)
def test_a_conflict_says_who_changed_the_field(conflict: FieldConflict, told: str) -> None:
    error = FieldConflictError(OrderId("a"), [conflict, conflict], CommitSha("b" * 40))

    assert str(conflict) == told
    assert str(error) == f"a: {told}; {told}; nothing was written"
    assert error.hint.endswith("--base bbbbbbbb")
    assert error.form_hint.endswith("with base bbbbbbbb")
    assert error.conflicts == (conflict, conflict)


@pytest.mark.parametrize("more", [0, 1])
def test_the_newest_agreements_are_kept(more: int) -> None:
    given = [
        Agreement(f"o/{n}", n, CommitSha("a" * 40), "by", "login", n, "proof", "when")
        for n in range(KEPT_MAX + more)
    ]

    found = parse_approvals(approvals_file(OrderId("a"), given), name="f")

    assert len(found) == KEPT_MAX
    assert found[-1] == given[-1]
    assert found[0] == given[more]
