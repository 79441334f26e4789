"""What was done to an order's repository on the forge, and what still helps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import PurePosixPath
from typing import Any

import pytest
from bareplatform import platform_of

from ground.errors import MovedError, NotFoundError, RefusedError
from ground.names import BlobSha, CommitSha, OrderId, RepoId, TeamName, blob_sha
from ground.shapes import changed
from orderkit.core.documents import write_document
from orderkit.core.order.damage import DamageKind
from orderkit.core.order.ledger import OrderEntry
from orderkit.core.order.order_file import PATH, OrderFile
from orderkit.core.order.order_state import OrderState
from orderkit.core.order.order_view import OrderSources
from orderkit.flows.order.order_report import OrderReport
from orderkit.flows.order.repository_damage import good_record, on_forge, restoring_branch
from orderkit.ports.access import Repository
from orderkit.ports.forge import Commit, FileRevision

ENTRY = OrderEntry(TeamName("ae86"), OrderId("garage-a"))
REPO = ENTRY.repository
RECORD = OrderFile(ENTRY.order, "garage", ENTRY.team, "user:default/eve", {"stage": "s1"})
OTHER = OrderFile(OrderId("garage-b"), "garage", ENTRY.team, "user:default/eve", {"stage": "s1"})
S2 = {"stage": "s2"}
CLAIM = "<x@example.com> (as the commit claims: it is not signed)"
URL = "https://forge.example.com/ae86/garage-a.git"
WHOLE = Repository(REPO, "main", False, False, False, "", "", URL)  # noqa: FBT003 - as it stands


def sha(name: str) -> CommitSha:
    """Return the commit of a letter; later letters have all before them."""
    return CommitSha(name * 40)


@dataclass
class Damaged:
    """A forge with one repository: commits of letters, each with its record."""

    repository: Repository | Exception | None = WHOLE
    main: str = "b"
    records: Mapping[str, OrderFile | str | None] = field(default_factory=lambda: {"a": RECORD})
    """By commit that wrote it; None: it was removed there."""
    rule: str = ""
    names: tuple[str, ...] = ()
    gone: str = ""
    """Commits that the forge has no more."""
    unrelated: str = ""
    """Commits of another history."""
    compares_all: bool = True
    """Whether commits of two histories are compared, as Gitea does."""
    trees: Mapping[str, str] = field(default_factory=dict)
    restored: str = ""
    """The state of the pull request that brings a lost commit back."""
    base_url: str = "https://forge.example.com"

    def repo(self, _repo: RepoId) -> Repository | None:
        if isinstance(self.repository, Exception):
            raise self.repository
        return self.repository

    def head(self, repo: RepoId) -> CommitSha | None:
        return sha(self.main) if self.main and repo == REPO else None

    def blocking_rule(self, _repo: RepoId, branch: str) -> str:
        if self.rule == "hidden":
            raise RefusedError("the commit cannot be shown", hint="push another one")
        return self.rule if branch == "main" else ""

    def names_like(self, _repo: RepoId, _branch: str) -> tuple[str, ...]:
        return self.names

    def read(self, repo: RepoId, path: PurePosixPath, ref: str) -> FileRevision | None:
        written = [at for at in sorted(self.records) if at <= ref[0]]
        record = self.records[written[-1]] if written and (repo, path) == (REPO, PATH) else None
        if record is None:
            return None
        data = (
            record if isinstance(record, str) else write_document("Order", record, named="order")
        ).encode()
        return FileRevision(path, data, blob_sha(data))

    def commits(
        self, _repo: RepoId, *, path: PurePosixPath | None = None, ref: str = "", limit: int = 50
    ) -> Sequence[Commit]:
        until = ref[:1] or self.main
        letters = list(self.records) if path else "abcdefgh"
        found = [at for at in letters if at <= until and at not in self.unrelated + self.gone]
        commits = [
            Commit(sha(at), f"change {at}", (), f"{at} <x@example.com>", "2026-11-24")
            for at in found
        ]
        return commits[::-1][:limit]

    def compare(self, _repo: RepoId, base: str, head: str) -> Sequence[str]:
        one, other = base[0], head[0]
        if {one, other} & set(self.gone):
            raise NotFoundError("no such commit")
        if (one in self.unrelated) != (other in self.unrelated):
            if not self.compares_all:
                raise NotFoundError("nothing to compare")
            return ()
        return [at for at in "abcdefgh" if one < at <= other]

    def tree(self, _repo: RepoId, commit: str) -> Mapping[PurePosixPath, BlobSha]:
        return {PurePosixPath("x"): BlobSha(self.trees.get(commit[0], commit))}

    def pulls(self, _repo: RepoId, *, state: str, head: str) -> Sequence[Any]:
        @dataclass
        class Pull:
            state: str

        is_asked = state == "all" and head == restoring_branch(sha("c"))
        return [Pull(self.restored)] if self.restored and is_asked else []


def damage(forge: Damaged, *, delivered: str = "", head: str = "") -> Any:
    history = [{"revision": sha(at)} for at in delivered]
    application = {"status": {"history": history}}
    state = OrderState("Ready", "", head=sha(head) if head else None)
    sources = OrderSources(ENTRY, ending=False, application=application, xr=None)
    report = OrderReport(sources, "garage", state, forge.base_url, None)
    return list(on_forge(platform_of(None, forge=forge), ENTRY, report))


@dataclass(frozen=True)
class Case:
    reason: str
    forge: Damaged
    says: tuple[tuple[DamageKind, str], ...] = ()
    place: str = ""
    remedy: str = ""
    delivered: str = "a"


def moved(place: str) -> Damaged:
    return Damaged(MovedError("it has another name", place=place))


CASES = [
    Case("nothing was done", Damaged()),
    Case(
        "it was renamed",
        moved("ae86/garage-z"),
        ((DamageKind.MOVED, "was renamed to ae86/garage-z"),),
        "garage-z",
    ),
    Case(
        "it was transferred",
        moved("mallory/garage-a"),
        ((DamageKind.MOVED, "was transferred to mallory/garage-a"),),
        remedy="transfer it back to ae86",
    ),
    Case(
        "it is somewhere",
        moved(""),
        ((DamageKind.MOVED, "was transferred to another address"),),
        remedy="transfer it back to ae86",
    ),
    Case("it is gone", Damaged(None), ((DamageKind.DELETED, "does not exist any more"),)),
    Case(
        "it is archived",
        Damaged(replace(WHOLE, archived=True)),
        ((DamageKind.ARCHIVED, "is archived: nobody can change it"),),
    ),
    Case(
        "another branch is the default",
        Damaged(replace(WHOLE, default_branch="develop")),
        ((DamageKind.DEFAULT_BRANCH, "is 'develop', not main"),),
        "develop",
    ),
    Case(
        "main is gone, and what was delivered is there",
        Damaged(replace(WHOLE, default_branch="develop"), main="", gone="c"),
        (
            (DamageKind.NO_MAIN, "no branch main any more; bbbbbbbb was delivered last"),
            (DamageKind.DEFAULT_BRANCH, "is 'develop'"),
        ),
        sha("b"),
        delivered="abc",
    ),
    Case(
        "main is gone with its commits",
        Damaged(replace(WHOLE, default_branch="develop"), main="", gone="abc"),
        ((DamageKind.NO_MAIN, "has no branch main any more"),),
        remedy="push main again",
        delivered="abc",
    ),
    Case(
        "a rule blocks our account",
        Damaged(rule="mine"),
        ((DamageKind.PROTECTED, "by the rule 'mine'"),),
        remedy="remove that rule on the forge",
    ),
    Case(
        "names that look like main",
        Damaged(names=("refs/tags/main", "refs/heads/a b")),
        ((DamageKind.MISLEADING, "has 'refs/tags/main' and 'refs/heads/a b', which"),),
        remedy=f"git push {URL} :refs/tags/main ':refs/heads/a b'",
    ),
    Case(
        "a commit that the forge cannot show",
        Damaged(rule="hidden"),
        ((DamageKind.HIDDEN, "the commit cannot be shown"),),
        remedy="push another one",
    ),
    Case(
        "the record is gone",
        Damaged(records={"a": RECORD, "b": None}),
        ((DamageKind.RECORD, f"order.yaml is gone (in bbbbbbbb by b {CLAIM} at 2026-11-24)"),),
    ),
    Case(
        "there never was a record",
        Damaged(records={}),
        ((DamageKind.RECORD, f"{REPO}/{PATH} is gone"),),
    ),
    Case(
        "the record cannot be read",
        Damaged(records={"a": RECORD, "b": "{"}),
        ((DamageKind.RECORD, "order.yaml cannot be read: "),),
    ),
    Case(
        "the kit in the record was changed",
        Damaged(records={"a": RECORD, "b": changed(RECORD, kit="spoiler")}),
        ((DamageKind.RECORD, "was changed: spec.kit was 'garage' and is 'spoiler' (in bbbbbbbb"),),
    ),
    Case(
        "the team and the values in the record were changed",
        Damaged(records={"a": RECORD, "b": changed(RECORD, team=TeamName("x"), ordered=S2)}),
        (
            (
                DamageKind.RECORD,
                f"spec.team was 'ae86' and is 'x'; spec.ordered was {RECORD.ordered} and is {S2}",
            ),
        ),
    ),
    Case(
        "the record names another requester",
        Damaged(records={"a": RECORD, "b": changed(RECORD, requester="user:default/zoe")}),
    ),
    Case(
        "the record was broken and is whole again",
        Damaged(main="c", records={"a": RECORD, "b": "{", "c": RECORD}),
    ),
    Case("the record is of another order from the beginning", Damaged(records={"a": OTHER})),
    Case(
        "what was delivered is part of main",
        Damaged(main="d"),
        delivered="abcd",
    ),
    Case(
        "main was moved back",
        Damaged(main="b"),
        ((DamageKind.REWRITTEN, "was moved to bbbbbbbb by a forced push, and cccccccc, which"),),
        sha("c"),
        delivered="abc",
    ),
    Case("what was lost is gone from the forge", Damaged(main="b", gone="c"), delivered="abc"),
    Case("what was lost came back", Damaged(main="b", restored="merged"), delivered="abc"),
    Case("nobody wanted it back", Damaged(main="b", restored="closed"), delivered="abc"),
    Case(
        "somebody is asked to bring it back",
        Damaged(main="b", restored="open"),
        ((DamageKind.REWRITTEN, "cccccccc, which was delivered before"),),
        sha("c"),
        delivered="abc",
    ),
    Case(
        "another history",
        Damaged(main="b", unrelated="c"),
        ((DamageKind.REWRITTEN, "cccccccc, which was delivered before"),),
        sha("c"),
        delivered="abc",
    ),
    Case(
        "another history, with which the forge compares nothing",
        Damaged(main="b", unrelated="c", compares_all=False),
        ((DamageKind.REWRITTEN, "cccccccc, which was delivered before"),),
        sha("c"),
        delivered="abc",
    ),
    Case(
        "another history of the same files",
        Damaged(main="b", unrelated="c", trees={"b": "t", "c": "t"}),
        delivered="abc",
    ),
    Case(
        "an earlier commit of the same files",
        Damaged(main="b", trees={"b": "t", "c": "t"}),
        ((DamageKind.REWRITTEN, "cccccccc"),),
        sha("c"),
        delivered="abc",
    ),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.reason)
def test_damage_of_a_repository_is_told_with_what_helps(case: Case) -> None:
    found = damage(case.forge, delivered=case.delivered)

    assert [one.kind for one in found] == [kind for kind, _ in case.says]
    for one, (_, words) in zip(found, case.says, strict=True):
        assert words in one.what
    assert not found or found[0].place == case.place
    assert not found or found[0].remedy.startswith(case.remedy)
    assert not found or bool(found[0].remedy) is bool(case.remedy)


def test_damage_is_looked_for_at_the_head_that_the_report_has() -> None:
    forge = Damaged(main="c", records={"a": RECORD, "c": None})

    assert damage(forge, head="b", delivered="b") == []
    assert [one.kind for one in damage(forge, delivered="b")] == [DamageKind.RECORD]


@pytest.mark.parametrize(
    ("records", "good"),
    [
        ({"a": RECORD, "b": changed(RECORD, kit="spoiler")}, "a"),
        ({"a": None, "b": RECORD}, "b"),
        ({"a": "{", "b": RECORD}, "b"),
        ({"a": OTHER, "b": RECORD}, "b"),
        ({"a": OTHER}, ""),
        ({}, ""),
    ],
)
def test_without_a_signature_the_oldest_record_of_the_order_is_the_good_one(
    records: dict[str, Any], good: str
) -> None:
    found = good_record(platform_of(None, forge=Damaged(main="c", records=records)), ENTRY)

    assert (found and found[1]) == (records[good] if good else None)
    assert good_record(platform_of(None, forge=Damaged(main="", records=records)), ENTRY) is None
