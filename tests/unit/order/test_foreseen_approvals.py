"""Whether somebody could give an approval at all, and who else has ways into a repository."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import pytest
from faultproxy import FaultProxy
from ownforge import CAROL, FRANK, GINA, US, OwnForge, SharedForge
from peopleforge import entry_of, marked, people_platform, says

from ground.names import CommitSha, RepoId
from orderkit.core.kit.approval_rules import Need
from orderkit.flows.argocd.refreshing import Ancestry
from orderkit.flows.forge_protection import (
    ForeignAccessError,
    described,
    foreign_access,
    refuse_foreign_access,
)
from orderkit.flows.order.approvals import Asking, foreseen, hopeless
from orderkit.ports.access import AccessGrant
from orderkit.ports.forge import Forge, Webhook
from orderkit_standins.forge.repositories import NewRepository

TEAM = {"ae86": [("Gina", "owner")]}
UNSEEN, STRANGE = ({"taken": {name: ["finance"]}} for name in ("members", "foreign_access"))
HOOK = "http://service.example.com/hook"
KEY = {"title": "ci", "fingerprint": "x", "read_only": False}
FINANCE = {"finance": [FRANK, CAROL]}
BY_EVE, BY_GINA = Asking("user:default/eve"), Asking("user:default/gina")


def need(*by: str, count: int = 1) -> Need:
    return Need(by, count, "of a reason")


@pytest.mark.parametrize(
    ("asking", "needs", "parts", "warning"),
    [
        (BY_EVE, [], {}, ""),
        (BY_EVE, [need("team")], {"grants": {"ae86": [("frank", "write")]}}, ""),
        (BY_EVE, [need("team")], {"grants": {"ae86/garage-a": [("frank", "write")]}}, ""),
        (BY_EVE, [need("platform")], {"grants": {"platform/ledger": [("frank", "write")]}}, ""),
        (
            BY_GINA,
            [need("team")],
            {"grants": TEAM},
            "no one can give that approval now: 1 must, and only gina, who asks for it, is asked",
        ),
        (Asking("user:default/frank"), [need("team")], {"grants": TEAM}, ""),
        (Asking("user:default/nobody"), [need("team")], {"grants": TEAM}, ""),
        (Asking("user:default/frank", person=GINA), [need("team")], {"grants": TEAM}, "only gina"),
        (
            BY_EVE,
            [need("team")],
            {},
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
        (BY_EVE, [need("group:default/finance")], UNSEEN, ""),
        (BY_EVE, [need("group:default/finance")], STRANGE, "no one could"),
        (
            BY_EVE,
            [need("group:default/finance"), need("group:default/none")],
            UNSEEN,
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
    asking: Asking,
    needs: list[Need],
    parts: dict[str, Any],
    warning: str,
    *,
    forge: OwnForge,
    catalog: object,
) -> None:
    entry, ask = entry_of(forge), partial(marked, forge)
    needs = [replace(each, by=tuple(map(ask, each.by))) for each in needs]
    of = people_platform(forge, catalog, **parts)
    if parts.get("grants") is TEAM:  # machines give no approval
        of.forge.ensure_webhook(entry.team, Webhook(HOOK))
        of = replace(of, forge=forge.proxied(says(f"/{entry.repository}/keys", [KEY])))

    told = hopeless(of, entry, needs, asking)

    assert warning in told
    assert bool(told) is bool(warning)
    sentences = foreseen(of, entry, needs, asking)
    assert sentences.endswith(told)
    assert bool(sentences) is bool(needs)


# --- other ways in


@pytest.mark.parametrize(
    ("holder", "right", "options", "is_foreign"),
    [
        ("mallory", "owner", {}, True),
        ("mallory", "owner", {"adopted": ("MALLORY",)}, False),
        ("dave", "write", {}, True),
        ("dave", "write", {"writers": ("Dave",)}, False),
        ("mallory", "admin", {"writers": ("mallory",)}, True),
        ("dave", "write", {"writers": None}, False),
        ("carol", "owner", {}, False),
    ],
)
def test_a_person_who_has_a_way_in_is_foreign_unless_somebody_decided_on_it(
    holder: str, right: str, options: dict[str, Any], is_foreign: object, forge: OwnForge
) -> None:
    platform = people_platform(
        forge, None, grants={"ae86": [(holder, right)]}, adopted=frozenset({"Carol"})
    )

    found = foreign_access(platform, forge.named("ae86"), **{"writers": (), **options})

    assert [(grant.holder, grant.right) for grant in found] == [(holder, right)] * bool(is_foreign)


@pytest.mark.parametrize(
    ("url", "is_new", "is_foreign"),
    [
        (HOOK, False, False),
        (HOOK, True, False),
        ("http://other.example.com", False, False),
        ("http://other.example.com", True, True),
    ],
)
def test_a_webhook_is_foreign_where_it_was_before_us(
    url: str, forge: OwnForge, *, is_new: bool, is_foreign: bool
) -> None:
    platform = people_platform(forge, None, own=["ae86"], webhook=Webhook(HOOK))
    forge.client.ensure_webhook(forge.named("ae86"), Webhook(url))

    found = foreign_access(platform, forge.named("ae86"), is_new=is_new)

    assert [grant.holder for grant in found] == [f"webhook:{url}"] * is_foreign


def test_a_deploy_key_that_may_write_is_foreign(forge: OwnForge) -> None:
    platform, repo = people_platform(forge, None), entry_of(forge).repository
    keyed = replace(platform, forge=forge.proxied(says(f"/{repo}/keys", [KEY])))

    found = foreign_access(keyed, repo, writers=None)

    assert [(grant.holder, grant.right) for grant in found] == [("deploy-key:ci:x", "write")]


@pytest.mark.parametrize(
    ("owners", "runner", "words", "hint"),
    [
        ([], "", "", ""),
        (
            [("mallory", "owner")],
            "a b",
            "organisation ae86 is not the platform's alone: mallory (owner), runner:a b:7 (write)",
            "remove them on the forge, or accept them: --adopt mallory,'runner:a b:7'",
        ),
        (
            [],
            "a,b",
            "organisation ae86 is not the platform's alone: runner:a,b:7 (write)",
            "remove them on the forge",
        ),
    ],
)
def test_foreign_ways_in_are_refused_with_how_to_accept_them(
    owners: list[tuple[str, str]], runner: str, words: str, hint: str, forge: OwnForge
) -> None:
    platform = people_platform(forge, None, grants={"ae86": owners})
    if runner:
        runners = {"runners": [{"name": runner, "id": 7}]}
        platform = replace(platform, forge=forge.proxied(says("/actions/runners", runners)))
    told = ("", "")
    try:
        refuse_foreign_access(platform, forge.named("ae86"))
    except ForeignAccessError as error:
        told = (str(error), error.hint)

    assert (forge.plain(told[0]), told[1]) == (words, hint)


def test_a_repository_of_somebody_is_refused_with_how_to_accept_its_owner(forge: OwnForge) -> None:
    embedded = forge.shared.embedded
    owner = embedded.accounts.ensure_user(forge.named("zoe"), "a-password")
    made = embedded.repositories.create(owner, NewRepository("garage-a"))
    us = embedded.accounts.find_user(US)
    assert us
    embedded.teams.set_collaborator(made.id, us.id, "admin")

    with pytest.raises(ForeignAccessError) as refused:
        refuse_foreign_access(forge.platform(), made.repo)

    alone = "repository zoe/garage-a is not the platform's alone: zoe (owner)"
    assert forge.plain(str(refused.value)) == alone
    accept = "remove them on the forge, or accept them: --adopt zoe"
    assert forge.plain(refused.value.hint) == accept


def test_an_organisation_that_is_not_ours_is_refused(forge: OwnForge) -> None:
    org = forge.org("ae86", owner="mallory")

    with pytest.raises(ForeignAccessError, match=f"{org} belongs to somebody else"):
        refuse_foreign_access(forge.platform(), org)


def test_of_many_ways_in_some_are_named() -> None:
    grants = [AccessGrant("ae86", f"u{number}", "owner") for number in range(40)]
    named = described(grants).count("(owner)")

    assert described(grants).endswith(f"u{named - 1} (owner) and {40 - named} more")
    assert described(grants[:named]).endswith(f"u{named - 1} (owner)")


@dataclass(frozen=True)
class History:
    """Commits by letter: each of a, b, c, z has those before it; the forge shows not all of z."""

    repo: RepoId
    commits: Mapping[str, CommitSha]
    line: FaultProxy
    forge: Forge

    def ancestry(self) -> Ancestry:
        """Return one that knows nothing yet."""
        self.line.log.clear()
        return Ancestry(self.forge, self.repo)

    def asked(self) -> list[tuple[str, str]]:
        """Return the letters of each question for commits, in their order."""
        letters = {commit: letter for letter, commit in self.commits.items()}
        asked = re.findall(r"/compare/(\w+)\.\.\.(\w+)", "\n".join(self.line.log))
        return [(letters[base], letters[head]) for base, head in asked]


@pytest.fixture(scope="module")
def history(one_forge: SharedForge) -> Iterator[History]:
    with ExitStack() as undo:
        own = OwnForge(one_forge, undo)
        repo = RepoId(own.named("ae86"), "garage-a")
        commits = {"a": own.repo(repo)}
        commits |= {letter: own.write(repo, {"file": letter}) for letter in "bcz"}
        commits["x"] = CommitSha("f" * 40)
        line = own.proxy(says(f"/compare/{commits['b']}...{commits['z']}", {"total_commits": 9}))
        yield History(repo, commits, line, own.client_of(url=line.url))


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
    revision: str, commit: str, contains: object, history: History
) -> None:
    revision = history.commits.get(revision, revision)

    assert history.ancestry().contains(revision, history.commits[commit]) is contains


def test_each_question_about_ancestry_is_asked_once(history: History) -> None:
    a, b, c, x = (history.commits[letter] for letter in "abcx")
    ancestry = history.ancestry()

    answers = [ancestry.has_more(*pair) for pair in ((c, b), (c, b), (x, b), (b, c))]

    assert answers == [True, True, None, False]
    assert history.asked() == [("b", "c"), ("b", "x"), ("c", "b")]
    assert not ancestry.are_unrelated(b, b)
    assert not ancestry.are_unrelated(b, c)
    assert not ancestry.are_unrelated(a, c)
    assert ancestry.are_unrelated(b, x)
