"""Who calls the service, and for which teams they may act."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from webrequests import asked

from ground.errors import InvalidInputError, RefusedError
from orderkit.core.platform.service_access import RIGHTS, Right
from orderkit.ports.requesters import UNKNOWN, Requester, UnprovedError
from orderkit.web.callers import Caller, CallerAccess, identify

EVE = Requester("user:default/eve", "a token", frozenset({"group:default/ae86", "user:default/x"}))


class Tokens:
    """A provider who issued one token."""

    def describe(self) -> str:
        return "one token"

    def proved(self, authorization: str) -> Requester:
        if authorization != "Bearer eve":
            raise UnprovedError("the token is not ours")
        return EVE


ALONE = CallerAccess("s3cret", "X-Portal")
WITH_TOKENS = CallerAccess("s3cret", "X-Portal", Tokens())
OURS, EVES = {"X-Portal": "s3cret"}, {"Authorization": "Bearer eve"}


@pytest.mark.parametrize(
    ("access", "headers", "is_portal", "name", "via"),
    [
        (ALONE, OURS, True, "portal", "the portal's secret"),
        (ALONE, {**OURS, **EVES}, True, "portal", "the portal's secret"),
        (WITH_TOKENS, OURS, True, "portal", "the portal's secret"),
        (WITH_TOKENS, EVES, False, EVE.ref, "a token"),
        (WITH_TOKENS, {**OURS, **EVES}, True, EVE.ref, "a token"),
    ],
)
def test_a_caller_is_who_the_secret_or_the_token_proves(
    access: CallerAccess, headers: dict[str, str], is_portal: object, name: str, via: str
) -> None:
    caller = identify(asked(headers=headers), access)

    assert (caller.portal, caller.name, caller.via) == (is_portal, name, via)


@pytest.mark.parametrize(
    ("access", "headers", "why"),
    [
        (WITH_TOKENS, {}, "neither X-Portal nor a token"),
        (ALONE, EVES, "neither X-Portal nor a token"),
        (WITH_TOKENS, {"X-Portal": ""}, "header X-Portal is wrong"),
        (WITH_TOKENS, {"X-Portal": "s3creT", **EVES}, "header X-Portal is wrong"),
        (WITH_TOKENS, {**OURS, "Authorization": "Bearer frank"}, "the token is not ours"),
    ],
)
def test_a_caller_whom_nothing_proves_is_turned_away(
    access: CallerAccess, headers: dict[str, str], why: str
) -> None:
    with pytest.raises(UnprovedError, match=why):
        identify(asked(headers=headers), access)


@dataclass(frozen=True)
class May:
    reason: str
    proof: Requester | None
    teams: frozenset[str] | None
    access: CallerAccess = ALONE


def proof(*groups: str, rights: frozenset[Right] = RIGHTS, everywhere: bool = False) -> Requester:
    return Requester("user:default/eve", "t", frozenset(groups), rights, everywhere)


OF_PLATFORM = CallerAccess("s", "X", platform_groups=frozenset({"group:default/ops"}))
MAY = [
    May("the portal itself", None, None),
    May("a token for every team", proof(everywhere=True), None),
    May("a member of a platform group", proof("group:default/ops"), None, OF_PLATFORM),
    May("a group that is none of the platform's", proof("group:default/a"), frozenset("a")),
    May("two teams", proof("group:default/a", "group:default/b"), frozenset("ab")),
    May("a group of another kind", proof("user:default/eve", "group:other/a"), frozenset()),
]


@pytest.mark.parametrize("case", MAY, ids=lambda case: case.reason)
def test_a_caller_acts_for_the_teams_of_the_proof(case: May) -> None:
    assert Caller(case.access, portal=False, proof=case.proof).teams("read") == case.teams


@pytest.mark.parametrize(
    ("person", "team", "refusal"),
    [
        (None, None, ""),
        (proof("group:default/a"), "a", ""),
        (proof("group:default/a"), "b", "may not act for team 'b' (teams of {}: a)"),
        (proof("group:default/a"), None, "may not act for the whole platform (teams of {}: a)"),
        (proof(), "a", "may not act for team 'a' (teams of {}: none)"),
        (
            proof("group:default/a", rights=frozenset({"read", "change"})),
            "a",
            "lacks the right 'order' (rights of this token: change, read)",
        ),
    ],
)
def test_a_refusal_says_what_the_caller_may_do(
    person: Requester | None, team: str | None, refusal: str
) -> None:
    caller = Caller(ALONE, portal=False, proof=person)
    told = ""
    try:
        caller.check("order", team)
    except RefusedError as error:
        told = f"{error} ({error.hint})"

    assert told == (f"user:default/eve {refusal.format('user:default/eve')}" if refusal else "")


def test_a_proof_counts_more_than_what_a_request_claims() -> None:
    portal = Caller(ALONE, portal=True, proof=None)

    assert Caller(ALONE, portal=True, proof=EVE).requester("user:default/frank") == EVE
    assert portal.requester("user:default/frank") == Requester("user:default/frank")
    assert portal.requester(None) == portal.requester("") == Requester(UNKNOWN)
    with pytest.raises(InvalidInputError, match="is not a catalog reference"):
        portal.requester("not a reference")


def test_a_portal_that_signs_for_its_users_has_to_send_their_proof() -> None:
    signing = CallerAccess("s", "X", persons=True)

    Caller(ALONE, portal=True, proof=None).check_person()
    Caller(signing, portal=True, proof=EVE).check_person()
    with pytest.raises(UnprovedError, match="sent no token"):
        Caller(signing, portal=True, proof=None).check_person()
