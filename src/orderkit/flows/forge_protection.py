"""
Keep others out of what Orderkit uses on the forge: its organisations, and ``main`` of orders.

`refuse_foreign_access` refuses organisations and repositories into which somebody else has a way.
Anybody who may create organisations could have made one of a name that a platform will use, and
would own what is put there. So whatever exists is checked before it is used, and again after it was
made, because somebody may have been faster.

`protect_main` protects ``main`` of an order's repository if its kit says who may change what, or
how. Without that, a push would pass by ``how: review`` and ``who``. On a protected branch only the
platform's account pushes and merges; it asks the kit's rules first. What a kit's changes allow
everybody of the team to do directly needs no protection.

`forbid_squash` keeps every order's pull requests from being squashed: the forge would write a new
commit, without the signature that proves who asked.
"""

from __future__ import annotations

import shlex
from collections.abc import Collection, Iterator
from contextlib import suppress

from ground.errors import AccessError, MovedError, OrderkitError, RefusedError
from ground.names import MAIN, RepoId
from orderkit.core.inheriting_threads import InheritingThreads
from orderkit.core.kit.kit_file import How
from orderkit.core.kit.model import Kit
from orderkit.core.kit.pack import Pack
from orderkit.core.order import approval, ledger
from orderkit.core.order.ledger import OrderEntry
from orderkit.flows.platform import Platform, RepositorySnapshot, published_pack
from orderkit.ports.forge import AccessGrant, Forge, Repository

_SHOWN = 5


class ForeignAccessError(RefusedError):
    """Somebody else has a way into what is about to be used."""


def foreign_access(
    platform: Platform,
    target: str | RepoId,
    *,
    adopted: Collection[str] = (),
    writers: Collection[str] | None = (),
    is_new: bool = False,
    seen: Repository | None = None,
) -> list[AccessGrant]:
    """
    Return the ways into an organisation or repository that nobody decided on.

    Args:
        seen: The repository if it was just read.
        adopted: Holders that were accepted, besides those of platform.yaml.
        writers: Logins that may write, but own nothing; None: whoever may write.
        is_new: It is used for the first time: then webhooks count too. Later, people may add some,
            and they cannot write.

    Raises:
        RefusedError: Our account is not even a member of the organisation.
    """
    ours = (f"webhook:{platform.webhook.url}",) if platform.webhook else ()
    accepted = {holder.lower() for holder in (*adopted, *platform.adopted, *ours)}
    may_write = None if writers is None else {login.lower() for login in writers}

    def is_decided(grant: AccessGrant) -> bool:
        if grant.holder.lower() in accepted:
            return True
        if grant.right == "listen":
            return not is_new
        is_login = ":" not in grant.holder
        allowed = may_write is None or grant.holder.lower() in may_write
        return grant.right == "write" and is_login and allowed

    grants = platform.forge.foreign_access(target, seen)
    return [grant for grant in grants if not is_decided(grant)]


def refuse_foreign_access(
    platform: Platform,
    target: str | RepoId,
    *,
    adopted: Collection[str] = (),
    writers: Collection[str] | None = (),
    is_new: bool = False,
    way_out: str = "--adopt {holders}",
    seen: Repository | None = None,
) -> None:
    """
    Refuse a target with ways in that nobody decided on; see `foreign_access`.

    Args:
        way_out: How to accept them; ``{holders}`` stands for their names.

    Raises:
        ForeignAccessError: Names each holder and right, or our account is not even a member.
    """
    try:
        grants = foreign_access(
            platform, target, adopted=adopted, writers=writers, is_new=is_new, seen=seen
        )
    except RefusedError as error:
        raise ForeignAccessError(str(error), hint=error.hint) from error
    if grants:
        kind = "organisation" if isinstance(target, str) else "repository"
        names = [grant.holder for grant in grants]
        # A stranger may have chosen a name that the shell, or --adopt, would read as several.
        is_adoptable = not any("," in name for name in names)
        holders = ",".join(map(shlex.quote, names))
        acceptance = f", or accept them: {way_out.format(holders=holders)}"
        raise ForeignAccessError(
            f"{kind} {target} is not the platform's alone: {described(grants)}",
            hint=f"remove them on the forge{acceptance if is_adoptable else ''}",
        )


def described(grants: Collection[AccessGrant]) -> str:
    """Return the holders with their rights, on one line."""
    texts = [f"{grant.holder} ({grant.right})" for grant in grants][:_SHOWN]
    more = len(grants) - len(texts)
    return ", ".join(texts) + (f" and {more} more" if more > 0 else "")


CONTEXT = "orderkit/review"
"""The status of a pull request's head: success if its kit lets it be merged."""
TEAM = "team"


def needs_protection(kit: Kit) -> bool:
    """Say whether a push to ``main`` could bypass what the kit demands of a change."""
    changes = kit.changes
    return bool(kit.approval.rules) or any(
        change.how is How.REVIEW or TEAM not in change.who for change in changes
    )


def checks_of(kit: Kit) -> tuple[str, ...]:
    """Return the statuses without which the forge merges nothing into ``main``."""
    return (CONTEXT, approval.CONTEXT) if kit.approval.rules else (CONTEXT,)


def protect_main(forge: Forge, repo: RepoId, kit: Kit) -> bool:
    """
    Make sure that ``main`` is protected if the kit needs it. Idempotent. True if it was not.

    Raises:
        AccessError: Our credentials are no admin's of the repository.
        RefusedError: Another rule of the repository counts before ours.
    """
    return needs_protection(kit) and forge.protect_branch(repo, MAIN, checks=checks_of(kit))


def forbid_squash(forge: Forge, repo: RepoId, seen: Repository | None = None) -> bool:
    """
    Make sure that no pull request is squashed, if we administer the repository. Idempotent.

    Returns whether that was possible before. Where we may not, ``doctor`` says so.

    Args:
        seen: The repository if it was just read; saves one request.
    """
    with suppress(AccessError):
        return forge.forbid_squash(repo, seen)
    return False


def protect_orders(
    platform: Platform,
    ledger_files: RepositorySnapshot,
    team: str | None = None,
    pack: Pack | None = None,
) -> int:
    """Protect the living orders, of one team or all; return how many lacked something."""
    squashing = squashing_orders(platform.forge, ledger_files, team)
    changed = {entry for entry in squashing if forbid_squash(platform.forge, entry.repository)}
    needy = orders_in_need(platform, ledger_files, team, pack)
    changed |= {
        entry for entry, kit in needy if protect_main(platform.forge, entry.repository, kit)
    }
    return len(changed)


def unprotected_orders(platform: Platform, ledger_files: RepositorySnapshot) -> list[OrderEntry]:
    """Return the living orders whose main branch is not protected although their kit needs it."""
    return [
        entry
        for entry, kit in orders_in_need(platform, ledger_files)
        if not platform.forge.is_protected(entry.repository, MAIN, checks=checks_of(kit))
    ]


def squashing_orders(
    forge: Forge, ledger_files: RepositorySnapshot, team: str | None = None
) -> list[OrderEntry]:
    """Return the living orders whose pull requests the forge would squash, of one team or all."""
    entries = [e for e in ledger.entries(ledger_files.blobs) if team in (None, e.team)]

    def may_squash(entry: OrderEntry) -> bool:
        with suppress(OrderkitError):  # 'status' of the order says what is wrong
            repository = forge.repo(entry.repository)
            return bool(repository and repository.may_squash and not repository.archived)
        return False

    with InheritingThreads() as threads:
        answers = threads.map(may_squash, entries)
        return [entry for entry, answer in zip(entries, answers, strict=True) if answer]


def orders_in_need(
    platform: Platform,
    ledger_files: RepositorySnapshot,
    team: str | None = None,
    pack: Pack | None = None,
) -> Iterator[tuple[OrderEntry, Kit]]:
    """Yield the living orders whose main branch their kit wants to be protected."""
    kits = {kit.name: kit for kit in (pack or published_pack(platform)).kits()}
    for entry in ledger.entries(ledger_files.blobs):
        kit = kits.get(ledger.named_kit(entry.order, kits))
        if kit is None or not needs_protection(kit) or team not in (None, entry.team):
            continue
        repository = None
        with suppress(MovedError):  # 'status' of the order says where to
            repository = platform.forge.repo(entry.repository)
        if repository is None or repository.archived or repository.empty:
            continue
        # another default branch alone is no way around protection: main may still be there
        if repository.default_branch == MAIN or platform.forge.head(entry.repository):
            yield entry, kit
