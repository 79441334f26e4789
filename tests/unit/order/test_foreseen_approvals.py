"""Whether somebody could give an approval at all, and who else has ways into a repository."""

from __future__ import annotations

from typing import Any

import pytest
from peopleforge import CAROL, EVE, FRANK, people_forge, people_platform

from ground.errors import NotFoundError, TooManyCommitsError
from ground.names import OrderId, RepoId, TeamName
from orderkit.core.kit.approval_rules import Need
from orderkit.core.order.ledger import OrderEntry
from orderkit.flows.argocd.refreshing import Ancestry
from orderkit.flows.forge_protection import (
    ForeignAccessError,
    described,
    foreign_access,
    refuse_foreign_access,
)
from orderkit.flows.order.approvals import Asking, foreseen, hopeless
from orderkit.ports.access import AccessGrant
from orderkit.ports.forge import Webhook

ENTRY = OrderEntry(TeamName("ae86"), OrderId("garage-a"))
TEAM = {"ae86": [("Eve", "owner"), ("deploy-key:ci:x", "write"), ("spy", "listen")]}
FINANCE = {"finance": [FRANK, CAROL]}
BY_EVE = Asking("user:default/eve")


def need(*by: str, count: int = 1) -> Need:
    return Need(by, count, "of a reason")


@pytest.mark.parametrize(
    ("asking", "needs", "parts", "warning"),
    [
        (BY_EVE, [], {}, ""),
        (BY_EVE, [need("team")], {"grants": {"ae86": [("frank", "write")]}}, ""),
        (BY_EVE, [need("team")], {"grants": {"ae86/garage-a": [("frank", "write")]}}, ""),
        (BY_EVE, [need("platform")], {"grants": {"platform/ledger": [("frank", "read")]}}, ""),
        (
            BY_EVE,
            [need("team")],
            {"grants": TEAM},
            "no one can give that approval now: 1 must, and only eve, who asks for it, is asked",
        ),
        (Asking("user:default/frank"), [need("team")], {"grants": TEAM}, ""),
        (Asking("user:default/nobody"), [need("team")], {"grants": TEAM}, ""),
        (Asking("user:default/frank", person=EVE), [need("team")], {"grants": TEAM}, "only eve"),
        (
            BY_EVE,
            [need("team")],
            {"grants": {"ae86": [("orderkit", "owner")]}},
            "no one can give that approval now: 1 must, and no one could",
        ),
        (
            BY_EVE,
            [need("team", count=2)],
            {"grants": {"ae86": [("frank", "write"), ("eve", "write")]}},
            "no one can give that approval now: 2 must, and frank could",
        ),
        (BY_EVE, [need("group:default/finance", count=2)], {"groups": FINANCE}, ""),
        (BY_EVE, [need("group:default/finance", count=3)], {"groups": FINANCE}, "carol, frank"),
        (BY_EVE, [need("group:default/finance")], {"unseen": {"finance"}}, ""),
        (BY_EVE, [need("group:default/finance")], {"strange": {"finance"}}, "no one could"),
        (
            BY_EVE,
            [need("group:default/finance"), need("group:default/none")],
            {"unseen": {"finance"}},
            "no one could",
        ),
        (BY_EVE, [need("team", "group:default/finance")], {"groups": FINANCE}, ""),
        (BY_EVE, [need("group:default/finance:leads")], {"groups": FINANCE}, "no one could"),
        (BY_EVE, [need("user:default/frank")], {"groups": {"platform": [FRANK]}}, ""),
        (BY_EVE, [need("user:default/frank")], {}, "no one could"),
        (BY_EVE, [need("user:default/nobody")], {}, "no one could"),
    ],
)
def test_an_approval_that_no_one_can_give_is_foreseen(
    asking: Asking, needs: list[Need], parts: dict[str, Any], warning: str
) -> None:
    of = people_platform(people_forge(**parts))

    told = hopeless(of, ENTRY, needs, asking)

    assert warning in told
    assert bool(told) is bool(warning)
    sentences = foreseen(of, ENTRY, needs, asking)
    assert sentences.endswith(told)
    assert bool(sentences) is bool(needs)


# --- other ways in

HOOK = "http://service.example.com/hook"


@pytest.mark.parametrize(
    ("holder", "right", "options", "is_foreign"),
    [
        ("mallory", "owner", {}, True),
        ("mallory", "owner", {"adopted": ("MALLORY",)}, False),
        ("dave", "write", {}, True),
        ("dave", "write", {"writers": ("Dave",)}, False),
        ("mallory", "admin", {"writers": ("mallory",)}, True),
        ("dave", "write", {"writers": None}, False),
        ("deploy-key:ci:x", "write", {"writers": None}, True),
        (f"webhook:{HOOK}", "listen", {}, False),
        (f"webhook:{HOOK}", "listen", {"is_new": True}, False),
        ("webhook:http://other.example.com", "listen", {}, False),
        ("webhook:http://other.example.com", "listen", {"is_new": True}, True),
        ("carol", "owner", {}, False),
    ],
)
def test_a_way_in_is_foreign_unless_somebody_decided_on_it(
    holder: str, right: str, options: dict[str, Any], is_foreign: object
) -> None:
    of = people_forge(grants={"ae86": [(holder, right)]})
    platform = people_platform(of, webhook=Webhook(HOOK), adopted=frozenset({"Carol"}))

    found = foreign_access(platform, "ae86", **{"writers": (), **options})

    assert bool(found) is is_foreign


@pytest.mark.parametrize(
    ("target", "grants", "words", "hint"),
    [
        ("ae86", [], "", ""),
        (
            "ae86",
            [("mallory", "owner"), ("a b", "admin")],
            "organisation ae86 is not the platform's alone: mallory (owner), a b (admin)",
            "remove them on the forge, or accept them: --adopt mallory,'a b'",
        ),
        (
            RepoId("ae86", "garage-a"),
            [("mallory", "owner")],
            "repository ae86/garage-a is not the platform's alone: mallory (owner)",
            "remove them on the forge, or accept them: --adopt mallory",
        ),
        (
            "ae86",
            [("runner:a,b:7", "admin")],
            "organisation ae86 is not the platform's alone: runner:a,b:7 (admin)",
            "remove them on the forge",
        ),
    ],
)
def test_foreign_ways_in_are_refused_with_how_to_accept_them(
    target: str | RepoId, grants: list[tuple[str, str]], words: str, hint: str
) -> None:
    told = ("", "")
    try:
        refuse_foreign_access(people_platform(people_forge(grants={str(target): grants})), target)
    except ForeignAccessError as error:
        told = (str(error), error.hint)

    assert told == (words, hint)


def test_an_organisation_that_is_not_ours_is_refused() -> None:
    of = people_platform(people_forge(strange={"ae86"}))

    with pytest.raises(ForeignAccessError, match="ae86 is not ours"):
        refuse_foreign_access(of, "ae86")


def test_of_many_ways_in_some_are_named() -> None:
    grants = [AccessGrant("ae86", f"u{number}", "owner") for number in range(40)]
    named = described(grants).count("(owner)")

    assert described(grants).endswith(f"u{named - 1} (owner) and {40 - named} more")
    assert described(grants[:named]).endswith(f"u{named - 1} (owner)")


class Compared:
    """A forge that compares commits of two letters: the second has what the first has."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, str]] = []

    def compare(self, _repo: RepoId, base: str, head: str) -> list[str]:
        self.asked.append((base, head))
        if "x" in (base, head):
            raise NotFoundError("no such commit")
        if head == "z":
            raise TooManyCommitsError("very many")
        return [letter for letter in "abcd" if base < letter <= head]


@pytest.mark.parametrize(
    ("revision", "commit", "contains"),
    [
        ("b", "b", True),
        ("c", "b", True),
        ("b", "c", False),
        ("z", "b", True),
        ("x", "b", False),
        ("b", "x", False),
        ("main", "b", False),
    ],
)
def test_a_revision_contains_what_it_was_made_from(
    revision: str, commit: str, contains: object
) -> None:
    forge: Any = Compared()

    assert Ancestry(forge, RepoId("a", "b")).contains(revision, commit) is contains


def test_each_question_about_ancestry_is_asked_once() -> None:
    forge: Any = Compared()
    ancestry = Ancestry(forge, RepoId("a", "b"))

    answers = [
        ancestry.has_more(*pair) for pair in (("c", "b"), ("c", "b"), ("x", "b"), ("b", "c"))
    ]

    assert answers == [True, True, None, False]
    assert forge.asked == [("b", "c"), ("b", "x"), ("c", "b")]
    assert not ancestry.are_unrelated("b", "b")
    assert not ancestry.are_unrelated("b", "c")
    assert ancestry.are_unrelated("b", "x")
