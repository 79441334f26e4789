"""
Read the orders of a kit and their XRs: from the cluster, from Git, or from files.

The cluster lists all XRs of a kind at once, as they are stored. An order that it lacks, or every
order without a cluster, is read from its repository, several at the same time. An order that cannot
be read stays in the result with the reason.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import PurePosixPath
from typing import Any

from ground.errors import InvalidInputError, NotFoundError, OrderkitError
from ground.names import BlobSha
from ground.objects.kube_objects import (
    APPLICATION,
    ARGOCD_NAMESPACE,
    Kind,
    Manifest,
    ObjectKey,
    metadata,
)
from orderkit.core.inheriting_threads import InheritingThreads
from orderkit.core.kit.model import Kit
from orderkit.core.order import ledger, order_file
from orderkit.core.order.ledger import OrderEntry
from orderkit.core.order.team_file import TeamFile
from orderkit.flows.composing.cluster_questions import Lookup
from orderkit.flows.order.live_order import LiveOrder, check_name, delivered_xr, read_xr
from orderkit.flows.order.order_report import find, own_xr
from orderkit.flows.platform import Platform, ledger_snapshot
from orderkit.ports.cluster import ObjectList
from yamlfiles.manifests import ManifestError, looks_like_manifest, parse_manifests

CLUSTER, GIT, FILE = "cluster", "git", "file"
_NO_DESTINATION = "default"


@dataclass(frozen=True, slots=True)
class ReadOrder:
    """An order, and its XR if it could be read."""

    order: str
    team: str
    xr: Manifest | None
    source: str
    why_not: str = ""


@dataclass(frozen=True, slots=True)
class OrderSelection:
    """Which orders; empty: all."""

    orders: tuple[str, ...] = ()
    teams: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class FleetReading:
    """The orders that were read, with notes about the reading."""

    orders: tuple[ReadOrder, ...]
    notes: tuple[str, ...] = ()
    facts: tuple[Manifest, ...] = ()
    """Other objects that were read; stations may ask for them."""


def read_orders(
    platform: Platform, kit: Kit, selection: OrderSelection, cluster: Lookup | None
) -> FleetReading:
    """
    Read the live orders of a kit.

    Args:
        cluster: The cluster; None: everything is read from Git.

    Raises:
        NotFoundError: The platform was never bootstrapped, or the ledger has no such order.
        RemoteError: The ledger cannot be read.
    """
    paths = ledger_snapshot(platform).blobs
    entries = _selected(paths, selection)
    going = [entry for entry in entries if entry.end_path in paths]
    notes = [f"{entry.order} is ending: left out" for entry in going]
    living = [entry for entry in entries if entry.end_path not in paths]
    applications, why = _applications(cluster)
    notes += [f"the cluster could not be asked: {why}"] if why else []
    xrs = _xrs(cluster, kit) if not why else {}
    orders, unread = [], []
    for entry in living:
        application = applications.get(entry.order)
        name = ledger.kit_of(application or {})
        if name and name != kit.name:
            continue
        _, xr = own_xr(entry.order, application, {kit.name: kit.kind}, kit.name, xrs.get)
        if xr is None:
            unread.append(entry)
        else:
            orders.append(ReadOrder(entry.order, entry.team, xr, CLUSTER))
    if unread:
        with InheritingThreads(thread_name_prefix="reading") as pool:
            read = pool.map(lambda entry: _from_git(platform, kit, entry), unread)
            orders += [fleet_order for fleet_order in read if fleet_order is not None]
    return FleetReading(tuple(sorted(orders, key=lambda order: order.order)), tuple(notes))


def _selected(
    paths: Mapping[PurePosixPath, BlobSha], selection: OrderSelection
) -> list[OrderEntry]:
    if selection.orders:
        entries = [find(order, paths) for order in dict.fromkeys(selection.orders)]
    else:
        entries = list(ledger.entries(paths))
    teams = set(ledger.teams(paths))
    for team in selection.teams:
        if team not in teams:
            raise NotFoundError(f"no team '{team}' in the ledger", hint="see 'orderkit team list'")
    return [entry for entry in entries if not selection.teams or entry.team in selection.teams]


def _applications(cluster: Lookup | None) -> tuple[dict[str, Manifest], str]:
    """Return the Applications by name, and why they could not be read."""
    if cluster is None:
        return {}, ""
    try:
        applications = cluster.list(APPLICATION, namespace=ARGOCD_NAMESPACE)
    except OrderkitError as error:
        return {}, str(error)
    return {
        str(metadata(application)["name"]): application for application in applications.items
    }, ""


def _xrs(cluster: Lookup | None, kit: Kit) -> dict[ObjectKey, Manifest]:
    try:
        xrs = cluster.list(kit.kind).items if cluster is not None else ()
    except OrderkitError:
        return {}  # each order is then read from Git
    return {ObjectKey.of(xr): xr for xr in xrs}


def _from_git(platform: Platform, kit: Kit, entry: OrderEntry) -> ReadOrder | None:
    """Read one order; None if it is of another kit."""
    try:
        record = platform.forge.read(entry.repository, order_file.PATH, "main")
        if record is None:
            why = f"{entry.repository} has no {order_file.PATH}, or we may not read it"
            return ReadOrder(entry.order, entry.team, None, GIT, why)
        order = order_file.parse(record.data, name=f"{entry.repository}/{order_file.PATH}")
        if order.kit != kit.name:
            return None
        head = platform.forge.head(entry.repository)
        if head is None:
            return ReadOrder(entry.order, entry.team, None, GIT, f"{entry.repository} has no main")
        live = LiveOrder(entry, kit, order, TeamFile(entry.team))
        xr_file = read_xr(platform, live, head)
        check_name(live, xr_file)
        return ReadOrder(entry.order, entry.team, delivered_xr(live, xr_file.xr), GIT)
    except OrderkitError as error:
        return ReadOrder(entry.order, entry.team, None, GIT, str(error))


def read_file_orders(
    files: Iterable[tuple[str, bytes | str]], folder: str, kit: Kit, selection: OrderSelection
) -> FleetReading:
    """
    Read the XRs of a kit from the files of a folder; other objects there are facts.

    An order is called as its XR, with its namespace if two have the same name.

    Args:
        files: Name and bytes of each file, or why it cannot be read.
        folder: What messages call the folder.

    Raises:
        NotFoundError: There is none.
        InvalidInputError: An order that was asked for is not there, or teams were asked for.
    """
    if selection.teams:
        raise InvalidInputError(
            "--team",
            selection.teams[0],
            "needs a platform and does not work with files",
            hint="leave --team out, or leave --xrs out",
        )
    read: list[ReadOrder | Manifest] = []
    for name, data in files:
        read += _in_file(name, data, kit)
    facts = tuple(manifest for manifest in read if isinstance(manifest, dict))
    placed = [_with_namespace(order, kit) for order in read if isinstance(order, ReadOrder)]
    orders = _distinct([order for order, _ in placed])
    for order in selection.orders:
        if order not in {fleet_order.order for fleet_order in orders}:
            raise InvalidInputError("--order", order, f"is not a {kit.kind} in {folder}")
    selected = [
        order for order in orders if not selection.orders or order.order in selection.orders
    ]
    if not selected:
        raise NotFoundError(
            f"{folder}: no file holds an object of {kit.kind}",
            hint=f"--xrs FOLDER, with files of kind {kit.kind}",
        )
    return FleetReading(
        tuple(sorted(selected, key=lambda fleet_order: fleet_order.order)),
        tuple(note for _, note in placed if note),
        facts,
    )


def _with_namespace(order: ReadOrder, kit: Kit) -> tuple[ReadOrder, str]:
    """Return a file's order in a namespace if its kit has one, and a note if the file has none."""
    if order.xr is None or not kit.namespaced or metadata(order.xr).get("namespace"):
        return order, ""
    xr = {**order.xr, "metadata": {**metadata(order.xr), "namespace": _NO_DESTINATION}}
    note = (
        f"{order.order} has no metadata.namespace, and a file does not say where it is delivered:"
        f" planned as in '{_NO_DESTINATION}'"
    )
    return replace(order, xr=xr), note


class ObjectLookup:
    """A `Lookup` in objects at hand."""

    def __init__(self, objects: Iterable[Manifest]) -> None:
        self._objects = {ObjectKey.of(manifest): manifest for manifest in objects}

    def get(self, key: ObjectKey) -> Manifest | None:
        """Return an object; None if it is not at hand."""
        return self._objects.get(key)

    def list(self, kind: Kind, *, namespace: str | None = None) -> ObjectList:
        """Return the objects of a kind."""
        manifests = (
            manifest
            for key, manifest in sorted(self._objects.items())
            if key.kind == kind and namespace in {None, key.namespace}
        )
        return ObjectList(tuple(manifests), "")

    def plural(self, kind: Kind) -> str | None:  # noqa: ARG002 - the port's names
        """Serve no kind: these are objects without a server."""
        return None

    def serves(self, kind: Kind) -> bool:  # noqa: ARG002 - the port's names
        """Serve no kind."""
        return False

    def openapi(self, group: str, version: str) -> Mapping[str, Any] | None:  # noqa: ARG002 - the port's names
        """Have no document."""
        return None


def _in_file(name: str, data: bytes | str, kit: Kit) -> Iterable[ReadOrder | Manifest]:
    if isinstance(data, str):
        yield ReadOrder(name, "", None, FILE, data)
        return
    try:
        manifests = parse_manifests(name, data)
    except ManifestError as error:
        if looks_like_manifest(data):
            yield ReadOrder(name, "", None, FILE, str(error))
        return
    for manifest in manifests:
        kind = Kind.of(manifest)
        if (kind.group, kind.kind) == (kit.kind.group, kit.kind.kind):
            order = str(metadata(manifest).get("name") or name)
            yield ReadOrder(order, "", manifest, FILE)
        elif metadata(manifest).get("name"):
            yield manifest


def _distinct(orders: Sequence[ReadOrder]) -> list[ReadOrder]:
    """Distinguish orders of the same name by namespace, then by number."""
    names = Counter(fleet_order.order for fleet_order in orders)
    by_name: dict[str, ReadOrder] = {}
    for fleet_order in orders:
        order = fleet_order.order
        if names[order] > 1 and fleet_order.xr is not None:
            home = metadata(fleet_order.xr).get("namespace")
            order = f"{home}/{order}" if home else order
        number = 2
        while order in by_name:
            order, number = f"{fleet_order.order}#{number}", number + 1
        by_name[order] = ReadOrder(
            order, fleet_order.team, fleet_order.xr, fleet_order.source, fleet_order.why_not
        )
    return list(by_name.values())
