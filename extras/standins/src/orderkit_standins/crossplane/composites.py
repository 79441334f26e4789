"""
Reconcile the XRs of one kind: choose a Composition, run its pipeline, apply the result.

Level-based: it converges from any state, also after a crash between any two writes. Functions
never run for an XR that is being deleted; its children go by owner reference. Woken by the
XR itself, by every object it composes or requires, by new revisions and by Function objects.

Not here: claims, connection secrets of legacy XRs, the two-minute limit of a reconcile, and the
echo of ``reconcile-requested-at`` (its change does reconcile).
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any

from compositions.composed import COMPOSE_REASON, Composed, World, steps_of
from compositions.composed_metadata import COMPOSITE_LABEL, root_labelled
from compositions.composition_choice import CHOICE_FIELDS, NAME_LABEL, Choice, choose
from compositions.paused import is_paused
from compositions.pipeline import compose
from compositions.station import Selector as Required
from ground.errors import ConflictError, OrderkitError
from ground.objects.conditions import (
    DELETING,
    RECONCILE_PAUSED,
    RECONCILE_SUCCESS,
    SYSTEM_TYPES,
    Condition,
    first_and_more,
    reconcile_error,
    unknown_after_fatal,
)
from ground.objects.kube_objects import (
    COMPOSITION_REVISION,
    FUNCTION,
    Manifest,
    ObjectKey,
    condition,
    dig,
    labels_of,
    metadata,
)
from kubeschema.xrd import machinery_path, xr_kind
from orderkit_standins.controller import Backoff, Controller
from orderkit_standins.crossplane import applying
from orderkit_standins.crossplane.applying import ApplyError
from orderkit_standins.crossplane.circuit_breaker import CircuitBreaker
from orderkit_standins.crossplane.events import OWNER
from orderkit_standins.crossplane.functions import installed
from orderkit_standins.crossplane.reconciler_context import ReconcilerContext, is_deleting
from orderkit_standins.crossplane.revisions import VALID_PIPELINE
from orderkit_standins.crossplane.tracking import Tracker

FINALIZER = "composite.apiextensions.crossplane.io"
BACKOFF = Backoff(first_s=1.0, longest_s=30.0)
_AGAIN_S = 0.02
"""Pause after a conflicting write to the XR."""
_JITTER = 0.1


class ReconcileError(OrderkitError):
    """This round failed; `reason` is the reason of its event."""

    def __init__(
        self,
        message: str,
        *,
        reason: str = COMPOSE_REASON,
        condition_text: str = "",
        composed: Composed | None = None,
    ) -> None:
        super().__init__(message)
        self.reason = reason
        self.shown = condition_text or message
        """The message of the condition Synced."""
        self.said = composed
        """The pipeline's output before it failed; None if it did not run."""

    def conditions(self, xr: Manifest) -> list[Condition]:
        """Return the conditions to set; the pipeline's own ones that it left out become Unknown."""
        if self.said is None:
            return [reconcile_error(self.shown)]
        unsaid = _own_types(xr) - {condition.type for condition in self.said.conditions}
        unknown = [unknown_after_fatal(type_) for type_ in sorted(unsaid)]
        return [*self.said.conditions, *unknown, reconcile_error(self.shown)]


class Composites:
    """The controller of one XRD's XRs."""

    def __init__(self, site: ReconcilerContext, xrd: Manifest) -> None:
        self._site = site
        self._kind = xr_kind(xrd)
        self._path = machinery_path(xrd)
        self._xrd = xrd
        self._tracker = Tracker()
        self._breaker = CircuitBreaker()
        self._controller = Controller(
            f"composite/{metadata(xrd)['name']}", site.cluster, self._reconcile, backoff=BACKOFF
        )
        self._controller.watch(self._kind, self._own)
        self._controller.watch(COMPOSITION_REVISION, self._users_of)
        self._controller.watch(FUNCTION, self._all)

    def start(self) -> None:
        self._controller.start()

    def stop(self) -> None:
        """Stop after the reconciles that are running."""
        self._controller.stop()

    def _own(self, xr: Manifest) -> Iterable[ObjectKey]:
        return self._breaker.passing(xr, (ObjectKey.of(xr),))

    def _dependants(self, changed: Manifest) -> Iterable[ObjectKey]:
        return self._breaker.passing(changed, self._tracker.dependants(changed))

    def _all(self, _: Manifest) -> Iterable[ObjectKey]:
        return [ObjectKey.of(xr) for xr in self._site.cluster.list(self._kind).items]

    def _users_of(self, revision: Manifest) -> Iterable[ObjectKey]:
        """XRs that would move to this revision, and those that found none yet."""
        xr_type = {"apiVersion": self._kind.api_version, "kind": self._kind.kind}
        if dig(revision, "spec", "compositeTypeRef") != xr_type:
            return
        name = labels_of(revision).get(NAME_LABEL)
        for xr in self._site.cluster.list(self._kind).items:
            if dig(xr, *self._path, "compositionRef", "name") in (None, name):
                yield ObjectKey.of(xr)

    def _reconcile(self, key: ObjectKey) -> float | None:
        xr = self._site.cluster.get(key)
        if xr is None:
            self._tracker.forget(key)
            self._breaker.forget(key)
            return None
        try:
            return self._visit(xr)
        except ConflictError:
            return _AGAIN_S

    def _visit(self, xr: Manifest) -> float | None:
        if is_paused(xr):
            text = "Reconciliation is paused via the pause annotation"
            self._site.recorder.normal(xr, "ReconciliationPaused", text)
            self._site.write_status(xr, self._responsive(xr), RECONCILE_PAUSED)
            return None
        if is_deleting(xr):
            self._release(xr)
            return None
        try:
            return self._assemble(xr)
        except ReconcileError as failure:
            self._tell_failure(xr, failure)
            raise

    def _release(self, xr: Manifest) -> None:
        """Remove the finalizer of a deleted XR; the garbage collector deletes its children."""
        self._tracker.forget(ObjectKey.of(xr))
        remaining = self._site.drop_finalizer(xr, FINALIZER)
        if remaining is not None:
            self._site.write_status(remaining, self._responsive(xr), DELETING, RECONCILE_SUCCESS)

    def _assemble(self, xr: Manifest) -> float | None:
        choice = choose(
            xr, self._xrd, partial(applying.fetch, self._site), self._site.chance.choice
        )
        xr = self._prepared(xr, choice)
        for event in choice.events:
            self._site.recorder.record(xr, event)
        if choice.error:
            raise ReconcileError(choice.error, reason=choice.reason)
        return self._compose(xr, _usable(choice.revision))

    def _prepared(self, xr: Manifest, choice: Choice) -> Manifest:
        """Write finalizer, root label and references to Composition and revision, in one go."""
        finalizers = metadata(xr).get("finalizers") or []
        changes: dict[str, Any] = {}
        if FINALIZER not in finalizers:
            changes["finalizers"] = [*finalizers, FINALIZER]
        if not labels_of(xr).get(COMPOSITE_LABEL):
            changes["labels"] = {COMPOSITE_LABEL: labels_of(root_labelled(xr))[COMPOSITE_LABEL]}
        if not changes and not choice.machinery:
            return xr
        changes["resourceVersion"] = metadata(xr)["resourceVersion"]
        fields: dict[str, Any] = dict(choice.machinery)
        for step in reversed(self._path):
            fields = {step: fields}
        patch = {"metadata": changes, **(fields if choice.machinery else {})}
        return self._site.cluster.patch(ObjectKey.of(xr), patch, owner=OWNER)

    def _compose(self, xr: Manifest, revision: Manifest) -> float | None:
        references = dig(xr, *self._path, "resourceRefs", default=None) or []
        try:
            observed = applying.observe(self._site, xr, references)
            composed = compose(xr, steps_of(revision["spec"]), self._world(observed))
            watched = references if composed.error else composed.references
            self._watch(xr, watched, composed.requirements)
            if composed.error:
                raise _failed(composed.error, composed=composed)
            applied = applying.apply(self._site, xr, composed, self._path)
        except ApplyError as error:
            condition_text = "some resources were invalid, check events" if error.invalid else ""
            raise _failed(str(error), condition_text=condition_text) from error
        return self._tell(xr, composed, applied)

    def _world(self, observed: applying.Observed) -> World:
        functions = installed(self._site)
        return World(
            functions=functions.running,
            observed=observed.resources,
            connection_details=observed.connection_details,
            lookup=lambda selector: applying.fetch(self._site, selector),
            scope_of=self._site.scope_of,
            foreign=functions.foreign,
            remote=functions.programs,
        )

    def _watch(
        self, xr: Manifest, references: Sequence[Manifest], required: Sequence[Required]
    ) -> None:
        """
        Follow what the XR composes and requires, before any of it is written.

        After a failure too: a station that refuses for want of a fact is woken by the fact.
        """
        keys = [applying.key_of_reference(reference, xr) for reference in references]
        for kind in self._tracker.track(ObjectKey.of(xr), keys, required):
            self._controller.watch(kind, self._dependants)

    def _tell(
        self, before: Manifest, composed: Composed, applied: applying.Applied
    ) -> float | None:
        """Write conditions and events of a whole round; return when to look again."""
        if self._wish(applied.xr) != self._wish(before):
            return 0.0
        for event in (*composed.events, *applied.events):
            self._site.recorder.record(applied.xr, event)
        for name in applied.unsynced:
            text = f'Composed resource "{name}" is not yet valid'
            self._site.recorder.normal(applied.xr, COMPOSE_REASON, text)
        for name in composed.unready:
            text = f'Composed resource "{name}" is not yet ready'
            self._site.recorder.normal(applied.xr, COMPOSE_REASON, text)
        synced = RECONCILE_SUCCESS
        if applied.unsynced:
            synced = reconcile_error(f"Unsynced resources: {first_and_more(applied.unsynced)}")
        self._site.write_status(
            applied.xr,
            self._responsive(before),
            *composed.conditions,
            synced,
            composed.ready_condition,
        )
        if not composed.ttl_s:
            return None
        return composed.ttl_s * self._site.chance.uniform(1 - _JITTER, 1 + _JITTER)

    def _responsive(self, xr: Manifest) -> Condition:
        return self._breaker.responsive(ObjectKey.of(xr))

    def _wish(self, xr: Manifest) -> Mapping[str, Any]:
        """Return the user's part of the spec: without Crossplane's own fields."""
        spec = xr.get("spec") or {}
        return {key: value for key, value in spec.items() if key not in _MACHINERY}

    def _tell_failure(self, xr: Manifest, failure: ReconcileError) -> None:
        """Write Synced=False; Ready keeps its last value."""
        self._site.recorder.warning(xr, failure.reason, str(failure))
        for event in failure.said.events if failure.said else ():
            self._site.recorder.record(xr, event)
        current = self._site.cluster.get(ObjectKey.of(xr))
        if current is None or self._wish(current) != self._wish(xr):
            return
        with contextlib.suppress(ConflictError):
            self._site.write_status(current, self._responsive(xr), *failure.conditions(current))


_COMPOSE = "cannot compose resources: "
_MACHINERY = frozenset({"crossplane", "resourceRefs", *CHOICE_FIELDS})


def _failed(
    text: str, *, condition_text: str = "", composed: Composed | None = None
) -> ReconcileError:
    return ReconcileError(
        _COMPOSE + text,
        condition_text=_COMPOSE + (condition_text or text),
        composed=composed or Composed(),
    )


def _own_types(xr: Manifest) -> set[str]:
    present = dig(xr, "status", "conditions", default=())
    return {str(entry.get("type")) for entry in present} - SYSTEM_TYPES


def _usable(revision: Manifest | None) -> Manifest:
    """Return the revision if its pipeline was judged valid."""
    if revision is None:
        raise ReconcileError("cannot fetch Composition: no compatible CompositionRevisions found")
    verdict = condition(revision, VALID_PIPELINE.type) or {}
    if verdict.get("status") != "True":
        raise ReconcileError(
            f"selected CompositionRevision {metadata(revision)['name']} does not have a valid "
            f"function pipeline: {verdict.get('message') or 'pipeline status unknown'}"
        )
    return revision
