"""
Who agreed to a pull request, who of the forge may, and whether that is everybody.

`agreed` and `missing` judge who agreed, and whether that is everybody who has to. Two proofs count:
a review on the forge, whose account the forge authenticated, and an agreement that Orderkit
recorded in the ledger for a person who proved who they are. Both count for the head that they were
given for, and not from anybody behind the pull request. Membership of groups is what the forge says
now.

The people and organisations that a rule names are judged, too. Anybody may register a login or
create an organisation of a name that a kit's rule, or a group of the platform, already has. So
members of an organisation count only if nobody but the platform decides who they are, as for a
team's organisation (`is_member`), and a login counts only if the platform let its owner in: into an
organisation of its own or of a team (`is_let_in`).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass

from ground.errors import AccessError, RefusedError, shorten
from ground.names import CommitSha, RepoId, TeamName
from ground.objects.kube_objects import annotations_of
from orderkit.core.kit.approval_rules import Need
from orderkit.core.kit.model import Kit
from orderkit.core.order import ledger
from orderkit.core.order.approval import CONTEXT
from orderkit.core.order.ledger import OrderEntry
from orderkit.core.portal.catalog_origins import came_from, is_owned
from orderkit.flows.forge_protection import described, foreign_access
from orderkit.flows.order.ledger_records import agreements
from orderkit.flows.platform import Platform, ledger_snapshot
from orderkit.flows.team.limit_check import team_of
from orderkit.ports.forge import CommitStatus, Forge, ForgeUser, PullRequest, Review, StatusState

LOGIN_ANNOTATION = "orderkit.dev/forge-login"
"""On a User of the portal's catalog: its login on the forge, if that is not its name."""
LOGIN_HINT = (
    f"name the login in the annotation {LOGIN_ANNOTATION} of the User in the portal's catalog, in a"
    " location that spec.portal.peopleFrom of platform.yaml lists"
)

NOT_ON_THE_FORGE = "is not a user of the forge, so nobody can tell whose approval counts"
UNKNOWN_HINT = (
    f"ask for it as a user of the forge (--requester user:default/LOGIN), or {LOGIN_HINT}"
)


def forge_user(platform: Platform, repo: RepoId, requester: str) -> ForgeUser | None:
    """
    Return who a requester is on the forge now; None if nobody has that login.

    Raises:
        RemoteError, NotFoundError: The catalog, or the forge.
    """
    login = _login(platform, requester)
    user = platform.forge.user_with_right(repo, login) if login else None
    return user[0] if user else None


def _login(platform: Platform, requester: str) -> str:
    """
    Return the login of a person on the forge; empty if nothing that counts says it.

    An entity that a location of the platform gave says it. Without one, a person has the login of
    their name, in the namespace ``default`` only.
    """
    name = requester.rpartition("/")[2]
    entity = platform.catalog.entity(requester) if ":" in requester else None
    noted = str(annotations_of(entity).get(LOGIN_ANNOTATION) or "") if entity else ""
    if entity and is_owned(entity, platform.people_from):
        return noted or name
    # people push to repositories of the forge: an entity from there makes nobody anybody
    is_pushed = entity is not None and came_from(entity, platform.forge.base_url)
    # whoever writes an entity chooses its namespace, and may sign in to the portal by it
    namespace = requester.partition(":")[2].partition("/")[0] or "default"
    is_named_so = namespace == "default" and noted.lower() in ("", name.lower())
    return name if is_named_so and not is_pushed else ""


def organisation_problem(platform: Platform, org: str) -> str:
    """
    Return who besides the platform decides who is in an organisation; empty if nobody does.

    Raises:
        RemoteError: The forge.
    """
    files, team = ledger_snapshot(platform), TeamName(org)
    is_team = ledger.team_path(team) in files.blobs
    return _foreign_owners(platform, org, team_of(platform, team, files).adopted if is_team else ())


def _foreign_owners(platform: Platform, org: str, adopted: Collection[str]) -> str:
    try:
        grants = foreign_access(platform, org, adopted=adopted, writers=None)
    except (RefusedError, AccessError):
        return f"organisation {org} is not the platform's"
    owners = [grant for grant in grants if grant.right == "owner"]
    return f"organisation {org} is not the platform's alone: {described(owners)}" if owners else ""


def is_member(platform: Platform, user: ForgeUser, org: str, team: str = "") -> bool:
    """Say whether somebody is in an organisation or its team, and the platform decides who is."""
    return _is_listed(platform.forge, user, org, team) and not organisation_problem(platform, org)


def _is_listed(forge: Forge, user: ForgeUser, org: str, team: str = "") -> bool:
    with suppress(AccessError):  # nobody can be proved to be in a group that we may not see
        return any(member.id == user.id for member in forge.members(org, team))
    return False


def is_let_in(platform: Platform, user: ForgeUser) -> bool:
    """Say whether the platform let somebody in: into its own organisation or that of a team."""
    if user.login.lower() in {holder.lower() for holder in platform.adopted}:
        return True
    teams = ledger.teams(ledger_snapshot(platform).blobs)
    orgs = dict.fromkeys([platform.ledger.owner, platform.pack_repo.owner, *teams])
    return any(
        _is_listed(platform.forge, user, org) and not _foreign_owners(platform, org, ())
        for org in orgs
    )


def approver_problems(platform: Platform, kits: Iterable[Kit]) -> Iterator[tuple[str, str]]:
    """Yield whom kits ask to agree and who is nobody, and what to do about it."""
    for approver in sorted({a for kit in kits for rule in kit.approval.rules for a in rule.by}):
        kind, _, name = approver.partition(":default/")
        if name and kind == "user":
            problem, advice = _person_problem(platform, approver)
        elif name:
            problem, advice = _group_problem(platform, *name.partition(":")[::2])
        else:
            continue
        if problem:
            yield f"{approver}: {problem}", advice


def _person_problem(platform: Platform, approver: str) -> tuple[str, str]:
    user = forge_user(platform, platform.ledger, approver)
    if user is None:
        return "nobody on the forge is that", f"add the user to the forge, or {LOGIN_HINT}"
    if is_let_in(platform, user):
        return "", ""
    advice = (
        f"orderkit team change TEAM --member {user.login}, or accept the login:"
        f" spec.forge.adopted: [{user.login}] in platform.yaml"
    )
    return f"{user.login} is in no organisation of the platform", advice


def _group_problem(platform: Platform, org: str, team: str) -> tuple[str, str]:
    if problem := organisation_problem(platform, org):
        way_out = "spec.forge.adopted: [LOGIN] in platform.yaml"
        return problem, f"remove its other owners on the forge, or accept them: {way_out}"
    if platform.forge.members(org, team):
        return "", ""
    place = f"team {team} of organisation {org}" if team else f"organisation {org}"
    command = f"orderkit team add {org} --limit orders=0 --member LOGIN"
    return f"the forge has no {place}, or nobody is in it", f"for example: {command}"


_DESCRIPTION_MAX = 140
"""GitHub refuses a longer description of a status."""
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
    current = list(_as_now(platform.forge, repo, [*users, *against]))
    supporters = {user.id: user for user in current if user in users}
    return Agreed(
        tuple(u for u in supporters.values() if u.id not in behind),
        tuple(u.login for u in supporters.values() if u.id in behind),
        tuple(user for user in current if user in recorded),
        tuple(user for user in current if user in against),
    )


def _as_now(forge: Forge, repo: RepoId, users: Iterable[ForgeUser]) -> Iterator[ForgeUser]:
    for user in dict.fromkeys(users):
        # the login may be somebody else's by now
        now = forge.user_with_right(repo, user.login)
        # whoever holds an App, an access token or a pipeline could approve twice
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
    forge: Forge, repo: RepoId, commit: CommitSha, pull: PullRequest, lacking: str
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
    forge.set_status(repo, commit, CommitStatus(CONTEXT, state, text, pull.web_url))
