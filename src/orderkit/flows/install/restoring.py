"""
Bring repositories back to the forge from a backup, and reconcile it with a cluster that is newer.

Argo CD is held before anything is written: what it would do with an older Git is told first, and
goes on once somebody accepts exactly that. Repositories that the forge has are never overwritten.
"""

from __future__ import annotations

import hashlib
import json
import shlex
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

from ground.errors import (
    ConflictError,
    InvalidInputError,
    NotFoundError,
    OrderkitError,
    shorten,
)
from ground.names import MAIN, TeamName, check_requester
from ground.objects.kube_objects import APPLICATION, ARGOCD_NAMESPACE, Manifest, dig
from ground.objects.values import ABSENT, to_json
from kubeschema.pruning import default
from orderkit.core.export import authored
from orderkit.core.inheriting_threads import InheritingThreads
from orderkit.core.order import ledger
from orderkit.core.order.change.differences import differences
from orderkit.core.order.end_record import EndRecord
from orderkit.core.order.ledger import OrderEntry
from orderkit.core.platform.backup_file import Backup, MirroredRepository
from orderkit.flows.argocd.commit_pinning import application_at
from orderkit.flows.argocd.refreshing import application_key
from orderkit.flows.forge_protection import refuse_foreign_access
from orderkit.flows.install.backing_up import address, read_backup, repositories
from orderkit.flows.install.delivery_hold import hold, is_held, let_go
from orderkit.flows.order.live_order import find_living, placed_xr, read_xr
from orderkit.flows.order.order_damage import entry_of
from orderkit.flows.order.order_report import own_xr
from orderkit.flows.order.repairing import RepairRequest, repair
from orderkit.flows.platform import (
    Platform,
    RepositorySnapshot,
    get_object,
    ledger_snapshot,
    write_ledger,
)
from orderkit.flows.team.connections import remove_read_credential
from orderkit.flows.team.teams import LEDGER_APPLICATION, add_team
from orderkit.ports.forge import Operation
from orderkit.ports.mirrors import Mirrors

_SHOWN = 40
_MADE = ("crossplane", "compositionRef", "compositionSelector")
"""Fields of spec that Crossplane fills in where Git has nothing."""
Case = Literal["newer", "older", "ended", "pack", "team", "unclear"]
"""
Of an order: ordered after the backup, changed after it, ended after it. Of the pack: published
after it. A team that cannot be set up, and an order that cannot be compared.
"""
OnStep = Callable[[str, str], None]


@dataclass(frozen=True, slots=True)
class RestoreRow:
    """One difference between the restored Git and the cluster."""

    case: Case
    name: str
    """The order, team or repository."""
    what: str
    on_accept: str
    """What happens to it once the report is accepted."""
    otherwise: str = ""
    """What to type for another outcome, before that."""

    def to_json(self) -> dict[str, str]:
        """Return the stable shape of ``--json``."""
        return {
            "case": self.case,
            "name": self.name,
            "what": self.what,
            "onAccept": self.on_accept,
            "otherwise": self.otherwise,
        }


@dataclass(frozen=True, slots=True)
class RestoreRequest:
    """What to restore, for whom, and what was accepted."""

    requester: str
    repository: str = ""
    """``OWNER/NAME``; empty: everything."""
    accept: str = ""
    """The code of a report; empty: none is accepted."""
    ended: tuple[str, ...] = ()
    """Orders in the backup that ended after it."""
    dry_run: bool = False


@dataclass(frozen=True, slots=True)
class Restored:
    """What was written to the forge, and the report."""

    backup: Backup
    written: tuple[str, ...]
    """The repositories that the forge lacked."""
    rows: tuple[RestoreRow, ...]
    is_new_cluster: bool
    """Argo CD delivers nothing of the platform: there is nothing to compare."""
    held: bool = False
    """Argo CD waits for the report to be accepted."""

    @property
    def code(self) -> str:
        """What accepts exactly this report; empty if there is nothing to accept."""
        if not self.rows:
            return ""
        rows = [row.to_json() for row in sorted(self.rows, key=lambda r: (r.case, r.name))]
        return hashlib.sha256(json.dumps(rows, sort_keys=True).encode()).hexdigest()[:12]

    def to_json(self) -> dict[str, Any]:
        """Return the stable shape of ``--json``."""
        return {
            "taken": self.backup.taken,
            "written": list(self.written),
            "newCluster": self.is_new_cluster,
            "held": self.held,
            "report": [row.to_json() for row in self.rows],
            "code": self.code,
        }


def restore(
    platform: Platform, mirrors: Mirrors, request: RestoreRequest, *, on_step: OnStep
) -> Restored:
    """
    Restore what the forge lacks, report what differs, and go on if that was accepted.

    Idempotent, resumable. While the result is held, nothing is delivered and nothing deleted.

    Raises:
        NotFoundError: There is no backup, or it does not have the repository.
        RefusedError: It is another platform's; somebody else owns a name on the forge.
        ConflictError: The report is another one than what was accepted.
        InvalidInputError: `ended` names an order that the report does not call ended.
    """
    check_requester(request.requester)
    backup = read_backup(platform, mirrors)
    if backup is None:
        raise NotFoundError("there is no backup.yaml in the folder", hint="orderkit backup DIR")
    wanted = _wanted(platform, backup, request.repository)
    is_new = get_object(platform.cluster, application_key(LEDGER_APPLICATION)) is None
    lacking = [r for r in wanted if r.head and platform.forge.head(r.id) is None]
    if request.dry_run:
        names = tuple(r.name for r in lacking)
        return Restored(backup, names, (), is_new, held=is_held(platform.cluster))
    if lacking and not is_new:
        on_step("argocd", "held: nothing is delivered until the report is accepted")
        # before anything is written: what it would do with an older Git is told first
        hold(platform.cluster)
    for repository in lacking:
        _write(platform, mirrors, repository)
        on_step(repository.name, f"restored at {repository.head[:8]}")
    for repository in (r for r in wanted if r.archived):
        platform.forge.archive(repository.id)
    team_rows = tuple(_teams(platform, request.requester))
    rows = () if is_new else (*team_rows, *_report(platform, mirrors))
    names = tuple(r.name for r in lacking)
    result = Restored(backup, names, rows, is_new, held=is_held(platform.cluster))
    return _accepted(platform, request, result, on_step) if result.held else result


def _wanted(platform: Platform, backup: Backup, name: str) -> list[MirroredRepository]:
    found = [r for r in repositories(backup, platform) if name in ("", r.name)]
    if not found:
        raise NotFoundError(f"the backup has no repository {name}", hint="see backup.yaml")
    return found


def _write(platform: Platform, mirrors: Mirrors, repository: MirroredRepository) -> None:
    """Make the repository, in an organisation of ours only, and write its branches and tags."""
    repo, forge = repository.id, platform.forge
    if forge.ensure_org(repo.owner) and platform.private:
        remove_read_credential(platform, TeamName(repo.owner))  # of an account that is gone
    for target in (repo.owner, repo):
        if target == repo:
            forge.ensure_repo(repo, description=repository.description, private=repository.private)
        refuse_foreign_access(
            platform,
            target,
            writers=None,
            way_out="spec.forge.adopted in platform.yaml names {holders}",
        )
    mirrors.push(repo, address(platform.forge, repo))


def _teams(platform: Platform, requester: str) -> Iterator[RestoreRow]:
    """Set every team up again: members, protection, webhooks, Argo CD's credential."""
    for team in ledger.teams(ledger_snapshot(platform).blobs):
        try:
            add_team(platform, team, requester=requester)
        except OrderkitError as error:
            yield RestoreRow("team", team, str(error), "stays as it is", error.hint)


# --- comparing


def _report(platform: Platform, mirrors: Mirrors) -> Iterator[RestoreRow]:
    yield from _pack(platform, mirrors)
    files = ledger_snapshot(platform)
    listed = {entry.order: entry for entry in ledger.entries(files.blobs)}
    ended = {path.parts[2] for path in files.blobs if path.name.startswith("tombstone-")}
    applications = {
        str(dig(a, "metadata", "name")): a
        for a in platform.cluster.list(APPLICATION, namespace=ARGOCD_NAMESPACE).items
    }
    living = {e.order: e for a in applications.values() if (e := entry_of(a))}
    for order in sorted(living.keys() - listed.keys() - ended):
        yield RestoreRow(
            "newer",
            order,
            f"team {living[order].team} ordered it after the backup",
            "enters the ledger again, with a repository made from the cluster's XR",
        )
    for order in sorted(listed.keys() - living.keys()):
        yield RestoreRow(
            "ended",
            order,
            "the backup has it, the cluster does not: it ended after the backup",
            "Argo CD makes it again",
            f"add --ended {order}",
        )
    both = sorted(listed.keys() & living.keys())
    with InheritingThreads(thread_name_prefix="restore") as pool:
        for rows in pool.map(
            lambda order: list(_order(platform, listed[order], applications[order], files)), both
        ):
            yield from rows


def _pack(platform: Platform, mirrors: Mirrors) -> Iterator[RestoreRow]:
    root = get_object(platform.cluster, application_key("root")) or {}
    delivered = str(dig(root, "status", "sync", "revision", default="") or "")
    if not delivered or mirrors.contains(platform.pack_repo, delivered):
        return
    if platform.forge.head(platform.pack_repo) != mirrors.head(platform.pack_repo):
        return  # it was published again since
    yield RestoreRow(
        "pack",
        str(platform.pack_repo),
        f"Argo CD delivered {delivered[:8]}, which was published after the backup",
        "the older pack is delivered",
        "orderkit bootstrap --pack DIR --timeout 1s: it publishes, and stops at the held layers",
    )


def _order(
    platform: Platform, entry: OrderEntry, application: Manifest, files: RepositorySnapshot
) -> Iterator[RestoreRow]:
    order = entry.order
    try:
        live = find_living(platform, order, files)
        kinds = {live.kit.name: live.kit.kind}
        _, xr = own_xr(
            order, application, kinds, live.kit.name, lambda k: get_object(platform.cluster, k)
        )
        if xr is None:
            return  # Argo CD makes it again from Git, as at any time
        commit = ledger.delivered_commit(application_at(platform, entry))
        commit = commit or platform.forge.head(entry.repository)
        if commit is None:
            raise NotFoundError(
                f"{entry.repository} has no branch {MAIN}", hint=f"orderkit repair {order}"
            )
        written = placed_xr(live.kit, entry.team, read_xr(platform, live, commit).xr)
    except OrderkitError as error:
        yield RestoreRow(
            "unclear", order, f"cannot be compared: {error}", "stays as the cluster has it",
            error.hint,
        )  # fmt: skip
        return
    ours, theirs = (
        default(live.kit.spec_schema, authored(manifest)["spec"]) for manifest in (written, xr)
    )
    changes = [
        c for c in differences(ours, theirs) if not (c.steps[0] in _MADE and c.old is ABSENT)
    ]
    if changes:
        shown = ", ".join(shorten(str(change), limit=_SHOWN) for change in changes)
        assignments = shlex.join(f"{change.path}={_typed(change.new)}" for change in changes)
        yield RestoreRow(
            "older",
            order,
            f"changed after the backup: {shown}",
            "Argo CD delivers the backup's values",
            f"orderkit change {order} {assignments} --no-wait",
        )


def _typed(value: Any) -> str:
    """Return a value as the command line takes it."""
    return value if isinstance(value, str) else json.dumps(to_json(value))


# --- going on


def _accepted(
    platform: Platform, request: RestoreRequest, result: Restored, on_step: OnStep
) -> Restored:
    """Let Argo CD go on if nothing differs, or if exactly this was accepted."""
    cases: Mapping[str, Case] = {row.name: row.case for row in result.rows}
    for order in request.ended:
        if cases.get(order) != "ended":
            names = ", ".join(name for name, case in cases.items() if case == "ended") or "none"
            rule = "did not end after the backup, as far as the report says"
            raise InvalidInputError("--ended", order, rule, hint=f"those that did: {names}")
    if result.code != request.accept:
        if request.accept:
            raise ConflictError(
                f"the report is not {request.accept} any more, but {result.code or 'empty'};"
                " Argo CD is still held",
                hint="read the report again: the command without --accept prints it",
            )
        return result
    newer = [name for name, case in cases.items() if case == "newer"]
    _end(platform, request)
    for order in newer:
        repair(platform, RepairRequest(order, request.requester))
        on_step(order, "entered again")
    # last: until then nothing is delivered and nothing deleted
    let_go(platform.cluster)
    on_step("argocd", "delivers again")
    return replace(result, held=False)


def _end(platform: Platform, request: RestoreRequest) -> None:
    """Take orders out of the ledger that ended after the backup. Their repositories stay."""
    files = ledger_snapshot(platform)
    for entry in _entries(files, request.ended):
        now = platform.clock.now().isoformat(timespec="seconds")
        application = application_at(platform, entry)
        record = EndRecord(
            order=entry.order,
            requester=request.requester,
            kit=ledger.kit_of(application or {}),
            repository="archive",
            step="closing",
            started_at=now,
            ended_at=now,
            must_be_gone=(),
        )
        write_ledger(
            platform,
            {entry.application_path: None, entry.tombstone_path(now): record.to_yaml()},
            Operation(
                f"restore-{entry.order}-ended",
                request.requester,
                f"{entry.order}: ended after the backup",
            ),
        )
        if platform.forge.repo(entry.repository) is not None:
            platform.forge.archive(entry.repository)


def _entries(files: RepositorySnapshot, orders: Collection[str]) -> list[OrderEntry]:
    return [entry for entry in ledger.entries(files.blobs) if entry.order in orders]
