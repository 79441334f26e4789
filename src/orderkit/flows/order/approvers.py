"""
Judge the people and organisations of the forge that a rule names.

Anybody may register a login or create an organisation of a name that a kit's rule, or a group of
the platform, already has. So members of an organisation count only if nobody but the platform
decides who they are, as for a team's organisation, and a login counts only if the platform let its
owner in: into an organisation of its own or of a team.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from contextlib import suppress

from ground.errors import AccessError, RefusedError
from ground.names import RepoId, TeamName
from ground.objects.kube_objects import annotations_of
from orderkit.core.kit.model import Kit
from orderkit.core.order import ledger
from orderkit.core.portal.catalog_origins import came_from, is_owned
from orderkit.flows.foreign_access import described, foreign_access
from orderkit.flows.platform import Platform, ledger_snapshot
from orderkit.flows.team.limit_check import team_of
from orderkit.ports.forge import ForgeUser

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
    their name, in the namespace ``default`` only: whoever writes an entity chooses its namespace,
    and may sign in to the portal by it. So an entity from a repository of the forge, where people
    push, makes nobody anybody, and neither does an annotation from anywhere else.
    """
    name = requester.rpartition("/")[2]
    entity = platform.catalog.entity(requester) if ":" in requester else None
    noted = str(annotations_of(entity).get(LOGIN_ANNOTATION) or "") if entity else ""
    if entity and is_owned(entity, platform.people_from):
        return noted or name
    is_pushed = entity is not None and came_from(entity, platform.forge.base_url)
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
    return _is_listed(platform, user, org, team) and not organisation_problem(platform, org)


def _is_listed(platform: Platform, user: ForgeUser, org: str, team: str = "") -> bool:
    with suppress(AccessError):  # nobody can be proved to be in a group that we may not see
        return any(member.id == user.id for member in platform.forge.members(org, team))
    return False


def is_let_in(platform: Platform, user: ForgeUser) -> bool:
    """Say whether the platform let somebody in: into its own organisation or that of a team."""
    if user.login.lower() in {holder.lower() for holder in platform.adopted}:
        return True
    teams = ledger.teams(ledger_snapshot(platform).blobs)
    orgs = dict.fromkeys([platform.ledger.owner, platform.pack_repo.owner, *teams])
    return any(
        _is_listed(platform, user, org) and not _foreign_owners(platform, org, ()) for org in orgs
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
