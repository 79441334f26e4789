"""People of the embedded forge: their rights, their organisations, and who takes one over."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from functools import partial
from typing import Any

from faultproxy import Decision, Falsehood, Fault
from ownforge import COMMON, PEOPLE, US, OwnForge, Watched
from rivals import Rival

from ground.names import OrderId, RepoId, TeamName
from orderkit.core.order.ledger import OrderEntry
from orderkit.flows.platform import Platform
from orderkit.ports.pulls import ForgeUser
from orderkit_standins.forge.teams import OWNERS, UNITS, TeamSettings

BY_LOGIN = {person.login: person for person in PEOPLE}


def entry_of(forge: OwnForge, order: str = "garage-a") -> OrderEntry:
    """Return an order of the team ae86."""
    return OrderEntry(TeamName(forge.named("ae86")), OrderId(order))


def marked(forge: OwnForge, approver: str) -> str:
    """Return an approver with the name that an organisation has for this test."""
    kind, _, name = approver.partition(":default/")
    org, _, team = name.partition(":")
    group = f"{kind}:default/{forge.named(org)}"
    return approver if kind != "group" else f"{group}:{team}" if team else group


def people_platform(
    forge: OwnForge,
    catalog: object,
    files: Mapping[str, str] | None = None,
    *,
    rights: Mapping[str, str] | None = None,
    groups: Mapping[str, Sequence[ForgeUser]] | None = None,
    grants: Mapping[str, Sequence[tuple[str, str]]] | None = None,
    taken: Mapping[str, Collection[str]] | None = None,
    own: Collection[str] = (),
    **parts: Any,
) -> Platform:
    """
    Return a platform, and an order's repository, of which people have these rights.

    Args:
        rights: By login, or login and organisation: on the repositories.
        groups: Members of teams that may only read, by organisation, or organisation and team.
        grants: Who else has which right, by organisation or repository.
        taken: By method of the forge: the organisations that somebody else takes over just before
            we call it for the first time.
        own: The organisations that the test changes itself.
    """
    changing = [rights or {}, groups or {}, grants or {}, *(taken or {}).values(), own]
    named = [name for names in changing for name in names] + ["platform"] * bool(files)
    is_both = any("@" not in key for key in rights or {})
    forge.common = [
        repo.owner for repo in COMMON if not is_both and not any(repo.owner in n for n in named)
    ]
    repos = {"ae86": entry_of(forge).repository, "platform": forge.ledger}
    if "platform" not in forge.common:
        forge.repo(forge.ledger, files)
    if "ae86" not in forge.common:
        forge.empty(repos["ae86"])
    for key, right in (rights or {}).items():
        login, _, place = key.partition("@")
        for org in [place] if place else repos:
            _grant(forge, org if right == "owner" else repos[org], login, right)
    for key, members in (groups or {}).items():
        org, _, team = key.partition(":")
        for member in members:
            _join(forge, forge.org(org), team or "readers", member.login, "read")
    for place, holders in (grants or {}).items():
        org, _, name = place.partition("/")
        target = RepoId(forge.named(org), name) if name else org
        for login, right in holders:
            _grant(forge, target, login, right)
    ours: Any = forge.client
    for method, orgs in (taken or {}).items():
        ours = Rival(ours, method, partial(_take_over, forge, orgs))
    return forge.platform(**{"catalog": catalog, "forge": ours, **parts})


def _grant(forge: OwnForge, target: str | RepoId, login: str, right: str) -> None:
    embedded = forge.shared.embedded
    if isinstance(target, RepoId):
        found = embedded.repositories.find(target.owner, target.name)
        assert found
        embedded.teams.set_collaborator(found.id, BY_LOGIN[login].id, right)
    else:
        _join(forge, forge.org(target), OWNERS if right == "owner" else right, login, right)


def _join(forge: OwnForge, org: str, team: str, login: str, right: str) -> None:
    accounts, teams = forge.shared.embedded.accounts, forge.shared.embedded.teams
    found = accounts.find(org)
    assert found
    if right == "admin":
        settings = TeamSettings(team, permission=right, all_repositories=True)
    else:
        settings = TeamSettings(team, units=dict.fromkeys(UNITS, right), all_repositories=True)
    teams.add_member(
        teams.named(found.id, team) or teams.create(found.id, settings), BY_LOGIN[login].id
    )


def _take_over(forge: OwnForge, orgs: Collection[str]) -> None:
    """Make organisations mallory's, and leave them."""
    accounts, teams = forge.shared.embedded.accounts, forge.shared.embedded.teams
    for org in map(forge.org, orgs):
        _join(forge, org, OWNERS, "mallory", "owner")
        found, us = accounts.find(org), accounts.find(US)
        owners = teams.named(found.id, OWNERS) if found else None
        assert owners
        assert us
        teams.remove_member(owners, us.id)


def says(about: str, answer: object) -> Watched:
    """Return a plan by which the forge says something that the embedded one never does."""
    falsehood = Falsehood(200, json.dumps(answer).encode())
    return Watched([Decision(Fault.REFUSE_BEFORE, falsehood)] * 9, about)
