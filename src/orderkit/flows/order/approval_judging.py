"""
Judge who agreed to a pull request, and whether that is everybody who has to.

Two proofs count: a review on the forge, whose account the forge authenticated, and an agreement
that Orderkit recorded in the ledger for a person who proved who they are. Both count for the head
that they were given for, and not from anybody behind the pull request. Membership of groups is what
the forge says now.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass

from ground.errors import shorten
from ground.names import CommitSha, RepoId
from orderkit.core.kit.approval_rules import Need
from orderkit.core.order.approval import CONTEXT
from orderkit.core.order.ledger import OrderEntry
from orderkit.flows.order.approval_records import agreements
from orderkit.flows.order.approvers import forge_user, is_let_in, is_member
from orderkit.flows.platform import Platform
from orderkit.ports.forge import CommitStatus, ForgeUser, PullRequest, Review, StatusState

_DESCRIPTION_MAX = 140
WRITES = ("write", "admin", "owner")
"""Rights on a repository that let somebody write to it."""


@dataclass(frozen=True, slots=True)
class Agreed:
    """Who agreed to the head of a pull request."""

    people: tuple[ForgeUser, ...]
    own: tuple[str, ...] = ()
    """Logins of people behind it who agreed, which does not count."""
    recorded: tuple[ForgeUser, ...] = ()
    """Whose agreement the ledger has, behind it or not."""
    against: tuple[ForgeUser, ...] = ()
    """Who asked for changes last."""


def agreed(
    platform: Platform,
    entry: OrderEntry,
    repo: RepoId,
    pull: PullRequest,
    behind: Collection[int],
    *,
    reviews: Sequence[Review] | None = None,
) -> Agreed:
    """
    Return who agreed to the head of a pull request and is none of the people behind it.

    A person counts who has the login now that they had then. The account of an App, of an access
    token or of a pipeline does not count: whoever holds it could approve twice.

    Raises:
        NotFoundError, RemoteError: The forge.
    """
    reviews = platform.forge.reviews(repo, pull.number) if reviews is None else reviews
    last = {review.reviewer.id: review for review in reviews if not review.dismissed}
    head, place = pull.head_commit, str(repo)
    users = [r.reviewer for r in last.values() if (r.state, r.commit) == ("approved", head)]
    against = [r.reviewer for r in last.values() if r.state == "rejected"]
    recorded = [
        ForgeUser(a.account, a.login)
        for a in agreements(platform, entry)
        if (a.repository, a.pull, a.head) == (place, pull.number, head)
    ]
    users += recorded
    current = list(_as_now(platform, repo, [*users, *against]))
    supporters = {user.id: user for user in current if user in users}
    return Agreed(
        tuple(u for u in supporters.values() if u.id not in behind),
        tuple(u.login for u in supporters.values() if u.id in behind),
        tuple(user for user in current if user in recorded),
        tuple(user for user in current if user in against),
    )


def _as_now(platform: Platform, repo: RepoId, users: Iterable[ForgeUser]) -> Iterator[ForgeUser]:
    for user in dict.fromkeys(users):
        now = platform.forge.user_with_right(repo, user.login)
        if now is not None and now[0].id == user.id and not now[0].is_machine:
            yield user


def missing(platform: Platform, entry: OrderEntry, needs: Sequence[Need], who: Agreed) -> str:
    """Return who still has to agree, and why; empty if everybody did."""
    lacking = []
    for need in needs:
        counted = [user for user in who.people if may_agree(platform, entry, need, user)]
        if len(counted) < need.count:
            names = ", ".join(user.login for user in counted)
            lacking.append(f"{need}{f' (so far: {names})' if names else ''}")
    exclusion = f"; {', '.join(who.own)} is behind it and does not count" if who.own else ""
    return f"{'; and '.join(lacking)}{exclusion}" if lacking else ""


def objection(platform: Platform, entry: OrderEntry, needs: Sequence[Need], who: Agreed) -> str:
    """Return which of the people who are asked asked for changes; empty if nobody did."""
    opponents = [
        user.login
        for user in who.against
        if any(may_agree(platform, entry, need, user) for need in needs)
    ]
    return f"{', '.join(opponents)} asked for changes" if opponents else ""


def may_agree(platform: Platform, entry: OrderEntry, need: Need, user: ForgeUser) -> bool:
    """Say whether somebody is one of those whose agreement is needed, as the forge says now."""
    return any(_is_one_of(platform, entry, approver, user) for approver in need.by)


def _is_one_of(platform: Platform, entry: OrderEntry, approver: str, user: ForgeUser) -> bool:
    if approver in ("team", "platform"):
        repo = entry.repository if approver == "team" else platform.ledger
        now = platform.forge.user_with_right(repo, user.login)
        return now is not None and now[0].id == user.id and now[1] in WRITES
    kind, _, name = approver.partition(":default/")
    if kind == "user":
        person = forge_user(platform, platform.ledger, approver)
        return person is not None and person.id == user.id and is_let_in(platform, user)
    org, _, team = name.partition(":")
    return is_member(platform, user, org, team)


def set_approval_status(
    platform: Platform, repo: RepoId, commit: CommitSha, pull: PullRequest, lacking: str
) -> None:
    """
    Make sure that the status of a pull request's head says who still has to agree. Idempotent.

    It is for people: whoever may push can set any status on Gitea, so nothing relies on it.

    Raises:
        NotFoundError, RemoteError: The forge.
    """
    text = f"waits for {lacking}" if lacking else "every approver has approved it"
    text = shorten(text, limit=_DESCRIPTION_MAX).strip()
    state: StatusState = "pending" if lacking else "success"
    platform.forge.set_status(repo, commit, CommitStatus(CONTEXT, state, text, pull.web_url))
