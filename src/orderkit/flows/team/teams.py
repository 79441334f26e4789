"""
Teams: add, change, show and remove them.

A team is an organisation of the forge with its members' access, a part of the ledger, and the
AppProject and Application that stand in it. Every step is *ensure*: repeating it after a crash
finishes it, repeating it afterwards changes nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Any, Literal

from ground.errors import AccessError, InvalidInputError, NotFoundError, RefusedError
from ground.names import CommitSha, OrderId, TeamName, check_label, check_requester
from ground.objects.kube_objects import (
    APP_PROJECT,
    ARGOCD_NAMESPACE,
    NAMESPACE,
    Manifest,
    ObjectKey,
)
from ground.shapes import changed
from orderkit.core.kit.order_kinds import OrderKinds, kinds_of, read_kinds
from orderkit.core.kit.pack import Pack
from orderkit.core.order import ledger, ledger_applications, team_file, team_limits
from orderkit.core.order.ledger import OrderEntry
from orderkit.core.order.ledger_applications import TeamPlace
from orderkit.core.order.team_file import AgentRight, TeamFile
from orderkit.flows.argocd.commit_pinning import commit_to_pin
from orderkit.flows.argocd.refreshing import application_key, knows_retry_refresh, refresh
from orderkit.flows.forge_protection import protect_orders, refuse_foreign_access
from orderkit.flows.platform import (
    Platform,
    RepositorySnapshot,
    get_object,
    ledger_snapshot,
    published_pack,
    published_prices,
    read_text,
    write_ledger,
)
from orderkit.flows.repeating import until
from orderkit.flows.team.connections import (
    ensure_read_credential,
    ensure_team_webhook,
    remove_read_credential,
)
from orderkit.flows.team.limit_check import check_known, team_of
from orderkit.ports.forge import Forge, Operation, TeamRight
from yamlfiles import yaml11

LEDGER_APPLICATION = "ledger"
"""The Application that delivers ``teams/`` (gitops/apps/ledger.yaml)."""
DEVELOPERS = "developers"
"""The team of the organisation whose members may push to the orders' repositories."""
_NAME_MAX = 58
"""Its namespace is ``team-<name>``, a label of at most 63 characters."""
_FOREIGN = ("default", "argocd", "crossplane-system")


@dataclass(frozen=True, slots=True)
class TeamChange:
    """What to decide about a team; None leaves as it is what was decided before."""

    members: tuple[str, ...] | None = None
    kits: tuple[str, ...] | None = None
    """Empty: every kit."""
    namespaces: tuple[str, ...] | None = None
    limits: Mapping[str, str] = field(default_factory=dict)
    """As the command line takes them: ``orders``, ``orders.KIT`` or ``KIT.FIELD``, and the most."""
    dropped: tuple[str, ...] = ()
    """Limits to drop."""
    over: Literal["refuse", "ask"] | None = None
    """What happens to more than the limits."""
    agents: AgentRight | None = None
    """What AI agents of its members may do."""
    adopted: tuple[str, ...] = ()
    """Who may own the organisation besides our account, in addition to before."""


@dataclass(frozen=True, slots=True)
class TeamAdded:
    """`created` is False when organisation and ledger already had everything."""

    team: TeamName
    created: bool
    commit: CommitSha
    file: TeamFile
    before: TeamFile | None
    """The file before; None: the ledger did not have the team."""


@dataclass(frozen=True, slots=True)
class TeamReport:
    """A team as the ledger has it."""

    file: TeamFile
    kits: tuple[str, ...]
    """What it may order."""
    orders: tuple[OrderId, ...]

    def to_json(self) -> dict[str, Any]:
        """Return the stable shape that the command line answers with."""
        members = self.file.members
        team = self.file.team
        return {
            "team": team,
            "members": None if members is None else list(members),
            "kits": list(self.kits),
            "namespaces": [ledger.team_namespace(team), *self.file.namespaces],
            "limits": self.file.limits.to_json(),
            "agents": self.file.agents,
            "orders": list(self.orders),
        }


@dataclass(frozen=True, slots=True)
class TeamRemoved:
    """`changed` is False when it had been removed before."""

    team: TeamName
    changed: bool


_NOTHING = TeamChange()


def add_team(
    platform: Platform, name: str, *, requester: str, change: TeamChange = _NOTHING
) -> TeamAdded:
    """
    Make sure that a team can order, and apply a change to it. Idempotent.

    Its part of the ledger is brought to what this version and this pack write, the
    Applications of its orders included, in one commit.

    Raises:
        InvalidInputError: A name, kit, limit or namespace that cannot be.
        NotFoundError: A member is not a user of the forge.
        RefusedError: Somebody else has a way into the organisation and was not adopted.
        ConflictError: The ledger was changed by others in every round.
        AccessError: Repositories are private, and there is no credential for Argo CD to read them.
    """
    check_requester(requester)
    team = _check_name(platform, name)
    pack = published_pack(platform)
    snapshot = ledger_snapshot(platform)
    before, is_new = team_of(platform, team, snapshot), ledger.team_path(team) not in snapshot.blobs
    file = _changed_file(platform, before, change, pack)
    created = platform.forge.ensure_org(team)
    # again after it was made: somebody may have been faster
    _refuse_foreign(platform, file, is_new=is_new)
    if file.members is not None:
        _give_access(platform.forge, file)
    created = ensure_read_credential(platform, team) or created
    with suppress(AccessError):  # bootstrap says so
        created = ensure_team_webhook(platform, team) or created
    protect_orders(platform, snapshot, team, pack)
    commit_result = write_ledger(
        platform,
        _contents(platform, file, pack, snapshot),
        Operation(f"team-{team}", requester, f"team {team}: may order"),
        base=snapshot,
    )
    if commit_result.changed:
        refresh(platform.cluster, LEDGER_APPLICATION)
        refresh(platform.cluster, ledger.team_application(team))
    return TeamAdded(
        team,
        created or commit_result.changed,
        commit_result.commit,
        file,
        None if is_new else before,
    )


def change_team(platform: Platform, name: str, *, requester: str, change: TeamChange) -> TeamAdded:
    """
    Change an existing team. Idempotent.

    Raises:
        NotFoundError: There is no such team. Otherwise like `add_team`.
    """
    _existing_team(ledger_snapshot(platform), name)
    return add_team(platform, name, requester=requester, change=change)


def show_team(platform: Platform, name: str) -> TeamReport:
    """
    Report a team's members, kits, limits and orders.

    Raises:
        NotFoundError: There is no such team. InvalidInputError: its file is broken.
    """
    snapshot = ledger_snapshot(platform)
    team = _existing_team(snapshot, name)
    file = team_of(platform, team, snapshot)
    kits = tuple(kit for kit in published_pack(platform).kit_names if file.may_order(kit))
    return TeamReport(file, kits, tuple(ledger.living_orders(snapshot.blobs, team)))


def list_teams(platform: Platform) -> list[TeamName]:
    """Return the teams of the ledger, in order."""
    return list(ledger.teams(ledger_snapshot(platform).blobs))


def check_team(platform: Platform, name: str) -> None:
    """
    Check that the ledger has a team.

    Raises:
        NotFoundError: It has not.
    """
    _existing_team(ledger_snapshot(platform), name)


def remove_team(
    platform: Platform, name: str, *, requester: str, timeout_s: float = 60.0
) -> TeamRemoved:
    """
    Remove a team that has no orders. Idempotent, resumable.

    Its organisation stays, with the archived repositories of its ended orders; its members may
    push to them no more, and Argo CD's credential for them is removed. What ended stays told in the
    ledger.

    Raises:
        RefusedError: It has orders, or is the last team.
        NotFoundError: There never was such a team.
        IncompleteError: Its AppProject or Application is not gone in time.
    """
    check_requester(requester)
    team = TeamName(check_label("team", name))
    snapshot = ledger_snapshot(platform)
    _refuse_orders(team, snapshot)
    if team_of(platform, team, snapshot).members is not None:
        platform.forge.ensure_access(team, DEVELOPERS, right=TeamRight.WRITE, members=())
    paths = (ledger.team_path(team), ledger.apps_keep_path(team), team_file.path_of(team))
    commit_result = write_ledger(
        platform,
        dict.fromkeys(paths),
        Operation(f"team-{team}-removed", requester, f"team {team}: may order no more"),
        base=snapshot,
    )
    refresh(platform.cluster, LEDGER_APPLICATION)
    _await_gone(platform, team, timeout_s)
    with suppress(AccessError, NotFoundError):  # Argo CD does not prune it: XRs lived in it
        platform.cluster.delete(ObjectKey(NAMESPACE, ledger.team_namespace(team)))
    remove_read_credential(platform, team)
    return TeamRemoved(team, commit_result.changed)


# --- deciding


def _check_name(platform: Platform, name: str) -> TeamName:
    team = TeamName(check_label("team", name))
    if len(team) > _NAME_MAX:
        raise InvalidInputError(
            "team",
            name,
            f"is longer than {_NAME_MAX} characters",
            hint=f"choose a name of at most {_NAME_MAX} characters",
        )
    if team in {*_FOREIGN, platform.ledger.owner, platform.pack_repo.owner}:
        raise InvalidInputError(
            "team", name, "is reserved for the platform", hint="choose another name for the team"
        )
    return team


def _existing_team(snapshot: RepositorySnapshot, name: str) -> TeamName:
    team = TeamName(name)
    check_known(team, snapshot.blobs)
    return team


def _changed_file(platform: Platform, file: TeamFile, change: TeamChange, pack: Pack) -> TeamFile:
    """Apply a change to what was decided before."""
    kits = {kit.name: kit for kit in pack.kits()}
    for kit in change.kits or ():
        if kit not in kits:
            hint = f"kits: {', '.join(sorted(kits)) or 'none'}"
            raise InvalidInputError("kit", kit, "is not a kit of this platform's pack", hint=hint)
    for namespace in change.namespaces or ():
        _check_namespace(platform, file.team, namespace)
    return changed(
        file,
        members=_names_or_before(change.members, file.members),
        adopted=tuple(sorted({*file.adopted, *change.adopted})),
        kits=_names_or_before(change.kits, file.kits) or (),
        namespaces=_names_or_before(change.namespaces, file.namespaces) or (),
        limits=changed(
            team_limits.with_limits(
                file.limits, change.limits, change.dropped, kits, _currency(platform, change)
            ),
            over=change.over or file.limits.over,
        ),
        agents=change.agents or file.agents,
    )


def _currency(platform: Platform, change: TeamChange) -> str:
    table = published_prices(platform) if team_file.COST in change.limits else None
    return table.currency if table else ""


def _names_or_before(
    names: Iterable[str] | None, before: tuple[str, ...] | None
) -> tuple[str, ...] | None:
    return before if names is None else tuple(sorted(set(names)))


def _check_namespace(platform: Platform, team: TeamName, namespace: str) -> None:
    """Refuse namespaces that are the platform's, Kubernetes' or another team's."""
    check_label("namespace", namespace)
    other_teams = {ledger.team_namespace(other) for other in list_teams(platform) if other != team}
    if namespace in {*_FOREIGN, *other_teams} or namespace.startswith("kube-"):
        raise InvalidInputError(
            "namespace",
            namespace,
            "is not allowed for teams",
            hint="a team that delivers there could take over the platform",
        )


# --- writing


def _refuse_foreign(platform: Platform, file: TeamFile, *, is_new: bool) -> None:
    """Refuse an organisation that others own; people may join an unmanaged team later."""
    refuse_foreign_access(
        platform,
        file.team,
        adopted=file.adopted,
        writers=file.members or (() if is_new else None),
        is_new=is_new,
        way_out=f"orderkit team add {file.team} --adopt {{holders}}",
    )


def _give_access(forge: Forge, file: TeamFile) -> None:
    try:
        forge.ensure_access(
            file.team, DEVELOPERS, right=TeamRight.WRITE, members=file.members or ()
        )
    except NotFoundError as error:
        hint = "name users of the forge; 'orderkit up --user NAME=TEAM' makes one on this machine"
        raise NotFoundError(str(error), hint=hint) from error


def _contents(
    platform: Platform, file: TeamFile, pack: Pack, snapshot: RepositorySnapshot
) -> dict[PurePosixPath, str | None]:
    team, url = file.team, platform.forge.base_url
    namespaces = {*file.namespaces, *placed_namespaces(pack, file)}
    windows = {kit.name: kit.windows for kit in pack.kits() if kit.windows}
    team_place = TeamPlace(
        team, url, platform.ledger, _kinds(pack, file), tuple(namespaces), windows
    )
    contents: dict[PurePosixPath, str | None] = {
        ledger.team_path(team): ledger_applications.team_file(team_place),
        ledger.apps_keep_path(team): "",
        team_file.path_of(team): None if file.is_plain else file.to_yaml(),
    }
    return contents | _orders(platform, team, pack, snapshot)


def _kinds(pack: Pack, file: TeamFile) -> OrderKinds:
    if file.kits:
        return kinds_of(kit for kit in pack.kits() if kit.name in file.kits)
    return read_kinds(pack.files) or kinds_of(pack.kits())


def placed_namespaces(pack: Pack, file: TeamFile) -> Iterator[str]:
    """
    Yield the namespaces, as patterns, in which the team's kits say that their XRs live.

    Which of them an order may be in, its fields say, and the kit's policy holds it to that.
    """
    for kit in pack.kits():
        if kit.namespaced and kit.namespace_parts and file.may_order(kit.name):
            yield "".join(text + ("*" if path else "") for text, path in kit.namespace_parts)


def _orders(
    platform: Platform, team: TeamName, pack: Pack, snapshot: RepositorySnapshot
) -> dict[PurePosixPath, str | None]:
    """
    Write the Applications of a team's orders as this version does.

    The commit that one names stays: this delivers nothing that waits on ``main``.
    """
    contents: dict[PurePosixPath, str | None] = {}
    refreshes = knows_retry_refresh(platform.cluster)
    kits = {kit.name: kit for kit in pack.kits()}
    for order in ledger.living_orders(snapshot.blobs, team):
        entry = OrderEntry(team, order)
        if entry.waiting_path in snapshot.blobs:
            continue  # somebody wrote it although nobody agreed; `flows.approval` decides
        path, at = entry.application_path, snapshot.commit
        text = read_text(platform.forge, platform.ledger, path, at) or ""
        before = _readable(text, entry)
        kit = ledger.kit_of(before)
        if kit:
            commit = ledger.delivered_commit(before)
            if commit is None and kit in kits:
                commit = commit_to_pin(platform.forge, entry, kits[kit])
            application = ledger_applications.order_application(
                entry,
                kit=kit,
                forge_url=platform.forge.base_url,
                commit=commit,
                stage="ending" if entry.end_path in snapshot.blobs else "living",
                refreshes=refreshes,
                recorded=before,
            )
            contents[entry.application_path] = yaml11.dump(application)
    return contents


def _readable(text: str, entry: OrderEntry) -> Manifest:
    """Return an order's Application; empty if its file is not readable."""
    try:
        return yaml11.load(text, name=str(entry.application_path), schema={})
    except InvalidInputError:
        return {}


# --- removing


def _refuse_orders(team: TeamName, snapshot: RepositorySnapshot) -> None:
    has = ledger.living_orders(snapshot.blobs, team)
    ending = [
        path.parts[2]
        for path in snapshot.blobs
        if path.match(f"data/{team}/*/end.yaml") and path.parts[2] not in has
    ]
    ending += [e.order for e in ledger.waiting_orders(snapshot.blobs) if e.team == team]
    if has or ending:
        names = ", ".join(sorted([*has, *ending])[:5])
        raise RefusedError(
            f"team {team} has {len(has) + len(ending)} orders: {names}",
            hint="end them first: orderkit destroy ORDER",
        )
    if list(ledger.teams(snapshot.blobs)) == [team]:
        raise RefusedError(
            f"team {team} is the last one: Argo CD does not prune a folder that becomes empty",
            hint="add another team first",
        )
    is_known = any(team in path.parts[:2] for path in snapshot.blobs)
    if not is_known:
        raise NotFoundError(f"team '{team}' is not in the ledger", hint="see 'orderkit team list'")


def _await_gone(platform: Platform, team: TeamName, timeout_s: float) -> None:
    keys = (
        application_key(ledger.team_application(team)),
        ObjectKey(APP_PROJECT, team, ARGOCD_NAMESPACE),
    )
    until(
        platform.clock,
        lambda: [key for key in keys if get_object(platform.cluster, key) is not None],
        lambda remaining: not remaining,
        timeout_s=timeout_s,
        goal=f"team {team}: leaving the cluster",
        why_not=lambda remaining: f"still there: {', '.join(map(str, remaining))}",
    )
