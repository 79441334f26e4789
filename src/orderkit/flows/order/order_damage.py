"""
Find what was done to orders past Orderkit: in the ledger, on the forge, in the cluster.

Most of it Argo CD and Crossplane show as a symptom elsewhere, or not at all: an order whose file
left the ledger lives on, one whose ``main`` was moved back is Ready. Each finding says what
happened, who did it as far as Git knows, and which command helps. ``flows.order.repairing`` mends
what it safely can. `damaged_orders` looks at all orders of a platform at little cost. Only reads.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import PurePosixPath

from ground.errors import InvalidInputError, MovedError, NotFoundError, OrderkitError
from ground.names import LABEL, MAIN, CommitSha, OrderId, RepoId
from ground.objects.kube_objects import APPLICATION, ARGOCD_NAMESPACE, Manifest, dig, metadata
from orderkit.core.inheriting_threads import InheritingThreads
from orderkit.core.kit.pack import Pack
from orderkit.core.order import ledger, order_file
from orderkit.core.order.added_documents import INTACT
from orderkit.core.order.damage import (
    PUSH,
    Damage,
    DamageKind,
    delivered_commits,
    in_cluster,
    in_entry,
    labelled_entry,
    source_order,
    state_with,
)
from orderkit.core.order.lease import lease_annotations, read_record, time_text
from orderkit.core.order.ledger import OrderEntry
from orderkit.flows.argocd.commit_pinning import application_at, documents_of
from orderkit.flows.argocd.refreshing import application_key
from orderkit.flows.order import order_report
from orderkit.flows.order.commit_judging import CheckedOrder, check_commit
from orderkit.flows.order.expiry_note import noted_expiry
from orderkit.flows.order.order_report import NOTHING_KNOWN, KnownReads, OrderReport
from orderkit.flows.order.repository_damage import NEWEST, by_whom, on_forge
from orderkit.flows.order.tracing import trace_of
from orderkit.flows.platform import (
    Platform,
    get_object,
    ledger_snapshot,
    published_pack,
)
from orderkit.ports.cluster import Cluster
from orderkit.ports.forge import Forge
from yamlfiles.manifests import ManifestError


@dataclass(frozen=True, slots=True)
class DamagedOrder:
    """An order with everything that was found, and what the cluster has of it."""

    entry: OrderEntry
    kit: str
    application: Manifest | None
    damages: tuple[Damage, ...]


ForgeLook = Callable[[OrderReport], Iterable[Damage]]
"""Says what was done to an order's repository, as `on_forge` does."""
IsListed = Callable[[PurePosixPath], bool]
"""Says whether the ledger has a file."""


def status(
    platform: Platform,
    order: str,
    known: KnownReads = NOTHING_KNOWN,
    forge_look: ForgeLook | None = None,
) -> OrderReport:
    """
    Report one order like `order_report.status`, and what was done to it past Orderkit.

    Args:
        forge_look: Looks at the order's repository; None: `on_forge` does.

    Raises:
        NotFoundError: Neither ledger nor Argo CD has such an order.
    """
    ledger_files = known.ledger_files
    is_listed = ledger_files.blobs.__contains__ if ledger_files else _reads_of(platform)
    try:
        report = order_report.status(platform, order, known)
    except NotFoundError:
        entry = unlisted_entry(platform.cluster, order)
        if entry is None:
            raise
        report = order_report.report_of(platform, entry, ending=False)
    else:
        path = report.entry.application_path  # read just now
        is_listed = partial(_is_either, path, is_listed)
    if report.state.phase == "Ending":
        return report
    at = ledger_files.commit if ledger_files else MAIN
    damaged = look(platform, report, is_listed, at, forge_look)
    return with_damages(report, damaged.damages)


def _reads_of(platform: Platform) -> IsListed:
    return lambda path: platform.forge.read(platform.ledger, path, MAIN) is not None


def _is_either(known: PurePosixPath, is_listed: IsListed, path: PurePosixPath) -> bool:
    return path == known or is_listed(path)


def with_damages(report: OrderReport, damages: tuple[Damage, ...]) -> OrderReport:
    """Return a report whose reason and advice begin with the damages."""
    return replace(report, state=state_with(report.state, report.entry.order, damages))


def unlisted_entry(cluster: Cluster, order: str) -> OrderEntry | None:
    """Return an order that Argo CD still delivers although the ledger has no file of it."""
    if not LABEL.match(order):
        return None
    application = get_object(cluster, application_key(OrderId(order)))
    return entry_of(application) if application else None


def entry_of(application: Manifest) -> OrderEntry | None:
    """Return the order of an Application; None if it is not an order's, or about to go."""
    entry, meta = labelled_entry(application), metadata(application)
    if entry is None or entry.order != meta.get("name") or meta.get("deletionTimestamp"):
        return None
    if dig(application, "spec", "syncPolicy", "automated", "allowEmpty"):
        return None  # its end has begun
    return entry


def look(
    platform: Platform,
    report: OrderReport,
    is_listed: IsListed | None = None,
    at: str = MAIN,
    forge_look: ForgeLook | None = None,
) -> DamagedOrder:
    """
    Look at everything that belongs to an order; about seven requests to the forge if all is well.

    Args:
        is_listed: Says whether the ledger has a file; None: two more say it.
        at: Branch or commit of the ledger; the client remembers files of a commit.
        forge_look: See `status`.
    """
    entry, application, xr = report.entry, report.sources.application, report.sources.xr
    is_listed = is_listed or _reads_of(platform)
    edits = list(_edits(platform, entry, application, is_listed, at))
    if any(edit.kind is DamageKind.COPY for edit in edits):
        return DamagedOrder(entry, report.kit, application, tuple(edits))  # it is no order
    damages = [
        *edits,
        *_in_ledger(platform, entry, is_listed, is_proposed=report.state.phase == "Waiting"),
        *(forge_look(report) if forge_look else on_forge(platform, entry, report)),
        *in_cluster(application, xr, report.state.head),
        *_lease(platform, entry, application),
    ]
    return DamagedOrder(entry, report.kit, application, tuple(damages))


def _edits(
    platform: Platform,
    entry: OrderEntry,
    application: Manifest | None,
    is_listed: IsListed,
    at: str,
) -> Iterator[Damage]:
    """Yield how the ledger's entry was edited or copied, if Argo CD has that or nothing of it."""
    path, url = entry.application_path, platform.forge.base_url
    file = platform.forge.read(platform.ledger, path, at)  # 'status' has read it
    try:
        own, added = documents_of(file)
    except ManifestError as error:
        blocked = f"Argo CD takes nothing new of team {entry.team}"
        yield Damage(DamageKind.LEDGER, f"{error}{_editor(platform, path)}: {blocked}")
        return
    written = own or {}
    if file and not written:
        yield Damage(DamageKind.LEDGER, f"{path} has no Application{_editor(platform, path)}")
    if application is not None and not (added or any(in_entry(entry, application, url))):
        return
    whose = labelled_entry(written)
    has_original = bool(whose and is_listed(whose.application_path))
    edits = in_entry(entry, written, url, has_original=has_original, added=added) if written else ()
    for damage in edits:
        if damage.kind is DamageKind.COPY:
            yield damage
        elif whose := _copied(platform.forge, entry, written, is_listed):
            remedy = f"git rm {path}"
            what = f"{entry.order} delivers {whose.repository}'s repository: {remedy}"
            yield Damage(DamageKind.COPY, what, f"{remedy}; {PUSH}")
        else:
            yield replace(damage, what=f"{damage.what}{_editor(platform, path)}")


def _editor(platform: Platform, path: PurePosixPath) -> str:
    commits = platform.forge.commits(platform.ledger, path=path, limit=1)
    return f" ({by_whom(platform, platform.ledger, commits[0])})" if commits else ""


def _copied(
    forge: Forge, entry: OrderEntry, written: Manifest, is_listed: IsListed
) -> OrderEntry | None:
    """Return the order that an entry was copied from, labels and all; None if it has its own."""
    whose = source_order(written, forge.base_url)
    if whose is None or whose == entry or not is_listed(whose.application_path):
        return None
    with suppress(MovedError):  # it is the order's own
        return whose if forge.repo(entry.repository) is None else None
    return None


def _in_ledger(
    platform: Platform, entry: OrderEntry, is_listed: IsListed, *, is_proposed: bool
) -> Iterator[Damage]:
    team_path = ledger.team_path(entry.team)
    if not is_listed(team_path):
        yield Damage(
            DamageKind.TEAM,
            f"team {entry.team} is not in the ledger any more:"
            f" {_who_removed(platform, platform.ledger, team_path)}",
        )
    path = entry.application_path
    if not is_proposed and not is_listed(path):  # approval is what brings a proposed one there
        yield Damage(
            DamageKind.LEDGER,
            f"{platform.ledger} has no {path} any more:"
            f" {_who_removed(platform, platform.ledger, path)};"
            " nothing was deleted, because only 'orderkit destroy' ends an order",
        )


def _who_removed(platform: Platform, repo: RepoId, path: PurePosixPath) -> str:
    commits = platform.forge.commits(repo, path=path, limit=1)
    return f"removed {by_whom(platform, repo, commits[0])}" if commits else "removed"


def _lease(platform: Platform, entry: OrderEntry, application: Manifest | None) -> Iterator[Damage]:
    """Compare what the order's file says about its expiry with the ledger, which counts."""
    if not lease_annotations(application):
        return
    try:
        granted = application_at(platform, entry)
        record = read_record(granted)
        noted = noted_expiry(platform, entry.order) if record else None
    except InvalidInputError as error:
        remedy = f"orderkit lease extend {entry.order} 1d --reason 'its record was broken'"
        yield Damage(DamageKind.LEASE, f"its lease in the ledger cannot be read: {error}", remedy)
        return
    except OrderkitError as error:
        if error.retryable:
            raise
        return  # its repository, its XR or the ledger's file is damaged: that is reported
    if record and noted != time_text(record.expires):
        says = f"says that it expires at {noted}" if noted else "does not say when it expires"
        yield Damage(
            DamageKind.LEASE,
            f"its file {says}; the ledger counts: {time_text(record.expires)}",
        )


def damaged_orders(platform: Platform, reports: Sequence[OrderReport]) -> Iterator[OrderReport]:
    """
    Yield each order with its damages told, and those that only Argo CD still knows.

    An order that is Ready costs about five requests to the forge, and one to the cluster for each
    of its parts; only if these show a sign of damage, or if it is not Ready, is everything looked
    at.
    """
    listed = {report.entry.order for report in reports}
    applications = platform.cluster.list(APPLICATION, namespace=ARGOCD_NAMESPACE).items
    unlisted = [
        order_report.report_of(platform, entry, ending=False)
        for application in applications
        if (entry := entry_of(application)) and entry.order not in listed
    ]
    is_listed = ledger_snapshot(platform).blobs.__contains__
    pack = published_pack(platform)
    with InheritingThreads() as threads:
        yield from threads.map(partial(_told, platform, pack, is_listed), (*reports, *unlisted))


def _told(platform: Platform, pack: Pack, is_listed: IsListed, report: OrderReport) -> OrderReport:
    if report.state.phase == "Ending":
        return report
    try:
        report = trace_of(platform, report).report
        if report.state.ready and not _has_signs(platform.forge, pack, is_listed, report):
            return report
        whole = order_report.report_of(platform, report.entry, ending=False)
        has_more = report.sources.file.fault or (whole.check and whole.check.errors)
        report = whole if has_more else report
        return with_damages(report, look(platform, report, is_listed).damages)
    except OrderkitError as error:
        state = replace(report.state, phase="Failing", reason=str(error), advice=error.hint)
        return replace(report, state=state)


def _has_signs(forge: Forge, pack: Pack, is_listed: IsListed, report: OrderReport) -> bool:
    """Say whether something about a Ready order is unusual enough to look at all of it."""
    paths = (report.entry.application_path, ledger.team_path(report.entry.team))
    if not all(map(is_listed, paths)):
        return True
    sources = report.sources
    if sources.file != INTACT or any(in_cluster(sources.application, sources.xr, None)):
        return True
    try:
        return any(_forge_signs(forge, pack, report))
    except (MovedError, NotFoundError):
        return True


def _forge_signs(forge: Forge, pack: Pack, report: OrderReport) -> Iterator[bool]:
    """Yield what the forge says at little cost: a request or two each."""
    repo = report.entry.repository
    repository = forge.repo(repo)
    yield repository is None or repository.archived or repository.default_branch != MAIN
    yield len(forge.commits(repo, path=order_file.PATH, limit=2)) != 1
    checked = CheckedOrder.of(report.entry, pack, report.kit, report.sources.xr)
    if checked and report.state.revision:
        yield bool(check_commit(forge, checked, CommitSha(report.state.revision)).errors)
    if before := set(delivered_commits(report.sources.application)[:-1]):
        recent = {commit.id for commit in forge.commits(repo, limit=NEWEST)}
        yield not before <= recent
