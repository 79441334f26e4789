"""
Reconcile the XRs of one kind: choose a Composition, run its pipeline, apply the result.

`Composites` is level-based: it converges from any state, also after a crash between any two writes.
Functions never run for an XR that is being deleted; its children go by owner reference. Woken by
the XR itself, by every object it composes or requires, by new revisions and by Function objects.

Not here: claims, connection secrets of legacy XRs, the two-minute limit of a reconcile, and the
echo of ``reconcile-requested-at`` (its change does reconcile).

`CircuitBreaker` is Crossplane's: an XR that too many events concern is looked at every 30 s only.
Each XR has a bucket of tokens that fills by one a second. A closed circuit opens when the bucket is
empty.

`Tracker` knows which XRs depend on which objects, so that a change of one wakes the others. An XR
depends on what it composes (by name) and on what its functions require (by name or labels). It is
kept in memory only: every XR is reconciled once after a start, which fills it again.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from compositions.composed import (
    COMPOSE_REASON,
    COMPOSITE_LABEL,
    Composed,
    World,
    root_labelled,
    steps_of,
)
from compositions.composition_choice import CHOICE_FIELDS, NAME_LABEL, Choice, choose
from compositions.paused import is_paused
from compositions.pipeline import compose
from compositions.station import Selector
from compositions.station import Selector as Required
from ground.errors import ConflictError, OrderkitError
from ground.objects.kube_objects import (
    COMPOSITION_REVISION,
    DELETING,
    FUNCTION,
    RECONCILE_PAUSED,
    RECONCILE_SUCCESS,
    RESPONSIVE,
    SYSTEM_TYPES,
    Condition,
    Kind,
    Manifest,
    ObjectKey,
    condition,
    dig,
    first_and_more,
    labels_of,
    metadata,
    reconcile_error,
    unknown_after_fatal,
)
from kubeschema.xrd import machinery_path, xr_kind
from orderkit_standins.controller import Backoff, Controller
from orderkit_standins.crossplane import applying
from orderkit_standins.crossplane.applying import ApplyError
from orderkit_standins.crossplane.pipeline_parts import VALID_PIPELINE, installed
from orderkit_standins.crossplane.reconciler_context import OWNER, ReconcilerContext, is_deleting

BURST = 1000
"""As ``gitops/crossplane`` starts the real core; its default is 100."""
# an event takes two, as an update in Crossplane (the few creations and deletions take one there)
_COST, _REFILL_PER_S = 2.0, 1.0
_COOLDOWN_S, _PROBE_S = 300.0, 30.0
"""Crossplane's: how long the breaker is open, and how often one event passes then."""


@dataclass(slots=True)
class _Circuit:
    tokens: float
    filled_s: float
    sources: deque[str] = field(default_factory=lambda: deque(maxlen=100))
    opened_s: float | None = None
    allowed_s: float = 0.0
    trigger: str = ""


class CircuitBreaker:
    """The circuits of one kind of XR. Thread-safe."""

    def __init__(self) -> None:
        self._circuits: dict[ObjectKey, _Circuit] = {}
        self._lock = threading.Lock()

    def passing(self, changed: Manifest, xrs: Iterable[ObjectKey]) -> Iterator[ObjectKey]:
        """Count an event for each of the XRs that it concerns; yield those that it may wake."""
        for xr in xrs:
            with self._lock:
                is_allowed = self._take(xr, _name(changed))
            if is_allowed:
                yield xr

    def responsive(self, xr: ObjectKey) -> Condition:
        """Return the condition Responsive."""
        with self._lock:
            circuit = self._circuits.get(xr)
        if circuit is None or circuit.opened_s is None:
            return RESPONSIVE
        text = f"Too many watch events from {circuit.trigger}. Allowing events periodically."
        return Condition(RESPONSIVE.type, "False", "WatchCircuitOpen", text)

    def forget(self, xr: ObjectKey) -> None:
        with self._lock:
            self._circuits.pop(xr, None)

    def _take(self, xr: ObjectKey, source: str) -> bool:
        now = time.monotonic()
        circuit = self._circuits.setdefault(xr, _Circuit(BURST, now))
        filled = circuit.tokens + _REFILL_PER_S * (now - circuit.filled_s)
        circuit.tokens, circuit.filled_s = min(BURST, filled), now
        circuit.sources.append(source)
        # with the first event after five minutes, so that a quiet XR stays as it is
        if circuit.opened_s is not None and now - circuit.opened_s >= _COOLDOWN_S:
            circuit.opened_s = None
            circuit.sources.clear()
        if circuit.opened_s is None:
            if circuit.tokens >= _COST:
                circuit.tokens -= _COST
                return True
            circuit.opened_s = circuit.allowed_s = now
            circuit.trigger = Counter(circuit.sources).most_common(1)[0][0]
            return True  # so that the condition is written
        if now - circuit.allowed_s < _PROBE_S:
            return False
        circuit.allowed_s = now
        return True


def _name(manifest: Manifest) -> str:
    meta = metadata(manifest)
    home = f" ({meta['namespace']})" if meta.get("namespace") else ""
    return f"{manifest.get('kind')}/{meta.get('name')}{home}"


class Tracker:
    """The dependencies of one kind of XR. Thread-safe; a question does not walk through all XRs."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._composed: dict[ObjectKey, frozenset[ObjectKey]] = {}
        self._composers: dict[ObjectKey, set[ObjectKey]] = {}
        self._required: dict[Kind, dict[ObjectKey, list[Selector]]] = {}

    def track(
        self, xr: ObjectKey, composed: Iterable[ObjectKey], required: Iterable[Selector]
    ) -> frozenset[Kind]:
        """Replace the dependencies of an XR; return their kinds."""
        composed = frozenset(composed)
        by_kind: dict[Kind, list[Selector]] = {}
        for selector in required:
            by_kind.setdefault(Kind.parse(selector.api_version, selector.kind), []).append(selector)
        with self._lock:
            self._unlink(xr)
            self._composed[xr] = composed
            for key in composed:
                self._composers.setdefault(key, set()).add(xr)
            for kind, selectors in by_kind.items():
                self._required.setdefault(kind, {})[xr] = selectors
        return frozenset({key.kind for key in composed} | by_kind.keys())

    def forget(self, xr: ObjectKey) -> None:
        with self._lock:
            self._unlink(xr)

    def _unlink(self, xr: ObjectKey) -> None:
        for key in self._composed.pop(xr, ()):
            composers = self._composers[key]
            composers.discard(xr)
            if not composers:
                del self._composers[key]
        for xrs in self._required.values():
            xrs.pop(xr, None)

    def dependants(self, changed: Manifest) -> tuple[ObjectKey, ...]:
        """Return the XRs that depend on this object."""
        key = ObjectKey.of(changed)
        with self._lock:
            found = set(self._composers.get(key, ()))
            requiring = tuple(self._required.get(key.kind, {}).items())
        for xr, selectors in requiring:
            if any(_selects(selector, key, changed) for selector in selectors):
                found.add(xr)
        return tuple(found)


def _selects(selector: Selector, key: ObjectKey, manifest: Manifest) -> bool:
    if selector.namespace is not None and selector.namespace != key.namespace:
        return False
    if selector.name:
        return selector.name == metadata(manifest).get("name")
    labels = labels_of(manifest)
    return all(labels.get(name) == value for name, value in selector.labels.items())


FINALIZER = "composite.apiextensions.crossplane.io"
BACKOFF = Backoff(first_s=1.0, longest_s=30.0)
_AGAIN_S = 0.02
"""Pause after a conflicting write to the XR."""
_JITTER = 0.1
"""Crossplane's, of the time after which an XR is composed again."""


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
            # after a failure too: a station that refuses for want of a fact is woken by the fact
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
        """Follow what the XR composes and requires, before any of it is written."""
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
