"""A forge of people, their rights and their organisations, and the catalog that knows them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from bareplatform import platform_of
from heldfiles import HeldFiles

from ground.errors import AccessError, RefusedError
from ground.names import CommitSha, RepoId
from orderkit.flows.platform import Platform
from orderkit.ports.access import AccessGrant
from orderkit.ports.pulls import CommitStatus, ForgeUser, Review

LEDGER = RepoId("platform", "ledger")
PEOPLE = EVE, FRANK, CAROL, BOT = tuple(
    ForgeUser(number, login)
    for number, login in enumerate(("eve", "frank", "carol", "bot"), start=1)
)


@dataclass
class PeopleForge(HeldFiles):
    """A forge of people, their rights on repositories, and members of organisations."""

    people: Mapping[str, ForgeUser] = field(default_factory=dict)
    rights: Mapping[str, str] = field(default_factory=dict)
    """By login, of every repository."""
    groups: Mapping[str, Sequence[ForgeUser]] = field(default_factory=dict)
    """By organisation, or organisation and team."""
    grants: Mapping[str, Sequence[tuple[str, Any]]] = field(default_factory=dict)
    """By organisation or repository: who else has which right."""
    strange: frozenset[str] = frozenset()
    """Organisations that are not ours at all."""
    unseen: frozenset[str] = frozenset()
    given: Mapping[tuple[RepoId, int], Sequence[Review]] = field(default_factory=dict)
    statuses: list[tuple[CommitSha, CommitStatus]] = field(default_factory=list)

    def user_with_right(self, repo: RepoId, login: str) -> tuple[ForgeUser, str] | None:
        right = self.rights.get(f"{login}@{repo.owner}", self.rights.get(login, "read"))
        return (self.people[login], right) if login in self.people else None

    def members(self, org: str, team: str = "") -> Sequence[ForgeUser]:
        if org in self.unseen:
            raise AccessError(f"{org}: 403")
        return self.groups.get(f"{org}:{team}" if team else org, ())

    def user(self) -> str:
        return "Orderkit"

    def foreign_access(self, target: object, _seen: object = None) -> Sequence[AccessGrant]:
        if str(target) in self.strange:
            raise RefusedError(f"{target} is not ours")
        return [AccessGrant(str(target), *grant) for grant in self.grants.get(str(target), ())]

    def reviews(self, repo: RepoId, number: int) -> Sequence[Review]:
        return self.given.get((repo, number), ())

    def set_status(self, _repo: RepoId, commit: CommitSha, status: CommitStatus) -> None:
        self.statuses.append((commit, status))


class Entities:
    """A portal's catalog."""

    def __init__(self, entities: Mapping[str, Mapping[str, str]]) -> None:
        self._entities = entities

    def entity(self, reference: str) -> Mapping[str, Any] | None:
        found = self._entities.get(reference)
        return None if found is None else {"metadata": {"annotations": dict(found)}}


def people_forge(files: Mapping[str, str] | None = None, **parts: Any) -> PeopleForge:
    everybody = {user.login: user for user in PEOPLE}
    return PeopleForge({LEDGER: files or {}}, **{"people": everybody, **parts})


def people_platform(
    of: PeopleForge, entities: Mapping[str, Mapping[str, str]] | None = None, **parts: Any
) -> Platform:
    return platform_of(None, forge=of, catalog=Entities(entities or {}), **parts)
