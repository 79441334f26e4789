"""
Refuse organisations and repositories of the forge into which somebody else has a way.

Anybody who may create organisations could have made one of a name that a platform will use, and
would own what is put there. So whatever exists is checked before it is used, and again after it was
made, because somebody may have been faster.
"""

from __future__ import annotations

import shlex
from collections.abc import Collection

from ground.errors import RefusedError
from ground.names import RepoId
from orderkit.flows.platform import Platform
from orderkit.ports.forge import AccessGrant

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
) -> list[AccessGrant]:
    """
    Return the ways into an organisation or repository that nobody decided on.

    Args:
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

    grants = platform.forge.foreign_access(target)
    return [grant for grant in grants if not is_decided(grant)]


def refuse_foreign_access(
    platform: Platform,
    target: str | RepoId,
    *,
    adopted: Collection[str] = (),
    writers: Collection[str] | None = (),
    is_new: bool = False,
    way_out: str = "--adopt {holders}",
) -> None:
    """
    Refuse a target with ways in that nobody decided on; see `foreign_access`.

    Args:
        way_out: How to accept them; ``{holders}`` stands for their names.

    Raises:
        ForeignAccessError: Names each holder and right, or our account is not even a member.
    """
    try:
        grants = foreign_access(platform, target, adopted=adopted, writers=writers, is_new=is_new)
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
