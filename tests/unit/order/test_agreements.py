"""Whose agreement to a pull request counts, as the forge, the catalog and the ledger say now."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import Any

import pytest
from ownforge import BOT, CAROL, EVE, FRANK, OwnForge, SharedForge
from peopleforge import entry_of, marked, people_platform, says
from tests.unit.kit.test_approval_rules import kit

from ground.names import CommitSha, RepoId, TeamName
from orderkit.core.kit.approval_rules import Need
from orderkit.core.order.approval import Agreement, approvals_file
from orderkit.core.order.ledger import OrderEntry
from orderkit.core.order.team_file import TeamFile, path_of
from orderkit.flows.order.agreements import (
    LOGIN_ANNOTATION,
    Agreed,
    agreed,
    approver_problems,
    forge_user,
    is_let_in,
    may_agree,
    missing,
    objection,
    set_approval_status,
)
from orderkit.flows.platform import Platform
from orderkit.ports.forge import FileChange, Operation
from orderkit.ports.pulls import ForgeUser, PullDraft, PullRequest, Review
from orderkit_standins.catalog import EmbeddedCatalog

MALLORYS = {"finance": [("mallory", "owner"), ("dave", "write")]}
HEAD, OLD = CommitSha("a" * 40), CommitSha("b" * 40)
"""Stand for the newest commit of a pull request and the one before it."""


OURS, PUSHED, ELSEWHERE = "ours", "pushed", "elsewhere"


@pytest.mark.parametrize(
    ("requester", "location", "login", "who"),
    [
        ("user:default/eve", "", "", EVE),
        ("user:default/nobody", "", "", None),
        ("user:other/eve", "", "", None),
        ("eve", "", "", EVE),
        ("user:default/eve", OURS, "", EVE),
        ("user:other/eve", OURS, "", EVE),
        ("user:default/eve", OURS, "frank", FRANK),
        ("user:default/eve", ELSEWHERE, "", EVE),
        ("user:default/eve", ELSEWHERE, "EVE", EVE),
        ("user:default/eve", ELSEWHERE, "frank", None),
        ("user:other/eve", ELSEWHERE, "", None),
        ("user:default/eve", PUSHED, "", None),
    ],
)
def test_a_person_has_the_login_that_a_location_of_the_platform_gives_or_their_name(
    requester: str,
    location: str,
    login: str,
    who: ForgeUser | None,
    *,
    forge: OwnForge,
    tmp_path: Path,
) -> None:
    forge.repo(forge.ledger)
    # the forge by another address is another server for the catalog
    url = forge.shared.url.replace("127.0.0.1", "localhost")
    read = forge.client_of(url=url) if location == ELSEWHERE else forge.client
    place = f"{read.base_url}/{forge.ledger}/src/branch/main/people.yaml"
    with closing(
        EmbeddedCatalog(tmp_path / "catalog.sqlite", read, platform_org=forge.ledger.owner)
    ) as catalog:
        if location:
            namespace, _, name = requester.removeprefix("user:").partition("/")
            meta = {"name": name, "namespace": namespace}
            notes = {"annotations": {LOGIN_ANNOTATION: login}} if login else {}
            user = {"kind": "User", "metadata": {**meta, **notes}, "spec": {}}
            manifest = {"apiVersion": "backstage.io/v1alpha1", **user}
            forge.write(forge.ledger, {"people.yaml": json.dumps(manifest)})
            catalog.register(place)
        people_from = (f"url:{place}",) if location == OURS else ("url:https://people.example.com",)
        platform = forge.platform(catalog=catalog, people_from=people_from)

        assert forge_user(platform, forge.ledger, requester) == who


def review(of: ForgeUser, state: str = "approved", commit: CommitSha = HEAD, **more: Any) -> Review:
    return Review(of, state, commit, True, "", **more)  # type: ignore[arg-type]  # noqa: FBT003


def agreement(of: ForgeUser, **parts: Any) -> dict[str, Any]:
    whole = {
        "head": HEAD,
        "by": f"user:default/{of.login}",
        "login": of.login,
        "account": of.id,
        "proof": "a token",
        "when": "2026-11-24T08:00:00Z",
    }
    return {**whole, **parts}


@dataclass(frozen=True)
class Case:
    reason: str
    reviews: tuple[Review, ...] = ()
    recorded: tuple[dict[str, Any], ...] = ()
    before: tuple[Review, ...] | None = None
    """Reviews that were read before a login passed to somebody else, or a person left."""
    behind: frozenset[int] = frozenset()
    people: tuple[ForgeUser, ...] = ()
    own: tuple[str, ...] = ()
    in_ledger: tuple[ForgeUser, ...] = ()
    against: tuple[ForgeUser, ...] = ()


CASES = [
    Case("nobody said anything"),
    Case("a review", (review(EVE),), people=(EVE,)),
    Case("a review of an earlier head", (review(EVE, commit=OLD),)),
    Case("a review that was dismissed", (review(EVE, dismissed=True),)),
    Case("a rejection", (review(EVE, "rejected"),), against=(EVE,)),
    Case("a rejection of an earlier head", (review(EVE, "rejected", OLD),), against=(EVE,)),
    Case("an approval after a rejection", (review(EVE, "rejected"), review(EVE)), people=(EVE,)),
    Case("a rejection after an approval", (review(EVE), review(EVE, "rejected")), against=(EVE,)),
    Case(
        "a dismissed rejection after an approval",
        (review(EVE), review(EVE, "rejected", dismissed=True)),
        people=(EVE,),
    ),
    Case("an agreement", recorded=(agreement(EVE),), people=(EVE,), in_ledger=(EVE,)),
    Case("an agreement to an earlier head", recorded=(agreement(EVE, head=OLD),)),
    Case("an agreement to another change", recorded=(agreement(EVE, pull=999),)),
    Case("an agreement in another repository", recorded=(agreement(EVE, repository="ae86/other"),)),
    Case(
        "both, of one person",
        (review(EVE),),
        (agreement(EVE),),
        people=(EVE,),
        in_ledger=(EVE,),
    ),
    Case("of a person behind it", (review(EVE),), behind=frozenset({EVE.id}), own=("eve",)),
    Case(
        "an agreement of a person behind it",
        recorded=(agreement(EVE),),
        behind=frozenset({EVE.id}),
        own=("eve",),
        in_ledger=(EVE,),
    ),
    Case("of a machine", (review(BOT), review(FRANK)), people=(FRANK,)),
    Case("of somebody whose login another person has now", before=(review(replace(EVE, id=99)),)),
    Case("of somebody who left the forge", before=(review(ForgeUser(98, "gone")),)),
]


@dataclass
class Changes:
    """A repository with a commit that pull requests bring, and the one before it."""

    own: OwnForge
    repo: RepoId
    commits: dict[CommitSha, CommitSha]
    platform: Platform
    _number: Iterator[int] = field(default_factory=lambda: itertools.count(1))

    def propose(self, reviews: Sequence[Review]) -> tuple[OrderEntry, PullRequest]:
        """Return a new order, and a pull request that people reviewed."""
        entry = entry_of(self.own, f"garage-n{next(self._number)}")
        pull = self._open(entry.order) if reviews else self._unreviewed
        for each in reviews:
            self._review(pull, each)
        return entry, pull

    @cached_property
    def _unreviewed(self) -> PullRequest:
        return self._open("unreviewed")

    def _open(self, branch: str) -> PullRequest:
        self.own.client.ensure_branch(self.repo, branch, self.commits[HEAD])
        operation = Operation(branch, "user:default/zoe", "Change it")
        return self.own.client.open_pull(self.repo, PullDraft("t", "", branch), operation)

    def _review(self, pull: PullRequest, each: Review) -> None:
        head = self.commits[each.commit]
        with self.own.shared.client(each.reviewer.login) as client:
            client.review(self.repo, pull.number, each.state, head=head, text="I looked at it")
        if each.dismissed:
            embedded = self.own.shared.embedded
            row = embedded.repositories.find(self.repo.owner, self.repo.name)
            found = embedded.pulls.find(row.id, pull.number) if row else None
            assert found
            embedded.reviews.dismiss(embedded.reviews.of_pull(found.id)[-1])


@pytest.fixture(scope="module")
def changes(one_forge: SharedForge, catalog: object) -> Iterator[Changes]:
    with ExitStack() as undo:
        own = OwnForge(one_forge, undo)
        platform = people_platform(own, catalog, own=["ae86", "platform"])
        repo = entry_of(own).repository
        first = own.write(repo, {"README.md": ""})
        own.client.ensure_branch(repo, "changed", first)
        commits = {}
        for commit, text in ((OLD, "1"), (HEAD, "2")):
            change = FileChange(PurePosixPath(f"{text}.yaml"), text.encode(), None)
            operation = Operation(f"change-{text}", "user:default/zoe", "Change it")
            written = own.client.write(repo, [change], operation, branch="changed")
            commits[commit] = written.commit
        # Gitea has no account of a machine that could review
        machine = {"permission": "write", "user": {"id": BOT.id, "login": "bot", "type": "Bot"}}
        forge = own.proxied(says("/collaborators/bot/", machine))
        yield Changes(own, repo, commits, replace(platform, forge=forge))


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.reason)
def test_who_agreed_is_judged_by_head_account_and_who_is_behind_it(
    case: Case, changes: Changes
) -> None:
    entry, pull = changes.propose(case.reviews)
    place = {"repository": str(changes.repo), "pull": pull.number}
    recorded = [
        Agreement(**{**place, **each, "head": changes.commits[each["head"]]})
        for each in case.recorded
    ]
    if recorded:
        text = approvals_file(entry.order, recorded)
        changes.own.write(changes.own.ledger, {str(entry.approvals_path): text})
    before = case.before and [replace(r, commit=changes.commits[r.commit]) for r in case.before]
    judged = (changes.platform, entry, changes.repo, pull)

    found = agreed(*judged, case.behind, reviews=before)

    assert found == Agreed(case.people, case.own, case.in_ledger, case.against)
    assert agreed(*judged, (), reviews=()).against == ()


@pytest.mark.parametrize(
    ("approver", "parts", "may"),
    [
        ("team", {"rights": {"eve@ae86": "write"}}, True),
        ("team", {"rights": {"eve@platform": "write"}}, False),
        ("team", {"rights": {"eve": "admin"}}, True),
        ("team", {"rights": {"eve": "owner"}}, True),
        ("team", {}, False),
        ("platform", {"rights": {"eve@platform": "write"}}, True),
        ("platform", {"rights": {"eve@ae86": "write"}}, False),
        ("user:default/eve", {"groups": {"platform": [EVE]}}, True),
        ("user:default/eve", {}, False),
        ("user:default/frank", {"groups": {"platform": [EVE, FRANK]}}, False),
        ("user:default/nobody", {"groups": {"platform": [EVE]}}, False),
        ("group:default/finance", {"groups": {"finance": [EVE]}}, True),
        ("group:default/finance", {"groups": {"finance": [FRANK]}}, False),
        ("group:default/finance:leads", {"groups": {"finance": [EVE]}}, False),
        ("group:default/finance:leads", {"groups": {"finance:leads": [FRANK, EVE]}}, True),
        (
            "group:default/finance",
            {"groups": {"finance": [EVE]}, "taken": {"members": ["finance"]}},
            False,
        ),
        (
            "group:default/finance",
            {"groups": {"finance": [EVE]}, "grants": MALLORYS},
            False,
        ),
        (
            "group:default/finance",
            {"groups": {"finance": [EVE]}, "taken": {"foreign_access": ["finance"]}},
            False,
        ),
    ],
)
def test_who_may_agree_is_what_the_forge_says_now(
    approver: str, parts: dict[str, Any], may: object, forge: OwnForge, catalog: object
) -> None:
    need = Need(("user:default/carol", marked(forge, approver)), 1, "of a reason")
    platform = people_platform(forge, catalog, **parts)

    assert may_agree(platform, entry_of(forge), need, EVE) is may


def test_who_has_an_account_no_more_may_not_agree(forge: OwnForge, catalog: object) -> None:
    platform, entry = people_platform(forge, catalog, own=["ae86"]), entry_of(forge)
    accounts, teams = forge.shared.embedded.accounts, forge.shared.embedded.teams
    repo = forge.shared.embedded.repositories.find(entry.team, entry.order)
    assert repo
    need = Need(("team",), 1, "of a reason")
    zoe = accounts.ensure_user(forge.named("zoe"), "a-password")
    who = ForgeUser(zoe.id, zoe.name)
    teams.set_collaborator(repo.id, zoe.id, "write")
    assert may_agree(platform, entry, need, who)

    teams.remove_collaborator(repo.id, zoe.id)
    accounts.delete_user(zoe)
    accounts.ensure_user(forge.named("yves"), "a-password")
    gone = may_agree(platform, entry, need, who)
    heir = accounts.ensure_user(zoe.name, "a-password")
    teams.set_collaborator(repo.id, heir.id, "write")

    assert (gone, may_agree(platform, entry, need, who)) == (False, False)
    assert may_agree(platform, entry, need, ForgeUser(heir.id, heir.name))


@pytest.mark.parametrize(
    ("files", "parts", "adopted", "is_in"),
    [
        ({}, {}, (), False),
        ({}, {}, ("EVE",), True),
        ({}, {"groups": {"platform": [EVE]}}, (), True),
        (
            {},
            {"groups": {"platform": [EVE]}, "grants": {"platform": [("mallory", "owner")]}},
            (),
            False,
        ),
        ({}, {"groups": {"ae86": [EVE]}}, (), False),
        ({"teams/ae86.yaml": ""}, {"groups": {"ae86": [EVE]}}, (), True),
        (
            {"teams/ae86.yaml": ""},
            {"groups": {"ae86": [EVE]}, "taken": {"members": ["platform", "ae86"]}},
            (),
            False,
        ),
    ],
)
def test_a_login_counts_once_the_platform_let_its_owner_in(
    files: dict[str, str],
    parts: dict[str, Any],
    adopted: tuple[str, ...],
    is_in: object,
    *,
    forge: OwnForge,
    catalog: object,
) -> None:
    named = {path.replace("ae86", forge.named("ae86")): text for path, text in files.items()}
    of = people_platform(forge, catalog, named, adopted=frozenset(adopted), **parts)

    assert is_let_in(of, EVE) is is_in


def test_an_owner_whom_a_team_adopted_decides_with_the_people_platform(
    forge: OwnForge, catalog: object
) -> None:
    name = TeamName(forge.named("finance"))
    team = TeamFile(name, adopted=("mallory",))
    platform = people_platform(
        forge, catalog, own=["platform"], groups={"finance": [EVE]}, grants=MALLORYS
    )
    need = Need((f"group:default/{name}",), 1, "of a reason")

    file = {str(path_of(name)): team.to_yaml()}
    listed = {f"teams/{name}.yaml": ""}
    none = dict.fromkeys((*file, *listed))

    verdicts = []
    for files in ({**file, **listed}, file, listed, {}):
        forge.write(forge.ledger, {**none, **files})
        verdicts.append(may_agree(platform, entry_of(forge), need, EVE))

    assert verdicts == [True, False, False, False]


TWO = Need(("team",), 2, "it is large")
ONE = Need(("platform",), 1, "it is new")
NEW = "the platform team, because it is new"
SO_FAR = "2 people of the team, because it is large (so far: eve)"


@pytest.mark.parametrize(
    ("who", "lacks"),
    [
        (Agreed((EVE, FRANK, CAROL)), ""),
        (Agreed((EVE, CAROL)), SO_FAR),
        (Agreed((CAROL,)), "2 people of the team, because it is large"),
        (
            Agreed((EVE,), own=("zoe",)),
            f"{SO_FAR}; and {NEW}; zoe is behind it and does not count",
        ),
        (Agreed((EVE, FRANK, CAROL), own=("zoe",)), ""),
    ],
)
def test_what_is_missing_says_who_and_why(
    who: Agreed, lacks: str, forge: OwnForge, catalog: object
) -> None:
    rights = {"eve@ae86": "write", "frank@ae86": "write", "carol@platform": "write"}

    platform = people_platform(forge, catalog, rights=rights)
    assert missing(platform, entry_of(forge), (TWO, ONE), who) == lacks


def test_an_objection_counts_of_those_who_are_asked(forge: OwnForge, catalog: object) -> None:
    rights = {"eve@ae86": "write", "carol@platform": "write"}
    of = people_platform(forge, catalog, rights=rights)

    def said(*against: ForgeUser) -> str:
        return objection(of, entry_of(forge), (TWO, ONE), Agreed((), against=against))

    assert (said(), said(FRANK)) == ("", "")
    assert said(EVE, FRANK, CAROL) == "eve, carol asked for changes"


@pytest.mark.parametrize(
    ("approver", "parts", "problem"),
    [
        ("team", {}, ""),
        ("user:default/eve", {"groups": {"platform": [EVE]}}, ""),
        ("user:default/eve", {}, "eve is in no organisation of the platform"),
        ("user:default/nobody", {}, "nobody on the forge is that"),
        ("group:default/finance", {"groups": {"finance": [EVE]}}, ""),
        ("group:default/finance", {}, "the forge has no organisation finance, or nobody is in it"),
        (
            "group:default/finance:leads",
            {"groups": {"finance": [EVE]}},
            "the forge has no team leads of organisation finance, or nobody is in it",
        ),
        (
            "group:default/finance",
            {"grants": MALLORYS},
            "organisation finance is not the platform's alone: mallory (owner)",
        ),
        (
            "group:default/finance",
            {"taken": {"foreign_access": ["finance"]}},
            "organisation finance is not the platform's",
        ),
    ],
)
def test_an_approver_who_is_nobody_is_told_with_what_to_do(
    approver: str, parts: dict[str, Any], problem: str, forge: OwnForge, catalog: object
) -> None:
    platform = people_platform(forge, catalog, **parts)

    found = list(approver_problems(platform, [kit("true", by=(marked(forge, approver),))]))

    told = [forge.plain(text) for text, _ in found]
    assert told == ([f"{approver}: {problem}"] if problem else [])
    assert all(advice for _, advice in found)


@pytest.mark.parametrize(
    ("lacking", "state", "text"),
    [
        ("", "success", "every approver has approved it"),
        ("the team", "pending", "waits for the team"),
        ("x" * 200, "pending", None),
    ],
)
def test_the_status_of_a_head_says_whether_somebody_has_to_approve(
    lacking: str, state: str, text: str | None, changes: Changes
) -> None:
    _, pull = changes.propose([])
    place = (changes.repo, pull.head_commit)

    set_approval_status(changes.platform.forge, *place, pull, lacking)

    (status,) = changes.own.client.statuses(*place)
    assert (status.state, status.target_url) == (state, pull.web_url)
    assert status.description == text or len(status.description) == 140
