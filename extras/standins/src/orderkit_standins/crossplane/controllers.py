"""
The controllers of the embedded Crossplane, started together, and those of XRDs and Usages.

An XRD gets its CRD and a controller for its XRs, and both are taken down again. A broken XRD is
accepted and reported by a warning event; its CRD stays unchanged, and Established keeps its old
observedGeneration (or is never set). Deleting an XRD deletes all its XRs first, then the CRD.
Claims of v1 XRDs are not offered, which an event says.

Usages and ClusterUsages of ``protection.crossplane.io``: what is used is not deleted. The used
object gets the label ``crossplane.io/in-use``; the API server refuses to delete objects that have
it while a Usage names them (``cluster.admission``). A composed Usage waits with its own end for the
object that uses. So the parts of an XR go in the order that its Usages say: the garbage collector,
refused at first, tries again when the label goes. A Usage with ``replayDeletion`` repeats, when it
is gone, the deletion that was refused. Not here: legacy Usages.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import cast

from compositions.composed import COMPOSITE_LABEL
from compositions.station import Station
from ground.errors import ConflictError, OrderkitError
from ground.objects.kube_objects import (
    AVAILABLE,
    CLUSTER_USAGE,
    COMPOSITION,
    COMPOSITION_REVISION,
    CRD,
    DELETION_ATTEMPT,
    FUNCTION,
    IN_USE,
    USAGE,
    Condition,
    Kind,
    Manifest,
    ObjectKey,
    annotations_of,
    condition,
    controller,
    dig,
    labels_of,
    metadata,
    used_by,
)
from kubeschema.xrd import XRD_KIND, BrokenXrdError, crd_for, problems, xr_kind
from orderkit.ports.clock import SystemClock
from orderkit.ports.cluster import Cluster, InvalidObjectError, NoSuchKindError, Propagation
from orderkit_standins.controller import Controller, side_by_side
from orderkit_standins.crossplane.composites import BACKOFF, Composites
from orderkit_standins.crossplane.pipeline_parts import (
    CompositionReconciler,
    FunctionReconciler,
    RevisionReconciler,
)
from orderkit_standins.crossplane.reconciler_context import (
    OWNER,
    EventRecorder,
    ReconcilerContext,
    is_deleting,
)

FINALIZER = "defined.apiextensions.crossplane.io"
ESTABLISHED = Condition("Established", "True", "WatchingCompositeResource")
TERMINATING = Condition("Established", "False", "TerminatingCompositeResource")
ESTABLISH_REASON = "EstablishComposite"
TERMINATE_REASON = "TerminateComposite"
_TEARDOWN_AGAIN_S = 0.1
_APPLY = "cannot apply rendered composite resource CustomResourceDefinition"


@dataclass(frozen=True, slots=True)
class _Running:
    generation: int
    composites: Composites


class DefinitionReconciler:
    """Keep CRD and controller of every XRD. `close` stops the controllers."""

    def __init__(self, site: ReconcilerContext) -> None:
        self._site = site
        self._lock = threading.Lock()
        self._running: dict[str, _Running] = {}
        self._closed = False

    def __call__(self, key: ObjectKey) -> float | None:
        """Establish or terminate one XRD. Idempotent."""
        xrd = self._site.cluster.get(key)
        if xrd is None:
            self._stop(key.name)
            return None
        if is_deleting(xrd):
            return self._terminate(xrd)
        return self._establish(xrd)

    def close(self) -> None:
        """Stop all controllers; none starts afterwards."""
        with self._lock:
            self._closed = True
            running = list(self._running.values())
            self._running.clear()
        side_by_side([r.composites.stop for r in running])

    def _establish(self, xrd: Manifest) -> float | None:
        wrong = problems(xrd)
        if wrong:
            self._warn(xrd, f"{_APPLY}: {_invalid(xrd, wrong)}")
            return None
        xrd = self._site.keep_finalizer(xrd, FINALIZER)
        if dig(xrd, "spec", "claimNames"):
            self._warn(xrd, "the embedded platform offers no claims; the XR itself works")
        crd = self._applied_crd(xrd)
        if (condition(crd, "Established") or {}).get("status") != "True":
            text = "waiting for composite resource CustomResourceDefinition to be established"
            self._site.recorder.normal(xrd, ESTABLISH_REASON, text)
            return _TEARDOWN_AGAIN_S
        self._run(xrd)
        kind = xr_kind(xrd)
        type_ref = {"apiVersion": kind.api_version, "kind": kind.kind}
        self._site.write_status(
            xrd, ESTABLISHED, status={"controllers": {"compositeResourceType": type_ref}}
        )
        return None

    def _warn(self, xrd: Manifest, text: str) -> None:
        self._site.recorder.warning(xrd, ESTABLISH_REASON, text)

    def _applied_crd(self, xrd: Manifest) -> Manifest:
        crd = crd_for(xrd)
        present = self._site.cluster.get(ObjectKey.of(crd))
        uid = metadata(xrd).get("uid")
        if present is not None and (controller(present) or {}).get("uid") not in (None, uid):
            text = f'{_APPLY}: existing object is not controlled by UID "{uid}"'
            self._warn(xrd, text)
            raise OrderkitError(text, hint="two XRDs want the same CRD; remove one")
        try:
            applied = self._site.cluster.apply(crd, owner=OWNER)
        except InvalidObjectError as error:
            self._warn(xrd, f"{_APPLY}: {error}")
            raise
        if present is None or metadata(present)["resourceVersion"] != _version(applied):
            text = f"Applied composite resource CustomResourceDefinition: {metadata(crd)['name']}"
            self._site.recorder.normal(xrd, ESTABLISH_REASON, text)
        return applied

    def _run(self, xrd: Manifest) -> None:
        """Make sure a controller for exactly this generation runs."""
        name, generation = metadata(xrd)["name"], metadata(xrd).get("generation", 0)
        with self._lock:
            running = self._running.get(name)
        if running is not None and running.generation == generation:
            return
        if running is not None:
            text = "XRD specification changed; restarting controller to apply updates"
            self._site.recorder.normal(xrd, "RestartComposite", text)
            self._stop(name)
        composites = Composites(self._site, xrd)
        with self._lock:
            if self._closed:
                return
            self._running[name] = _Running(generation, composites)
        composites.start()

    def _stop(self, name: str) -> None:
        with self._lock:
            running = self._running.pop(name, None)
        if running is not None:
            running.composites.stop()

    def _terminate(self, xrd: Manifest) -> float | None:
        """Delete all XRs, then the CRD, then let the XRD go; the controller runs until then."""
        if FINALIZER not in (metadata(xrd).get("finalizers") or []):
            return None
        self._site.write_status(xrd, TERMINATING)
        crd = self._site.cluster.get(ObjectKey(CRD, metadata(xrd)["name"]))
        ours = crd is not None and (controller(crd) or {}).get("uid") == metadata(xrd).get("uid")
        if crd is not None and ours:
            if self._delete_xrs(xrd):
                text = "waiting for defined composite resources to be deleted"
                self._site.recorder.normal(xrd, TERMINATE_REASON, text)
                return _TEARDOWN_AGAIN_S
            self._stop(metadata(xrd)["name"])
            self._site.cluster.delete(ObjectKey.of(crd), uid=metadata(crd)["uid"])
            name = metadata(crd)["name"]
            text = f"Deleted composite resource CustomResourceDefinition: {name}"
            self._site.recorder.normal(xrd, TERMINATE_REASON, text)
            return _TEARDOWN_AGAIN_S
        self._stop(metadata(xrd)["name"])
        # read again: the status was written above, which changed its version
        current = self._site.cluster.get(ObjectKey.of(xrd))
        if current is not None:
            self._site.drop_finalizer(current, FINALIZER)
        return None

    def _delete_xrs(self, xrd: Manifest) -> bool:
        """Ask for the deletion of all XRs; True while any is left."""
        try:
            kind = xr_kind(xrd)
            for xr in self._site.cluster.list(kind).items:
                if not is_deleting(xr):
                    self._site.cluster.delete(ObjectKey.of(xr))
            return bool(self._site.cluster.list(kind).items)
        except (BrokenXrdError, NoSuchKindError):
            return False


def _invalid(xrd: Manifest, wrong: tuple[str, ...]) -> str:
    problem = wrong[0] if len(wrong) == 1 else "[" + ", ".join(wrong) + "]"
    return f'{CRD} "{metadata(xrd).get("name")}" is invalid: {problem}'


def _version(manifest: Manifest) -> str:
    return str(metadata(manifest).get("resourceVersion"))


_FINALIZER = "usage.apiextensions.crossplane.io"
_DETAILS = "crossplane.io/usage-details"
_POLL_S, _WAIT_S = 10.0, 0.2


class UsageReconciler:
    """Keep the labels, owners and finalizers of Usages."""

    def __init__(self, site: ReconcilerContext) -> None:
        self._site = site

    def __call__(self, key: ObjectKey) -> float | None:
        """
        Do one round for a Usage. Idempotent.

        Raises:
            OrderkitError: What it names does not exist (yet).
        """
        usage = self._site.cluster.get(key)
        if usage is None:
            return None
        for side in ("of", "by"):
            usage = self._selected(usage, side)
        if is_deleting(usage):
            return self._end(usage)
        usage = self._site.keep_finalizer(usage, _FINALIZER)
        details = _details(usage)
        if annotations_of(usage).get(_DETAILS) != details:
            usage = self._site.patch_metadata(usage, {"annotations": {_DETAILS: details}})
        used_object = self._existing(used_by(usage, "of"), "used")
        if labels_of(used_object).get(IN_USE) != "true":
            self._site.patch_metadata(used_object, {"labels": {IN_USE: "true"}})
        if dig(usage, "spec", "by"):
            usage = self._owned(usage, self._existing(used_by(usage, "by"), "using"))
        self._site.write_status(usage, AVAILABLE)
        return _POLL_S

    def _selected(self, usage: Manifest, side: str) -> Manifest:
        """Return the Usage with the name of what its selector matches."""
        resource = dig(usage, "spec", side) or {}
        if "resourceRef" in resource or not resource:
            return usage
        selector = resource["resourceSelector"]
        kind = Kind.parse(resource["apiVersion"], resource["kind"])
        home = str(selector.get("namespace") or metadata(usage).get("namespace") or "")
        matching = self._site.selected(usage, kind, home, selector)
        if not matching:
            raise OrderkitError(f"cannot resolve selectors: no {kind} matches spec.{side}")
        reference = {"name": metadata(matching[0])["name"]}
        if selector.get("namespace"):
            reference["namespace"] = selector["namespace"]
        patch = {
            "metadata": {"resourceVersion": metadata(usage)["resourceVersion"]},
            "spec": {side: {"resourceRef": reference}},
        }
        return self._site.cluster.patch(ObjectKey.of(usage), patch, owner="crossplane")

    def _existing(self, key: ObjectKey, role: str) -> Manifest:
        manifest = self._site.cluster.get(key) if self._site.cluster.serves(key.kind) else None
        if manifest is None:
            raise OrderkitError(f"cannot get {role}: {key} does not exist")
        return manifest

    def _owned(self, usage: Manifest, using: Manifest) -> Manifest:
        owners = metadata(usage).get("ownerReferences") or []
        uid = metadata(using)["uid"]
        if any(owner["uid"] == uid for owner in owners):
            return usage
        owner = {
            "apiVersion": using["apiVersion"],
            "kind": using["kind"],
            "name": metadata(using)["name"],
            "uid": uid,
        }
        return self._site.patch_metadata(usage, {"ownerReferences": [*owners, owner]})

    def _end(self, usage: Manifest) -> float | None:
        cluster = self._site.cluster
        if dig(usage, "spec", "by") and labels_of(usage).get(COMPOSITE_LABEL):
            using = used_by(usage, "by")
            if cluster.serves(using.kind) and cluster.get(using) is not None:
                return _WAIT_S
        key = used_by(usage, "of")
        used_object = cluster.get(key) if cluster.serves(key.kind) else None
        other_usages = (
            other
            for kind in (USAGE, CLUSTER_USAGE)
            for other in cluster.list(kind).items
            if metadata(other)["uid"] != metadata(usage)["uid"] and used_by(other, "of") == key
        )
        if (
            used_object is not None
            and labels_of(used_object).get(IN_USE)
            and next(other_usages, None) is None
        ):
            self._site.patch_metadata(used_object, {"labels": {IN_USE: None}})
        self._site.drop_finalizer(usage, _FINALIZER)
        propagation = annotations_of(used_object or {}).get(DELETION_ATTEMPT)
        if used_object is not None and propagation and dig(usage, "spec", "replayDeletion"):
            with suppress(OrderkitError):  # another Usage refuses it, and may replay it in turn
                uid = metadata(used_object)["uid"]
                cluster.delete(key, propagation=cast("Propagation", propagation), uid=uid)
        return None


def _details(usage: Manifest) -> str:
    spec = usage["spec"]
    if spec.get("reason"):
        return str(spec["reason"])
    by, of = used_by(usage, "by"), used_by(usage, "of")
    elsewhere = dig(spec, "of", "resourceRef", "namespace", default="")
    home = f" in namespace {elsewhere}" if elsewhere else ""
    return f"{by.kind.kind}/{by.name} uses {of.kind.kind}/{of.name}{home}"


_AGAIN_S = 0.02


class EmbeddedCrossplane:
    """
    Crossplane's reconcilers on a cluster that already serves `crossplane_crds`.

    `start` returns at once; `stop` waits for what is running. One instance starts once. What a
    stopped (or killed) one left undone, the next one finishes.

    Args:
        functions: What runs in this process, by the name of the Function object that a
            Composition refers to. The object must exist too, as in Crossplane.
        program_of: Returns a function's own program by its digest, if it was added here.
        seed: For the order of applying; by default it is random, as in Crossplane.
    """

    def __init__(
        self,
        cluster: Cluster,
        functions: Mapping[str, Station],
        *,
        seed: int | None = None,
        program_of: Callable[[str], Station | None] = lambda _digest: None,
    ) -> None:
        clock = SystemClock()
        self._recorder = EventRecorder(cluster, clock)
        chance = random.Random(seed)  # noqa: S311 - an order, not a secret
        self._site = ReconcilerContext(
            cluster, functions, self._recorder, clock, chance, program_of
        )
        self._definitions = DefinitionReconciler(self._site)
        definitions = self._controller("definitions", XRD_KIND, self._definitions)
        definitions.watch(CRD, _defining_xrd)
        usages = UsageReconciler(self._site)
        self._controllers = (
            self._controller("functions", FUNCTION, FunctionReconciler(self._site)),
            self._controller("compositions", COMPOSITION, CompositionReconciler(self._site)),
            self._controller("revisions", COMPOSITION_REVISION, RevisionReconciler(self._site)),
            definitions,
            *(self._controller(kind.kind, kind, usages) for kind in (USAGE, CLUSTER_USAGE)),
        )

    def _controller(
        self,
        name: str,
        kind: Kind,
        reconcile: DefinitionReconciler
        | FunctionReconciler
        | CompositionReconciler
        | RevisionReconciler
        | UsageReconciler,
    ) -> Controller:
        def patiently(key: ObjectKey) -> float | None:
            try:
                return reconcile(key)
            except ConflictError:
                return _AGAIN_S

        controller = Controller(name, self._site.cluster, patiently, workers=1, backoff=BACKOFF)
        controller.watch(kind)
        return controller

    def start(self) -> None:
        """Start everything; returns at once."""
        self._recorder.start()
        for running in self._controllers:
            running.start()

    def stop(self) -> None:
        """Stop everything; no reconcile runs afterwards. Safe to call twice."""
        stops = [running.stop for running in self._controllers]
        side_by_side([*stops, self._definitions.close])
        self._recorder.stop()


def _defining_xrd(crd: Manifest) -> list[ObjectKey]:
    owner = controller(crd)
    if owner is None or owner.get("kind") != XRD_KIND.kind:
        return []
    return [ObjectKey(XRD_KIND, owner["name"])]
