"""
Which orders of a kit exist, and their XRs: from the cluster, from Git, or from a folder.

The cluster gives all XRs of a kind at once, as they are stored; an order that it lacks, or all of
them if it may not be asked, is read from its repository, several at the same time. What cannot be
read keeps its place and says why. Called by ``fleet_planning``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from orderkit.core.errors import InvalidInputError, NotFoundError, OrderkitError
from orderkit.core.kit.model import Kit
from orderkit.core.names import BlobSha
from orderkit.core.objects.kube_objects import (
    APPLICATION,
    ARGOCD_NAMESPACE,
    Kind,
    Manifest,
    ObjectKey,
    metadata,
)
from orderkit.core.order import ledger, order_file
from orderkit.core.order.ledger import OrderEntry
from orderkit.core.order.team_file import TeamFile
from orderkit.core.yaml.manifests import ManifestError, looks_like_manifest, parse_manifests
from orderkit.flows.order.listing import find, xr_key
from orderkit.flows.order.live_order import LiveOrder, read_xr
from orderkit.flows.plan.cluster_questions import Lookup
from orderkit.flows.platform import Platform, ledger_snapshot
from orderkit.ports.cluster import ObjectList

CLUSTER, GIT, FILE = "cluster", "git", "file"
_AT_ONCE = 8
_SUFFIXES = {".yaml", ".yml", ".json"}


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
    """What was read, and what there is to say about it."""

    orders: tuple[ReadOrder, ...]
    told: tuple[str, ...] = ()
    facts: tuple[Manifest, ...] = ()
    """Other objects that were read; stations may ask for them."""


def read_orders(
    platform: Platform, kit: Kit, wanted: OrderSelection, place: Lookup | None
) -> FleetReading:
    """
    Read the living orders of a kit.

    Args:
        place: The cluster; None: everything is read from Git.

    Raises:
        NotFoundError: The platform was never bootstrapped, or the ledger has no such order.
        RemoteError: The ledger cannot be read.
    """
    paths = ledger_snapshot(platform).blobs
    chosen = _chosen(paths, wanted)
    going = [entry for entry in chosen if entry.end_path in paths]
    told = [f"{entry.order} is ending: left out" for entry in going]
    living = [entry for entry in chosen if entry.end_path not in paths]
    applications, why = _applications(place)
    told += [f"the cluster could not be asked: {why}"] if why else []
    xrs = _xrs(place, kit) if not why else {}
    found, left = [], []
    for entry in living:
        application = applications.get(entry.order)
        name = ledger.kit_of(application or {})
        if name and name != kit.name:
            continue
        key = xr_key(entry.order, application, {kit.name: kit.kind}, kit.name)
        xr = xrs.get(key) if key else None
        if xr is None:
            left.append(entry)
        else:
            found.append(ReadOrder(entry.order, entry.team, xr, CLUSTER))
    if left:
        with ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="reading") as pool:
            read = pool.map(lambda entry: _from_git(platform, kit, entry), left)
            found += [each for each in read if each is not None]
    return FleetReading(tuple(sorted(found, key=lambda each: each.order)), tuple(told))


def _chosen(paths: Mapping[PurePosixPath, BlobSha], wanted: OrderSelection) -> list[OrderEntry]:
    if wanted.orders:
        chosen = [find(order, paths) for order in dict.fromkeys(wanted.orders)]
    else:
        chosen = list(ledger.entries(paths))
    teams = set(ledger.teams(paths))
    for team in wanted.teams:
        if team not in teams:
            raise NotFoundError(f"no team '{team}' in the ledger", hint="see 'orderkit team list'")
    return [entry for entry in chosen if not wanted.teams or entry.team in wanted.teams]


def _applications(place: Lookup | None) -> tuple[dict[str, Manifest], str]:
    """Return the Applications by name, and why they could not be read."""
    if place is None:
        return {}, ""
    try:
        listed = place.list(APPLICATION, namespace=ARGOCD_NAMESPACE)
    except OrderkitError as error:
        return {}, str(error)
    return {str(metadata(each)["name"]): each for each in listed.items}, ""


def _xrs(place: Lookup | None, kit: Kit) -> dict[ObjectKey, Manifest]:
    try:
        listed = place.list(kit.kind).items if place is not None else ()
    except OrderkitError:
        return {}  # each order is then read from Git
    return {ObjectKey.of(each): each for each in listed}


def _from_git(platform: Platform, kit: Kit, entry: OrderEntry) -> ReadOrder | None:
    """Read one order; None if it is of another kit."""
    try:
        record = platform.forge.read(entry.repository, order_file.PATH, "main")
        if record is None:
            why = f"{entry.repository} has no {order_file.PATH}, or is gone or hidden from us"
            return ReadOrder(entry.order, entry.team, None, GIT, why)
        order = order_file.parse(record.data, name=f"{entry.repository}/{order_file.PATH}")
        if order.kit != kit.name:
            return None
        head = platform.forge.head(entry.repository)
        if head is None:
            return ReadOrder(entry.order, entry.team, None, GIT, f"{entry.repository} has no main")
        live = LiveOrder(entry, kit, order, TeamFile(entry.team))
        return ReadOrder(entry.order, entry.team, read_xr(platform, live, head).xr, GIT)
    except OrderkitError as error:
        return ReadOrder(entry.order, entry.team, None, GIT, str(error))


def read_folder_orders(folder: Path, kit: Kit, wanted: OrderSelection) -> FleetReading:
    """
    Read the XRs of a kit from the files of a folder; other objects there are facts.

    An order is called as its XR, with its namespace if two have the same name.

    Raises:
        NotFoundError: There is none.
        InvalidInputError: An order that was asked for is not there, or teams were asked for.
    """
    if wanted.teams:
        raise InvalidInputError("--team", wanted.teams[0], "goes with a platform, not with files")
    read: list[ReadOrder | Manifest] = []
    for path in sorted(each for each in folder.rglob("*") if each.suffix in _SUFFIXES):
        read += _in_file(path, folder, kit)
    facts = tuple(each for each in read if isinstance(each, dict))
    found = _named([each for each in read if isinstance(each, ReadOrder)])
    for order in wanted.orders:
        if order not in {each.order for each in found}:
            raise InvalidInputError("--order", order, f"is no {kit.kind} in {folder}")
    chosen = [each for each in found if not wanted.orders or each.order in wanted.orders]
    if not chosen:
        raise NotFoundError(f"{folder}: no file holds an object of {kit.kind}")
    return FleetReading(tuple(sorted(chosen, key=lambda each: each.order)), facts=facts)


class ObjectLookup:
    """A `Lookup` in objects at hand."""

    def __init__(self, objects: Iterable[Manifest]) -> None:
        self._objects = {ObjectKey.of(each): each for each in objects}

    def get(self, key: ObjectKey) -> Manifest | None:
        """Return an object; None if it is not at hand."""
        return self._objects.get(key)

    def list(self, kind: Kind, *, namespace: str | None = None) -> ObjectList:
        """Return the objects of a kind."""
        found = (
            each
            for key, each in sorted(self._objects.items())
            if key.kind == kind and namespace in {None, key.namespace}
        )
        return ObjectList(tuple(found), "")

    def plural(self, kind: Kind) -> str | None:  # noqa: ARG002 - the port's names
        """Serve no kind: these are objects without a server."""
        return None

    def serves(self, kind: Kind) -> bool:  # noqa: ARG002 - the port's names
        """Serve no kind."""
        return False

    def openapi(self, group: str, version: str) -> Mapping[str, Any] | None:  # noqa: ARG002 - the port's names
        """Have no document."""
        return None


def _in_file(path: Path, folder: Path, kit: Kit) -> Iterable[ReadOrder | Manifest]:
    name = path.relative_to(folder).as_posix()
    try:
        data = path.read_bytes()
    except OSError as error:
        yield ReadOrder(name, "", None, FILE, f"cannot be read: {error.strerror}")
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


def _named(found: Sequence[ReadOrder]) -> list[ReadOrder]:
    """Tell orders of the same name apart by their namespace, then by their number."""
    names = Counter(each.order for each in found)
    told: dict[str, ReadOrder] = {}
    for each in found:
        order = each.order
        if names[order] > 1 and each.xr is not None:
            home = metadata(each.xr).get("namespace")
            order = f"{home}/{order}" if home else order
        number = 2
        while order in told:
            order, number = f"{each.order}#{number}", number + 1
        told[order] = ReadOrder(order, each.team, each.xr, each.source, each.why_not)
    return list(told.values())
