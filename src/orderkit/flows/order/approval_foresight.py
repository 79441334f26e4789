"""
Say beforehand who will have to approve an order or a change, and whether anyone could.

Only foresight: what counts in the end, ``approval_judging`` judges by who did approve.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ground.errors import AccessError, RefusedError
from orderkit.core.kit.approval_rules import Need, sentence
from orderkit.core.order.ledger import OrderEntry
from orderkit.flows.order.approval_needs import Asking
from orderkit.flows.order.approvers import forge_user, is_let_in, organisation_problem
from orderkit.flows.platform import Platform


def foreseen(platform: Platform, entry: OrderEntry, needs: Sequence[Need], asking: Asking) -> str:
    """
    Return who will have to approve, and why; empty if no one.

    Raises:
        RemoteError: The forge.
    """
    warning = hopeless(platform, entry, needs, asking)
    return "; ".join(filter(None, (sentence(needs), warning)))


def hopeless(platform: Platform, entry: OrderEntry, needs: Sequence[Need], asking: Asking) -> str:
    """
    Return a warning if no one could give an approval that is needed; empty if someone could.

    Whoever asks does not count. Who is in a group that we may not see is not known, so there is no
    warning.
    """
    mine = forge_user(platform, platform.ledger, asking.requester) if needs else None
    me = mine.login.lower() if mine else ""
    for need in needs:
        try:
            people = set().union(*(_logins(platform, entry, approver) for approver in need.by))
        except (AccessError, RefusedError):
            continue
        others = people - {me, platform.forge.user().lower()}
        if len(others) < need.count:
            why = f"{', '.join(sorted(others)) or 'no one'} could"
            if me in people and not others:
                why = f"only {me}, who asks for it, is asked"
            return f"no one can give that approval now: {need.count} must, and {why}"
    return ""


def _logins(platform: Platform, entry: OrderEntry, approver: str) -> Iterator[str]:
    """Yield those whom a rule names, as far as the forge says who that is."""
    kind, _, name = approver.partition(":default/")
    if kind == "user":
        person = forge_user(platform, platform.ledger, approver)
        if person is not None and is_let_in(platform, person):
            yield person.login.lower()
    elif not name:
        repo = entry.repository if kind == "team" else platform.ledger
        for target in (repo.owner, repo):
            for grant in platform.forge.foreign_access(target):
                if grant.right != "listen" and ":" not in grant.holder:
                    yield grant.holder.lower()
    elif not organisation_problem(platform, name.partition(":")[0]):
        org, _, team = name.partition(":")
        yield from (member.login.lower() for member in platform.forge.members(org, team))
