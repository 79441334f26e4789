"""
Reconcile XRDs: make their CRD, run a controller for their XRs, and take both down again.

A broken XRD is accepted and reported by a warning event; its CRD stays unchanged, and
Established keeps its old observedGeneration (or is never set). Deleting an XRD deletes all its
XRs first, then the CRD. Claims of v1 XRDs are not offered, which an event says.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass

from ground.errors import OrderkitError
from ground.objects.conditions import Condition
from ground.objects.kube_objects import (
    CRD,
    Manifest,
    ObjectKey,
    condition,
    controller,
    dig,
    metadata,
)
from kubeschema.xrd import BrokenXrdError, crd_for, problems, xr_kind
from orderkit.ports.cluster import InvalidObjectError, NoSuchKindError
from orderkit_standins.controller import side_by_side
from orderkit_standins.crossplane.composites import Composites
from orderkit_standins.crossplane.events import OWNER
from orderkit_standins.crossplane.reconciler_context import ReconcilerContext, is_deleting

FINALIZER = "defined.apiextensions.crossplane.io"
ESTABLISHED = Condition("Established", "True", "WatchingCompositeResource")
TERMINATING = Condition("Established", "False", "TerminatingCompositeResource")
ESTABLISH_REASON = "EstablishComposite"
TERMINATE_REASON = "TerminateComposite"
_AGAIN_S = 0.1
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
            return _AGAIN_S
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
                return _AGAIN_S
            self._stop(metadata(xrd)["name"])
            self._site.cluster.delete(ObjectKey.of(crd), uid=metadata(crd)["uid"])
            name = metadata(crd)["name"]
            text = f"Deleted composite resource CustomResourceDefinition: {name}"
            self._site.recorder.normal(xrd, TERMINATE_REASON, text)
            return _AGAIN_S
        self._stop(metadata(xrd)["name"])
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
