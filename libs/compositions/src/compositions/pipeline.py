"""
Crossplane's compose algorithm, pure: an XR in, everything to apply and delete out.

`compose` runs the steps of a Composition over what is observed and returns a `Composed`: resources
with their metadata, deletions, references, status, conditions, events. It follows Crossplane's
FunctionComposer (2.3 and later) step by step, including its messages. It does no I/O: required
resources and the scope of kinds come through callables.

A step that cannot run here (`OpaqueError`, an unknown function) is an error unless `World.passing`
is set; then the result says nothing about what the step composes, changes or drops.

Not done here: applying (which can fail per resource), the Synced condition that results from it,
and the selection of the Composition. Schemas of steps are not available.

A `Lender` passes manifests to functions as if over a wire, without copying unchanged ones. Each
function of a pipeline must get its own copy of everything, but changes nearly nothing. So it keeps
each manifest twice: the original, which only a `Reader` ever holds, and a working copy, which is
passed on as long as it equals the original. Changed manifests are copied again for the next
function.
"""

from __future__ import annotations

import base64
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Generic, Literal, TypeVar

from compositions import composed
from compositions.composed import COMPOSE_REASON, Composed, Desired, PipelineStep, World, XrEvent
from compositions.station import (
    OpaqueError,
    Ready,
    Resource,
    Result,
    Selector,
    Severity,
    State,
    Station,
    StationRequest,
    StationResponse,
)
from ground.errors import OrderkitError
from ground.objects.kube_objects import SYSTEM_TYPES, Condition, Manifest, labels_of, metadata
from ground.objects.values import NotPlainError, copied

__all__ = ["UNMATCHED", "compose"]


Key = TypeVar("Key", bound=Hashable)


class Lender(Generic[Key]):
    """Manifests by key. Shows the originals to readers only."""

    def __init__(self) -> None:
        self._originals: dict[Key, Manifest] = {}
        self._lent: dict[Key, Manifest] = {}

    def lend(self, keys: Iterable[Key]) -> dict[Key, Manifest]:
        """
        Return copies that a borrower may change; it must not keep them.

        Raises:
            NotPlainError: An original cannot be sent over a wire.
        """
        # one comparison for all: functions change nearly nothing
        if self._lent == self._originals:
            return {key: self._lent[key] for key in keys}
        return {key: self._copy(key) for key in keys}

    def _copy(self, key: Key) -> Manifest:
        original, copy = self._originals[key], self._lent.get(key)
        if copy is None or copy != original:
            copy = copied(original)
            self._lent[key] = copy
        return copy

    def kept(self, returned: Mapping[Key, Manifest], *, names: Mapping[Key, str]) -> Lender[Key]:
        """
        Return a lender of the returned manifests; unchanged ones are not copied.

        Args:
            names: What messages call a manifest; its key where it is not listed.

        Raises:
            NotPlainError: Something cannot be sent over a wire.
        """
        after: Lender[Key] = Lender()
        for key, manifest in returned.items():
            original, lent = self._originals.get(key), self._lent.get(key)
            # Only our own copy may be lent again: the function may keep an equal object of its own.
            if manifest is original or (manifest is lent and manifest == original):
                after._originals[key] = self._originals[key]
                after._lent |= {} if lent is None else {key: lent}
            else:
                after._originals[key] = copied(manifest, names.get(key, str(key)))
        return after

    def original(self, key: Key) -> Manifest:
        """Return an original, to read; raises KeyError if there is none."""
        return self._originals[key]


MAX_ITERATIONS = 5
"""Calls after the first one that a step may use to settle its requirements."""
UNMATCHED = "; there is no "
"""Begins what the error of a failed step says beyond Crossplane's words."""


class ComposeError(OrderkitError):
    """The pipeline or its result cannot be used. Nothing was changed."""


def compose(xr: Manifest, steps: Sequence[PipelineStep], world: World) -> Composed:
    """
    Run the pipeline for one XR and return what to apply and delete.

    Deterministic as long as the functions are. The XR needs a uid and the label
    ``crossplane.io/composite`` (`composed.root_labelled` sets it). Never raises for what a
    function does: that ends in ``Composed.error``, in Crossplane's words.
    """
    run = _Run(xr, world)
    try:
        for step in steps:
            run.step(step)
        return run.result()
    except ComposeError as error:
        return Composed(
            error=str(error),
            events=tuple(run.events),
            conditions=tuple(run.conditions),
            requirements=tuple(run.requirements),
            opaque=run.opaque,
        )


class _Run:
    """State that accumulates over the steps of one run."""

    def __init__(self, xr: Manifest, world: World) -> None:
        self._xr, self._world = xr, world
        self._observed = _CarriedState.given(
            State(
                Resource(xr),
                {
                    name: Resource(
                        manifest, connection_details=dict(world.connection_details.get(name, {}))
                    )
                    for name, manifest in world.observed.items()
                },
            )
        )
        self._desired = _CarriedState.given(State())
        self._context: dict[str, Any] = {}
        self._ttl_s = 0.0
        self.events: list[XrEvent] = []
        self.conditions: list[Condition] = []
        self.requirements: list[Selector] = []
        self.opaque: dict[str, str] = {}
        self._made_by: dict[str, str] = {}
        self._ran: set[str] = set()
        self._empty: list[Selector] = []
        """What the last step required and was not found."""

    def step(self, step: PipelineStep) -> None:
        try:
            self._take(step)
        except OpaqueError as error:
            self._pass_by(step, str(error), error)
        except ComposeError as error:
            # The failure may come from an earlier step that was skipped, so it says nothing about a
            # real run.
            if not self.opaque:
                raise
            opaque_names = ", ".join(f'"{name}"' for name in self.opaque)
            self._pass_by(step, f"without what {opaque_names} does it fails: {error}", error)

    def _pass_by(self, step: PipelineStep, why: str, error: Exception) -> None:
        """Continue as if the step did nothing, and record that it may do anything."""
        if not self._world.passing:
            raise ComposeError(
                f'cannot run Composition pipeline step "{step.name}": cannot run Function '
                f'"{step.function}": {why}'
            ) from error
        self.opaque[step.name] = why

    def _take(self, step: PipelineStep) -> None:
        response, desired = self._settled(step)
        self.requirements += [*step.required.values(), *response.requirements.values()]
        if response.ttl_s > 0:
            self._ttl_s = min(self._ttl_s or response.ttl_s, response.ttl_s)
        own_conditions = [
            condition for condition in response.conditions if condition.type not in SYSTEM_TYPES
        ]
        self.conditions += [replace(condition, dated=False) for condition in own_conditions]
        for result in response.results:
            if result.severity is Severity.FATAL:
                text = f'pipeline step "{step.name}" returned a fatal result: {result.message}'
                raise ComposeError(text + self._unmatched())
            self.events.append(_event(step, result))
        self._desired, self._context = desired, response.context
        self._ran.add(step.name)
        for name in desired.state.resources:
            self._made_by.setdefault(name, step.name)

    def _settled(self, step: PipelineStep) -> tuple[StationResponse, _CarriedState]:
        """Call the step's function until its requirements do not change."""
        function, credentials = self._function(step), self._credentials(step)
        step_resources = {name: self._fetched(step, s) for name, s in step.required.items()}
        self._empty = [step.required[name] for name, found in step_resources.items() if not found]
        sent_resources, context, requested = step_resources, self._context, dict[str, Selector]()
        # As Crossplane's FetchingFunctionRunner: the first call does not count as an iteration, and
        # only the context is carried from one call to the next, not the desired state.
        for iteration in range(MAX_ITERATIONS + 1):
            response, desired = self._call(step, function, sent_resources, context, credentials)
            fatal = any(result.severity is Severity.FATAL for result in response.results)
            if fatal or response.requirements == requested:
                return response, desired
            requested = dict(response.requirements)
            requested_resources = {name: self._fetched(step, s) for name, s in requested.items()}
            self._empty = [
                requested[name] for name, found in requested_resources.items() if not found
            ]
            resolved = {**step_resources, **requested_resources}
            if iteration == 0 and resolved == sent_resources:
                return response, desired
            sent_resources, context = resolved, response.context
        raise ComposeError(
            f'cannot run Composition pipeline step "{step.name}": requirements didn\'t stabilize '
            f"after the maximum number of iterations ({MAX_ITERATIONS})"
        )

    def _function(self, step: PipelineStep) -> Station:
        function = self._world.functions.get(step.function)
        if function is not None:
            if step.unserved and step.function in self._world.remote:
                raise OpaqueError(f"{step.function} cannot be given {', '.join(step.unserved)}")
            return function
        if step.function in self._world.foreign:
            raise ComposeError(
                f'cannot run Composition pipeline step "{step.name}": cannot run Function '
                f'"{step.function}": {self._world.foreign[step.function]}'
            )
        if self._world.passing:
            raise OpaqueError(f"{step.function} runs in the cluster only")
        raise ComposeError(
            f'cannot run Composition pipeline step "{step.name}": cannot get gRPC client '
            f'connection for Function "{step.function}": cannot find an active FunctionRevision '
            "(a FunctionRevision with spec.desiredState: Active)"
        )

    def _unmatched(self) -> str:
        """Return what a failed step looked for and did not find; Crossplane does not say it."""
        if not self._world.passing:
            return ""
        words = []
        for selector in self._empty:
            labels = ", ".join(f"{key}={value}" for key, value in sorted(selector.labels.items()))
            asked = f'"{selector.name}"' if selector.name else f"with the labels {labels or 'none'}"
            words.append(f"{UNMATCHED}{selector.kind} {asked}")
        return "".join(words)

    def _credentials(self, step: PipelineStep) -> dict[str, dict[str, bytes]]:
        """Return what the step's Secrets hold; only programs of functions are given it."""
        found: dict[str, dict[str, bytes]] = {}
        if step.function not in self._world.remote:
            return found
        for name, selector in step.credentials.items():
            secrets = self._fetched(step, selector)
            if not secrets:
                raise OpaqueError(
                    f'it needs the credential "{name}", and the Secret'
                    f" {selector.namespace}/{selector.name} is not there"
                )
            data = secrets[0].get("data") or {}
            found[name] = {key: base64.b64decode(text) for key, text in data.items()}
        return found

    def _fetched(self, step: PipelineStep, selector: Selector) -> tuple[Manifest, ...]:
        try:
            return tuple(self._world.lookup(selector))
        except OrderkitError as error:
            raise ComposeError(
                f'cannot run Composition pipeline step "{step.name}": cannot fetch required '
                f"resources ({selector.kind} of {selector.api_version}): {error}"
            ) from error

    def _call(
        self,
        step: PipelineStep,
        function: Station,
        required: Mapping[str, tuple[Manifest, ...]],
        context: Mapping[str, Any],
        credentials: Mapping[str, Mapping[str, bytes]],
    ) -> tuple[StationResponse, _CarriedState]:
        """Call once, with copies in and copies out, as if over a wire. A reader needs none."""
        reads_only = getattr(function, "reads_only", False)
        request = StationRequest(
            observed=self._observed.state if reads_only else self._observed.lent(),
            desired=self._desired.shown() if reads_only else self._desired.lent(),
            context=copied(dict(context)),
            input=copied(dict(step.input)),
            required={name: tuple(copied(m) for m in items) for name, items in required.items()},
            credentials=credentials,
        )
        try:
            response = function(request)
            desired = self._desired.after(response.desired, _NAMES)
            return replace(response, context=copied(response.context)), desired
        except OpaqueError:
            raise
        except NotPlainError as error:
            raise _unusable(step, f"returned data that cannot be sent: {error}") from error
        except Exception as error:  # functions may raise anything
            raise _unusable(step, f"failed: {type(error).__name__}: {error}") from error

    def result(self) -> Composed:
        resources = {
            name: self._dressed(name, resource)
            for name, resource in sorted(self._desired.state.resources.items())
        }
        dropped = {
            name: manifest
            for name, manifest in sorted(self._world.observed.items())
            if name not in resources
        }
        kept = {name: observed for name, observed in dropped.items() if self._is_kept(name)}
        status = dict(self._desired.state.composite.resource.get("status") or {})
        # Functions set conditions through the response, not through the desired status.
        status.pop("conditions", None)
        return Composed(
            resources=resources,
            deletions={
                name: manifest
                for name, manifest in dropped.items()
                if name not in kept and composed.is_controlled_by(manifest, self._xr)
            },
            references=composed.references([d.manifest for d in resources.values()], self._xr),
            status=status,
            conditions=tuple(self.conditions),
            events=tuple(self.events),
            ready=self._desired.state.composite.ready,
            ttl_s=self._ttl_s,
            context=self._context,
            requirements=tuple(self.requirements),
            opaque=self.opaque,
            kept=kept,
            made_by=self._made_by,
        )

    def _is_kept(self, name: str) -> bool:
        """Return whether only a skipped step may compose a resource."""
        return bool(self.opaque) and self._world.attributed.get(name) not in self._ran

    def _dressed(self, name: str, resource: Resource) -> Desired:
        try:
            manifest, overridden = composed.with_metadata(
                name,
                resource.resource,
                self._xr,
                observed=self._world.observed.get(name),
                scope_of=self._world.scope_of,
            )
        except composed.MetadataError as error:
            raise ComposeError(str(error)) from error
        if overridden:
            self.events.append(XrEvent("Warning", "NamespaceOverridden", overridden))
        renamed = _is_renamed(resource.resource, manifest, self._xr)
        return Desired(manifest, resource.ready is Ready.TRUE, renamed)


def _is_renamed(desired: Manifest, dressed: Manifest, xr: Manifest) -> bool:
    """Return whether a new object would have another name or namespace than this one."""
    desired_meta, dressed_meta = metadata(desired), metadata(dressed)
    if not metadata(xr).get("namespace") and desired_meta.get("namespace") != dressed_meta.get(
        "namespace"
    ):
        return True
    if desired_meta.get("name"):
        return bool(desired_meta["name"] != dressed_meta.get("name"))
    prefix = desired_meta.get("generateName") or f"{labels_of(xr).get(composed.COMPOSITE_LABEL)}-"
    return not str(dressed_meta.get("name") or "").startswith(prefix)


def _event(step: PipelineStep, result: Result) -> XrEvent:
    kind: Literal["Normal", "Warning"] = (
        "Normal" if result.severity is Severity.NORMAL else "Warning"
    )
    odd = " returned a result of unknown severity (assuming warning)"
    suffix = odd if result.severity is Severity.UNSPECIFIED else ""
    message = f'Pipeline step "{step.name}"{suffix}: {result.message}'
    return XrEvent(kind, result.reason or COMPOSE_REASON, message)


def _unusable(step: PipelineStep, why: str) -> ComposeError:
    return ComposeError(
        f'cannot run Composition pipeline step "{step.name}": Function "{step.function}" {why}'
    )


class _CarriedState:
    """The state that is passed from function to function. `state` is read-only."""

    def __init__(self, state: State, lender: Lender[str | None]) -> None:
        self.state, self._lender = state, lender

    @classmethod
    def given(cls, state: State) -> _CarriedState:
        """Start from a copy of a state."""
        return cls(State(), Lender()).after(state, dict.fromkeys(_manifests(state), ""))

    def lent(self) -> State:
        """Return a copy that a function may change."""
        return _state(self._lender.lend((None, *self.state.resources)), self.state)

    def shown(self) -> State:
        """Return the state with manifests that a function must not change."""
        return _state(_manifests(self.state), self.state)

    def after(self, returned: State, names: Mapping[str | None, str]) -> _CarriedState:
        """Return the state that a function returned; raises NotPlainError."""
        manifests = _manifests(returned)
        lender = self._lender.kept(manifests, names=names)
        originals = {key: lender.original(key) for key in manifests}
        return _CarriedState(_state(originals, returned), lender)


def _state(manifests: Mapping[str | None, Manifest], like: State) -> State:
    """Return a state with other manifests."""
    return State(
        _resource(manifests[None], like.composite),
        {name: _resource(manifests[name], each) for name, each in like.resources.items()},
    )


_NAMES: Mapping[str | None, str] = {None: "the XR"}


def _manifests(state: State) -> dict[str | None, Manifest]:
    manifests: dict[str | None, Manifest] = {None: state.composite.resource}
    manifests.update((name, resource.resource) for name, resource in state.resources.items())
    return manifests


def _resource(manifest: Manifest, like: Resource) -> Resource:
    ready = like.ready if type(like.ready) is Ready else Ready(like.ready)
    return Resource(manifest, ready, dict(like.connection_details))
