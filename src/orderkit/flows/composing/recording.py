"""
Record what a plan is computed from, and compute plans from a recording.

A `PlanRecorder` stands between a plan and the cluster and keeps every answer, also "not there"; a
`Replay` gives the same answers without a cluster, and reports questions that the recording has no
answer to. The file is ``core.plan.snapshot``'s, which ``adapters.folders.plan_files`` reads and
writes.
"""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Iterable, Mapping
from typing import Any

from ground.errors import OrderkitError
from ground.names import Files
from ground.objects.kube_objects import Kind, Manifest, ObjectKey, metadata
from ground.objects.values import Steps
from orderkit.core.kit.model import Kit
from orderkit.core.plan.assembly import SecretField
from orderkit.core.plan.snapshot import PlanSnapshot, RecordedOrder, hidden_secrets
from orderkit.flows.composing.cluster_questions import Lookup
from orderkit.ports.cluster import NoSuchKindError, ObjectList


class PlanRecorder:
    """Records everything that a plan of one or many orders reads. Thread-safe."""

    def __init__(self, order: str = "") -> None:
        self._order = order
        self._lock = threading.Lock()
        self._orders: list[RecordedOrder] = []
        self._schemas: dict[str, str] = {}
        self._objects: dict[ObjectKey, Manifest] = {}
        self._asked: set[ObjectKey] = set()
        self._listed: set[tuple[Kind, str]] = set()
        self._plurals: dict[Kind, str | None] = {}
        self._secret_fields: dict[ObjectKey, set[Steps]] = {}
        self._clustered = False

    def record_order(self, cluster: Lookup | None, xr: Manifest, kit: Kit) -> Lookup | None:
        """Note the order, and return a `Lookup` that records its answers."""
        self.note(RecordedOrder(self._order, kit.name, xr, ""), kit)
        return self.wrap(cluster)

    def note(self, order: RecordedOrder, kit: Kit) -> None:
        """Note an order and the schema of its kind."""
        with self._lock:
            self._orders.append(order)
            self._schemas[str(kit.kind)] = digest(kit.xrd.get("spec"))

    def wrap(self, cluster: Lookup | None) -> Lookup | None:
        """Return a `Lookup` that records its answers; None for none."""
        if cluster is None:
            return None
        self._clustered = True
        return _Recorded(self, cluster)

    def note_object(self, key: ObjectKey, manifest: Manifest | None) -> None:
        """Note the answer to a question for one object."""
        with self._lock:
            self._asked.add(key)
            if manifest is not None:
                self._objects[key] = manifest

    def note_kind(self, kind: Kind, namespace: str | None, manifests: Iterable[Manifest]) -> None:
        """Note the answer to a question for a kind."""
        with self._lock:
            self._listed.add((kind, namespace or ""))
            self._objects.update((ObjectKey.of(manifest), manifest) for manifest in manifests)

    def note_plural(self, kind: Kind, plural: str | None) -> None:
        """Note how a kind is served."""
        with self._lock:
            self._plurals[kind] = plural

    def leave_out(self, objects: Mapping[str, Manifest], fields: Iterable[SecretField]) -> None:
        """Leave the fields of an order's objects out, which are by path; its XR is at ''."""
        with self._lock:
            for path, steps in fields:
                if path in objects:
                    key = ObjectKey.of(objects[path])
                    self._secret_fields.setdefault(key, set()).add(steps)

    def snapshot(self, *, pack: str = "") -> PlanSnapshot:
        """Return everything that was noted."""
        with self._lock:
            return PlanSnapshot(
                tuple(self._orders),
                pack,
                dict(self._schemas),
                tuple(self._asked),
                tuple(self._listed),
                tuple(self._objects.values()),
                dict(self._plurals),
                {key: frozenset(fields) for key, fields in self._secret_fields.items()},
                clustered=self._clustered,
            )


class _Recorded:
    def __init__(self, recorder: PlanRecorder, cluster: Lookup) -> None:
        self._recorder, self._place = recorder, cluster

    def get(self, key: ObjectKey) -> Manifest | None:
        try:
            manifest = self._place.get(key)
        except NoSuchKindError:
            self._recorder.note_object(key, None)
            raise
        self._recorder.note_object(key, manifest)
        return manifest

    def list(self, kind: Kind, *, namespace: str | None = None) -> ObjectList:
        try:
            objects = self._place.list(kind, namespace=namespace)
        except NoSuchKindError:
            self._recorder.note_kind(kind, namespace, ())
            raise
        self._recorder.note_kind(kind, namespace, objects.items)
        return objects

    def plural(self, kind: Kind) -> str | None:
        name = self._place.plural(kind)
        self._recorder.note_plural(kind, name)
        return name

    def serves(self, kind: Kind) -> bool:
        return self.plural(kind) is not None

    def openapi(self, group: str, version: str) -> Mapping[str, Any] | None:
        return self._place.openapi(group, version)


class Replay:
    """Answers from a snapshot. `missed` has the questions without an answer, in no fixed order."""

    def __init__(self, snapshot: PlanSnapshot) -> None:
        self._objects = {ObjectKey.of(manifest): manifest for manifest in snapshot.objects}
        self._asked, self._listed = set(snapshot.requested), set(snapshot.listings)
        self._hidden = set(hidden_secrets(snapshot.objects))
        self._plurals = snapshot.plurals
        self.missed: list[str] = []

    def get(self, key: ObjectKey) -> Manifest | None:
        """Return an object; None if it was not there, or not asked for."""
        manifest = self._objects.get(key)
        if manifest is None and not self._is_known(key):
            self._note_missing(f"{key} was not asked for when the snapshot was recorded")
        self._tell_hidden(() if manifest is None else (manifest,))
        return manifest

    def list(self, kind: Kind, *, namespace: str | None = None) -> ObjectList:
        """Return the objects of a kind, as far as they were listed."""
        items = tuple(
            manifest
            for key, manifest in sorted(self._objects.items())
            if key.kind == kind and namespace in {None, key.namespace}
        )
        if not {(kind, ""), (kind, namespace or "")} & self._listed:
            self._note_missing(f"{kind} was not listed when the snapshot was recorded")
        self._tell_hidden(items)
        return ObjectList(items, "")

    def plural(self, kind: Kind) -> str | None:
        """Return the resource name of a kind, as it was served."""
        if kind not in self._plurals:
            self._note_missing(
                f"whether {kind} is served was not asked when the snapshot was recorded"
            )
        return self._plurals.get(kind)

    def serves(self, kind: Kind) -> bool:
        """Say whether a kind was served; one that nobody asked for is taken to be."""
        return self.plural(kind) is not None or kind not in self._plurals

    def openapi(self, group: str, version: str) -> Mapping[str, Any] | None:  # noqa: ARG002 - the port's names
        """Have no document: built-in kinds are judged by our own table."""
        self._note_missing(
            "OpenAPI documents are in no snapshot: built-in kinds are judged by a table of ours"
        )
        return None

    def _is_known(self, key: ObjectKey) -> bool:
        places = {(key.kind, ""), (key.kind, key.namespace)}
        return key in self._asked or bool(places & self._listed)

    def _tell_hidden(self, objects: Iterable[Manifest]) -> None:
        for name in set(hidden_secrets(objects)) & self._hidden:
            self._note_missing(f"{name} is in the snapshot without its values")

    def _note_missing(self, question: str) -> None:
        if question not in self.missed:
            self.missed.append(question)


def digest(value: object) -> str:
    """Return what identifies a piece of data."""
    data = json.dumps(value, sort_keys=True, ensure_ascii=False).encode()
    return f"sha256:{hashlib.sha256(data).hexdigest()}"


def digest_of(files: Files) -> str:
    """Return what identifies a pack by what assembles its orders: APIs, stations, kits."""
    sha256 = hashlib.sha256()
    for path in sorted(files):
        if path.parts[0] in {"stations", "gitops"} or path.name == "kit.yaml":
            sha256.update(str(path).encode() + b"\0" + files[path] + b"\0")
    return f"sha256:{sha256.hexdigest()}"


def differs(snapshot: PlanSnapshot, kits: Iterable[Kit]) -> tuple[str, ...]:
    """Say which XRDs are not those that the snapshot was recorded with."""
    notes = []
    for kit in kits:
        recorded = snapshot.schemas.get(str(kit.kind))
        if recorded is not None and recorded != digest(kit.xrd.get("spec")):
            notes.append(
                f"the XRD of {kit.kind} is not the one that the snapshot was recorded with"
            )
    return tuple(notes)


def check_one(snapshot: PlanSnapshot, order: str) -> RecordedOrder:
    """
    Return the order of a snapshot that a plan is asked for.

    Raises:
        InvalidInputError: It is of another order.
        OrderkitError: The XR in it has no name.
    """
    recorded = snapshot.order(order)
    if not metadata(recorded.xr).get("name"):
        raise OrderkitError(f"the snapshot's XR of {order} has no name")
    return recorded
