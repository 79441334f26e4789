"""
Find orders and report their state: ``list``, ``status``.

The ledger says which orders exist; Application and XR say which state they are in. Costs one ledger
read and one list per kind, whatever the number of orders.

`edited_files` finds ledger files of orders to which somebody added documents, or that hold no
Application any more. It only reads, at little cost. Argo CD says what it delivers of a team, and
which file it cannot read, but not the file that an object comes from. So files are read only where
it says something odd.

`held_by_window` says that an order waits for a maintenance window of its kit, and until when.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import PurePosixPath
from typing import Any

from msgspec.structs import asdict

from ground.argocd.delivery_obstacles import Obstacle, applied, tracker
from ground.errors import NotFoundError, RefusedError
from ground.names import LABEL, MAIN, CommitSha, OrderId, TeamName
from ground.objects.kube_objects import (
    APPLICATION,
    ARGOCD_NAMESPACE,
    Kind,
    Manifest,
    ObjectKey,
    dig,
    labels_of,
    metadata,
)
from ground.shapes import ObjectReference, changed
from ground.suggestions import did_you_mean
from orderkit.core.gc_pause import uncollected
from orderkit.core.inheriting_threads import InheritingThreads
from orderkit.core.kit.model import Kit
from orderkit.core.order import ledger, order_state
from orderkit.core.order.added_documents import (
    INTACT,
    LedgerFile,
    delivered_by_team,
    own_document,
    suspects,
)
from orderkit.core.order.approval import WaitingOrder
from orderkit.core.order.damage import CommitCheck
from orderkit.core.order.ledger import OrderEntry
from orderkit.core.order.ledger_applications import opens_at
from orderkit.core.order.order_cost import OrderCost
from orderkit.core.order.order_state import OrderState
from orderkit.core.order.order_summary import attended, row_of, state_of
from orderkit.core.order.order_view import ListedOrder, OrderRow, OrderSources, PartState
from orderkit.core.secret_values import NO_SECRETS, SecretTexts
from orderkit.flows.argocd.commit_pinning import documents_of, head_of_main, undelivered
from orderkit.flows.argocd.refreshing import application_key, explained
from orderkit.flows.composing.on_demand import order_secrets
from orderkit.flows.order.closer_look import without_secrets
from orderkit.flows.order.commit_judging import CheckedOrder, explained_by_files
from orderkit.flows.order.ledger_records import waiting_order
from orderkit.flows.platform import (
    Platform,
    RepositorySnapshot,
    get_object,
    ledger_snapshot,
    pack_snapshot,
    published_pack,
)
from orderkit.ports.clock import Clock
from orderkit.ports.cluster import Cluster, NoSuchKindError
from yamlfiles.manifests import ManifestError, parse_manifests


def edited_files(
    platform: Platform, ledger_files: RepositorySnapshot, entries: Collection[OrderEntry]
) -> dict[OrderEntry, LedgerFile]:
    """
    Return those of these orders whose files have more, or less, than their Application.

    Raises:
        RemoteError: The forge.
    """
    if not entries:
        return {}

    def look(entry: OrderEntry) -> LedgerFile:
        path = entry.application_path
        try:
            file = platform.forge.read(platform.ledger, path, ledger_files.commit)
            own, added = documents_of(file)
        except ManifestError as error:
            return LedgerFile(fault=str(error))
        except RefusedError:
            return INTACT  # 'status' says so
        return LedgerFile(added, "" if own or file is None else f"{path} has no Application")

    with InheritingThreads(thread_name_prefix="added") as threads:
        found = zip(entries, threads.map(look, entries), strict=True)
        return {entry: file for entry, file in found if file != INTACT}


def held_by_window(clock: Clock, kit: Kit | None, state: OrderState) -> OrderState:
    """Return an order's state, with the time until which a window of its kit holds it back."""
    if state.phase != "Delivering" or kit is None or not kit.windows:
        return state
    opening = opens_at(kit.windows, clock.now())
    if opening is None:
        return state
    text = f"{opening:%a %Y-%m-%d %H:%M} {opening.tzinfo}"
    reason = f"waits for the maintenance window of kit {kit.name}, which opens {text}"
    return replace(state, reason=reason, advice="nothing to do: it is delivered then", is_held=True)


@dataclass(frozen=True, slots=True)
class OrderReport:
    """One order: its entry in the ledger, its kit, its XR and its state."""

    sources: OrderSources
    """What the cluster has of it; `parts` are empty unless somebody read them."""
    kit: str
    state: OrderState
    forge_url: str
    xr: ObjectKey | None
    declared: Kit | None = None
    """Its kit as published; None if the pack does not have it."""
    secrets: Callable[[], SecretTexts] | None = None
    """Reads the values of its Secrets, which costs a run of its pipeline; None in a list."""
    check: CommitCheck | None = None
    """What is wrong with the files of the head; None if they were not read."""
    pack: CommitSha | None = None
    """The commit of the pack that it was read with; None in a list."""

    @property
    def entry(self) -> OrderEntry:
        return self.sources.entry

    @property
    def repository_url(self) -> str:
        return f"{self.forge_url}/{self.entry.repository}"

    @property
    def delivered(self) -> str:
        """The newest commit whose objects Argo CD applied; empty if there is none."""
        return applied(self.sources.application or {})

    def row(self, parts: tuple[PartState, ...] = (), costs: OrderCost | None = None) -> OrderRow:
        """
        Return what lists show of it.

        Outputs and facts have values only if they can be compared with the order's Secrets: a
        station may have written one into the status.
        """
        kit = self.declared
        shows_values = bool(
            self.state.paused or (kit and (kit.outputs or kit.facts or kit.attention))
        )
        row = row_of(
            replace(self.sources, parts=parts),
            self.state,
            kit,
            costs,
            secrets=self.secrets() if shows_values and self.secrets else NO_SECRETS,
            forge_url=self.forge_url,
        )
        if not (shows_values and not self.secrets):
            return changed(row, kit=self.kit)
        return changed(
            row,
            kit=self.kit,
            outputs=tuple(changed(o, value=None, is_link=False) for o in row.outputs),
            facts=tuple(changed(fact, value=None) for fact in row.facts),
            attention=tuple(changed(a, sentence=row.reason) for a in row.attention),
        )

    def to_json(self, row: OrderRow | None = None) -> dict[str, Any]:
        """
        Return the stable shape that command line and service both answer with.

        Args:
            row: What `row` returned, if it was asked already.
        """
        fields: dict[str, Any] = {**asdict(row or self.row()), "reason": self.state.reason}
        listed = ListedOrder(
            **fields,
            ready=self.state.ready,
            advice=self.state.advice,
            head=self.state.head or "",
            findings=self.check.answers if self.check else (),
            xr=ObjectReference.to(self.xr) if self.xr else None,
        )
        return listed.to_json()


def list_orders(platform: Platform) -> list[OrderReport]:
    """
    Report every order of the ledger, by team and id.

    Revisions are those that Argo CD compared last. Only `status` reads the repository's head, and
    this of a few orders whose main is protected.
    """
    with uncollected(), InheritingThreads(max_workers=2) as beside:
        ledger_ = beside.submit(ledger_snapshot, platform)
        applications = beside.submit(_applications, platform.cluster)
        kits = {kit.name: kit for kit in published_pack(platform).kits()}
        xrs = {key: xr for kit in kits.values() for key, xr in _all(platform.cluster, kit.kind)}
        kinds = {name: kit.kind for name, kit in kits.items()}
        cluster_state = _ClusterState(applications.result(), kits, kinds, xrs)
        ledger_files = ledger_.result()
        paths = ledger_files.blobs
        waiting = ledger.waiting_orders(paths)
        entries = sorted({*ledger.entries(paths), *waiting}, key=lambda e: (e.team, e.order))
        proposals = {entry: waiting_order(platform, entry) for entry in waiting}
        living = [e for e in entries if e.end_path not in paths and e not in proposals]
        ahead = _ahead(platform, living, cluster_state.applications)
        pairs = ((n, delivered_by_team(a)) for n, a in cluster_state.applications.items())
        delivered = {name: objects for name, objects in pairs if objects}
        odd = suspects(delivered, list(ledger.entries(paths)), waiting)
        files = edited_files(platform, ledger_files, odd)
        return [
            _listed(
                platform,
                entry,
                cluster_state,
                ending=entry.end_path in paths,
                waiting=proposals.get(entry),
                undelivered=ahead.get(entry),
                file=files.get(entry, INTACT),
            )
            for entry in entries
        ]


_HEADS_MAX = 20


def _ahead(
    platform: Platform, living: Sequence[OrderEntry], applications: Mapping[str, Manifest]
) -> dict[OrderEntry, Obstacle]:
    """
    Return the orders whose protected main is ahead of what is delivered.

    A few orders are looked at: the service looks at all, and ``doctor`` does.
    """

    def look(entry: OrderEntry) -> Obstacle | None:
        head = head_of_main(platform.forge, entry)
        is_pinned = head == ledger.delivered_commit(applications.get(entry.order))
        return None if is_pinned else undelivered(platform, entry, head)

    pinned = [e for e in living if ledger.delivered_commit(applications.get(e.order))][:_HEADS_MAX]
    with InheritingThreads() as threads:
        return {
            entry: why
            for entry, why in zip(pinned, threads.map(look, pinned), strict=True)
            if why is not None
        }


@dataclass(frozen=True, slots=True)
class _ClusterState:
    """What the cluster holds of all orders."""

    applications: Mapping[str, Manifest]
    kits: Mapping[str, Kit]
    kinds: Mapping[str, Kind]
    xrs: Mapping[ObjectKey, Manifest]


def _applications(cluster: Cluster) -> dict[str, Manifest]:
    applications = cluster.list(APPLICATION, namespace=ARGOCD_NAMESPACE).items
    return {metadata(application)["name"]: application for application in applications}


def _listed(
    platform: Platform,
    entry: OrderEntry,
    cluster_state: _ClusterState,
    *,
    ending: bool,
    waiting: WaitingOrder | None,
    undelivered: Obstacle | None,
    file: LedgerFile,
) -> OrderReport:
    application = cluster_state.applications.get(entry.order)
    kit = waiting.kit if waiting else ledger.kit_of(application or {})
    key, xr = own_xr(entry.order, application, cluster_state.kinds, kit, cluster_state.xrs.get)
    sources = _sources(entry, application, xr, waiting, ending=ending)
    sources = replace(sources, undelivered=undelivered, file=file)
    state = without_secrets(platform, xr, state_of(sources))
    return _report(platform, sources, state, (kit, key), cluster_state.kits.get(kit))


@dataclass(frozen=True, slots=True)
class KnownReads:
    """What was read just before an order is looked at; what is None is read with the order."""

    ledger_files: RepositorySnapshot | None = None
    pack: RepositorySnapshot | None = None
    head: CommitSha | None = None
    """Of the order's ``main``."""
    application: Manifest | None = None


NOTHING_KNOWN = KnownReads()


def status(platform: Platform, order: str, known: KnownReads = NOTHING_KNOWN) -> OrderReport:
    """
    Report one order, compared with the head of its repository.

    Raises:
        NotFoundError: The ledger has no such order; the message says if it ended.
    """
    ledger_files = known.ledger_files
    if ledger_files is None and (found := _at_once(platform, order)):
        entry, ending, application = found
        return report_of(platform, entry, replace(known, application=application), ending=ending)
    entry, ending = _in_ledger(order, ledger_files or ledger_snapshot(platform))
    return report_of(platform, entry, known, ending=ending)


def report_of(
    platform: Platform, entry: OrderEntry, known: KnownReads = NOTHING_KNOWN, *, ending: bool
) -> OrderReport:
    """Report an order whose place in the ledger is known, in the ledger or not any more."""
    application = known.application or platform.cluster.get(application_key(entry.order))
    pack_files = known.pack or pack_snapshot(platform)
    pack = published_pack(platform, pack_files)
    kits = {kit.name: kit for kit in pack.kits()}
    # What waits is proposed with an Application that syncs nothing by itself.
    is_delivered = dig(application, "spec", "syncPolicy", "automated") is not None
    waiting = None if ending or is_delivered else waiting_order(platform, entry)
    if waiting:
        kit = waiting.kit
    else:
        kit = ledger.kit_of(application) if application else registered_kit(platform, entry)
    kinds = {name: declared.kind for name, declared in kits.items()}
    key, xr = own_xr(entry.order, application, kinds, kit, partial(get_object, platform.cluster))
    head = known.head or head_of_main(platform.forge, entry)
    sources = _sources(entry, application, xr, waiting, ending=ending)
    state = order_state.judge(application, xr, head=head, ending=ending, approval=sources.approval)
    state = without_secrets(platform, xr, state)
    state = explained(platform.cluster, application, state, entry.team)
    if state.phase == "Delivering" and state.revision != head:
        state = order_state.with_undelivered(state, undelivered(platform, entry, head))
    state = held_by_window(platform.clock, kits.get(kit), state)
    checked = CheckedOrder.of(entry, pack, kit, xr)
    check: CommitCheck | None = None
    if checked is not None and not ending:
        state, check = explained_by_files(platform.forge, checked, application, state)
    report = _report(platform, sources, state, (kit, key), kits.get(kit))
    at = pack_files.commit
    secrets = functools.cache(lambda: order_secrets(platform, xr, at) if xr else NO_SECRETS)
    return replace(report, check=check, secrets=secrets, pack=at)


def _sources(
    entry: OrderEntry,
    application: Manifest | None,
    xr: Manifest | None,
    waiting: WaitingOrder | None,
    *,
    ending: bool,
) -> OrderSources:
    owner, approval = (waiting.requester, waiting.approval) if waiting else ("", "")
    return OrderSources(entry, ending, application, xr, owner=owner, approval=approval)


def registered_kit(platform: Platform, entry: OrderEntry) -> str:
    """
    Return the kit that the ledger says an order is of; empty if the ledger does not say.

    The record in the order's repository says it too, but whoever may push may change that.
    """
    file = platform.forge.read(platform.ledger, entry.application_path, MAIN)
    documents = parse_manifests(str(file.path), file.data) if file else ()
    return ledger.kit_of(own_document(entry.application_path, documents) or {})


def _in_ledger(order: str, ledger_files: RepositorySnapshot) -> tuple[OrderEntry, bool]:
    """Find an order among all of the ledger, and whether its end has begun."""
    paths = ledger_files.blobs
    ending_entry = ledger.ending_order(paths, order)
    return (ending_entry, True) if ending_entry else (find(order, paths), False)


def _at_once(platform: Platform, order: str) -> tuple[OrderEntry, bool, Manifest | None] | None:
    """
    Find an order by its Application, which names the team; the ledger has the last word.

    This reads two files, also if the ledger has ten thousand orders.
    """
    if not LABEL.match(order):
        return None
    application = get_object(platform.cluster, application_key(OrderId(order)))
    team = labels_of(application or {}).get(ledger.TEAM_LABEL)
    if not team:
        return None
    entry = OrderEntry(TeamName(team), OrderId(order))
    files = (entry.application_path, entry.end_path)
    living, ending = (platform.forge.read(platform.ledger, path, "main") for path in files)
    return (entry, ending is not None, application) if living else None


def find(order: str, paths: Collection[PurePosixPath], *, is_repairing: bool = False) -> OrderEntry:
    """
    Find an order among the ledger's paths.

    Raises:
        NotFoundError: There is none; the hint names close ones, or its tombstone.
    """
    living_entry = ledger.living_order(paths, order)
    if living_entry:
        return living_entry
    ended = ledger.tombstones(paths, order)
    if ended:
        raise NotFoundError(f"{order} has ended", hint=f"its tombstone in the ledger: {ended[-1]}")
    orders = [entry.order for entry in ledger.entries(paths)]
    hint = did_you_mean(order, orders, "see 'orderkit list'.")
    if not is_repairing:
        hint += f" If someone removed it from the ledger: orderkit repair {order}"
    raise NotFoundError(f"no order '{order}' in the ledger", hint=hint)


def own_xr(
    order: OrderId,
    application: Manifest | None,
    kinds: Mapping[str, Kind],
    kit: str,
    look_up: Callable[[ObjectKey], Manifest | None],
) -> tuple[ObjectKey | None, Manifest | None]:
    """
    Return where the order's XR is or will be, and the XR if the cluster has it.

    Whoever pushes can name another order's XR. So one that exists counts only if its tracking
    annotation says that this order's Application delivered it.

    Args:
        look_up: Reads an object; None if it does not exist.
    """
    by_group_kind = {(kind.group, kind.kind): kind for kind in kinds.values()}
    keys = [
        ObjectKey(kind, resource["name"], resource.get("namespace", ""))
        for resource in dig(application, "status", "resources", default=())
        if (kind := by_group_kind.get((resource.get("group", ""), resource.get("kind"))))
    ]
    if kit in kinds:
        keys.append(ObjectKey(kinds[kit], order))
    absent: ObjectKey | None = None
    for key in keys:
        xr = look_up(key)
        if xr is None:
            absent = absent or key
        elif tracker(xr) == order:
            return key, xr
    return absent, None


def _all(cluster: Cluster, kind: Kind) -> Iterator[tuple[ObjectKey, Manifest]]:
    try:
        xrs = cluster.list(kind).items
    except NoSuchKindError:
        return  # its XRD is not established yet
    for xr in xrs:
        yield ObjectKey.of(xr), xr


def _report(
    platform: Platform,
    sources: OrderSources,
    state: OrderState,
    of: tuple[str, ObjectKey | None],
    declared: Kit | None,
) -> OrderReport:
    """Return a report; `of` names its kit and its XR."""
    kit, key = of
    attended_state = attended(state, declared, sources.xr, sources.application)
    if attended_state is not state and sources.xr:  # a sentence with values of the status
        secrets = order_secrets(platform, sources.xr)
        attended_state = replace(attended_state, reason=secrets.redact(attended_state.reason))
    return OrderReport(sources, kit, attended_state, platform.forge.base_url, key, declared)
