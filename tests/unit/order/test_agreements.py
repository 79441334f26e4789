"""Whose agreement to a pull request counts, as the forge, the catalog and the ledger say now."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import pytest
from peopleforge import BOT, CAROL, EVE, FRANK, LEDGER, people_forge, people_platform
from tests.unit.kit.test_approval_rules import kit

from ground.names import CommitSha, OrderId, TeamName
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
from orderkit.ports.pulls import ForgeUser, PullRequest, Review

ENTRY = OrderEntry(TeamName("ae86"), OrderId("garage-a"))
OWNED = {"platform": [("mallory", "owner")]}
MALLORYS = {"finance": [("mallory", "owner"), ("dave", "write")]}
HEAD, OLD = CommitSha("a" * 40), CommitSha("b" * 40)
PULL = PullRequest(7, "t", "", "open", False, "x", HEAD, "main", True, None, "https://f/7")  # noqa: FBT003 - as it stands


ORIGINS = ("backstage.io/managed-by-origin-location", "backstage.io/managed-by-location")
OURS = "url:https://portal.example.com/people.yaml"
PUSHED = "url:https://forge.example.com/ae86/people.yaml"


def known(location: str = "", login: str = "") -> dict[str, str]:
    return {
        **({LOGIN_ANNOTATION: login} if login else {}),
        **(dict.fromkeys(ORIGINS, location) if location else {}),
    }


@pytest.mark.parametrize(
    ("requester", "entity", "who"),
    [
        ("user:default/eve", None, EVE),
        ("user:default/nobody", None, None),
        ("user:other/eve", None, None),
        ("eve", None, EVE),
        ("user:default/eve", known(OURS), EVE),
        ("user:other/eve", known(OURS), EVE),
        ("user:default/eve", known(OURS, "frank"), FRANK),
        ("user:default/eve", known("url:https://elsewhere.example.com/x"), EVE),
        ("user:default/eve", known("url:https://elsewhere.example.com/x", "EVE"), EVE),
        ("user:default/eve", known("url:https://elsewhere.example.com/x", "frank"), None),
        ("user:other/eve", known("url:https://elsewhere.example.com/x"), None),
        ("user:default/eve", known(PUSHED), None),
    ],
)
def test_a_person_has_the_login_that_a_location_of_the_platform_gives_or_their_name(
    requester: str, entity: dict[str, str] | None, who: ForgeUser | None
) -> None:
    entities = {} if entity is None else {requester: entity}

    found = forge_user(
        people_platform(people_forge(), entities, people_from=(OURS,)), LEDGER, requester
    )

    assert found == who


def review(of: ForgeUser, state: str = "approved", commit: CommitSha = HEAD, **more: Any) -> Review:
    return Review(of, state, commit, True, "", **more)  # type: ignore[arg-type]  # noqa: FBT003


def agreement(of: ForgeUser, **parts: Any) -> Agreement:
    whole = {
        "repository": str(ENTRY.repository),
        "pull": 7,
        "head": HEAD,
        "by": f"user:default/{of.login}",
        "login": of.login,
        "account": of.id,
        "proof": "a token",
        "when": "2026-11-24T08:00:00Z",
    }
    return Agreement(**{**whole, **parts})


@dataclass(frozen=True)
class Case:
    reason: str
    reviews: tuple[Review, ...] = ()
    recorded: tuple[Agreement, ...] = ()
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
    Case("an agreement to another change", recorded=(agreement(EVE, pull=8),)),
    Case("an agreement in another repository", recorded=(agreement(EVE, repository="ae86/other"),)),
    Case(
        "both, of one person",
        (review(EVE),),
        (agreement(EVE),),
        people=(EVE,),
        in_ledger=(EVE,),
    ),
    Case("of a person behind it", (review(EVE),), behind=frozenset({1}), own=("eve",)),
    Case(
        "an agreement of a person behind it",
        recorded=(agreement(EVE),),
        behind=frozenset({1}),
        own=("eve",),
        in_ledger=(EVE,),
    ),
    Case("of a machine", (review(BOT), review(FRANK)), people=(FRANK,)),
    Case("of somebody whose login another person has now", (review(replace(EVE, id=9)),)),
    Case("of somebody who left the forge", (review(ForgeUser(8, "gone")),)),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.reason)
def test_who_agreed_is_judged_by_head_account_and_who_is_behind_it(case: Case) -> None:
    path = str(ENTRY.approvals_path)
    files = {path: approvals_file(ENTRY.order, case.recorded)} if case.recorded else {}
    machine = replace(BOT, is_machine=True)
    of = people_forge(files, given={(ENTRY.repository, 7): case.reviews})
    of.people = {**of.people, "bot": machine}

    found = agreed(people_platform(of), ENTRY, ENTRY.repository, PULL, case.behind)

    assert found == Agreed(case.people, case.own, case.in_ledger, case.against)
    assert agreed(people_platform(of), ENTRY, ENTRY.repository, PULL, (), reviews=()).against == ()


@pytest.mark.parametrize(
    ("approver", "parts", "may"),
    [
        ("team", {"rights": {"eve@ae86": "write"}}, True),
        ("team", {"rights": {"eve@platform": "write"}}, False),
        ("team", {"rights": {"eve": "admin"}}, True),
        ("team", {"rights": {"eve": "owner"}}, True),
        ("team", {}, False),
        ("team", {"people": {}}, False),
        ("team", {"people": {"eve": ForgeUser(9, "eve")}, "rights": {"eve": "write"}}, False),
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
        ("group:default/finance", {"groups": {"finance": [EVE]}, "unseen": {"finance"}}, False),
        (
            "group:default/finance",
            {"groups": {"finance": [EVE]}, "grants": MALLORYS},
            False,
        ),
        ("group:default/finance", {"groups": {"finance": [EVE]}, "strange": {"finance"}}, False),
    ],
)
def test_who_may_agree_is_what_the_forge_says_now(
    approver: str, parts: dict[str, Any], may: object
) -> None:
    need = Need(("user:default/carol", approver), 1, "of a reason")

    assert may_agree(people_platform(people_forge(**parts)), ENTRY, need, EVE) is may


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
        ({"teams/ae86.yaml": ""}, {"unseen": {"platform", "ae86"}}, (), False),
    ],
)
def test_a_login_counts_once_the_platform_let_its_owner_in(
    files: dict[str, str], parts: dict[str, Any], adopted: tuple[str, ...], is_in: object
) -> None:
    of = people_platform(people_forge(files, **parts), adopted=frozenset(adopted))

    assert is_let_in(of, EVE) is is_in


def test_an_owner_whom_a_team_adopted_decides_with_the_people_platform() -> None:
    team = TeamFile(TeamName("finance"), adopted=("mallory",))
    parts = {"groups": {"finance": [EVE]}, "grants": MALLORYS}
    need = Need(("group:default/finance",), 1, "of a reason")

    file = {str(path_of(TeamName("finance"))): team.to_yaml()}
    listed = {"teams/finance.yaml": ""}

    verdicts = [
        may_agree(people_platform(people_forge(files, **parts)), ENTRY, need, EVE)
        for files in ({**file, **listed}, file, listed, {})
    ]

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
def test_what_is_missing_says_who_and_why(who: Agreed, lacks: str) -> None:
    rights = {"eve@ae86": "write", "frank@ae86": "write", "carol@platform": "write"}

    assert missing(people_platform(people_forge(rights=rights)), ENTRY, (TWO, ONE), who) == lacks


def test_an_objection_counts_of_those_who_are_asked() -> None:
    of = people_platform(people_forge(rights={"eve@ae86": "write", "carol@platform": "write"}))

    def said(*against: ForgeUser) -> str:
        return objection(of, ENTRY, (TWO, ONE), Agreed((), against=against))

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
            {"strange": {"finance"}},
            "organisation finance is not the platform's",
        ),
    ],
)
def test_an_approver_who_is_nobody_is_told_with_what_to_do(
    approver: str, parts: dict[str, Any], problem: str
) -> None:
    found = list(
        approver_problems(people_platform(people_forge(**parts)), [kit("true", by=(approver,))])
    )

    assert [text for text, _ in found] == ([f"{approver}: {problem}"] if problem else [])
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
    lacking: str, state: str, text: str | None
) -> None:
    of = people_forge()

    set_approval_status(people_platform(of).forge, LEDGER, HEAD, PULL, lacking)

    ((commit, status),) = of.statuses
    assert (commit, status.state, status.target_url) == (HEAD, state, PULL.web_url)
    assert status.description == text or len(status.description) == 140
