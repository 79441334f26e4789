"""
Crossplane's compose algorithm, pure: an XR in, everything to apply and delete out.

`compose` runs the steps of a Composition over what is observed and returns a `Composed`:
dressed resources, deletions, references, status, conditions, events. It follows Crossplane's
FunctionComposer (2.3 and later) step by step, texts included. It does no I/O: required
resources and the scope of kinds come through callables.

Not done here: applying (which can fail per resource), the Synced condition that follows from
it, selection of the Composition. Not known here at all: credentials and schemas of steps.

Called by the embedded assembly, which applies the result, and by plans and tests.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

from orderkit.core import dressing
from orderkit.core.composed import COMPOSE_REASON, Composed, Desired, Event, Step, World
from orderkit.core.conditions import SYSTEM_TYPES, Condition
from orderkit.core.errors import OrderkitError
from orderkit.core.objects import Manifest
from orderkit.core.plaindata import NotPlainError, copied
from orderkit.core.station import (
    Ready,
    Resource,
    Selector,
    Severity,
    State,
    Station,
    StationRequest,
    StationResponse,
)

MAX_ITERATIONS = 5
"""Calls after the first one that a step may use to settle its requirements."""


class ComposeError(OrderkitError):
    """The pipeline or its result cannot be used. Nothing was changed."""


def compose(xr: Manifest, steps: Sequence[Step], world: World) -> Composed:
    """
    Run the pipeline for one XR and return what has to happen.

    Deterministic as long as the functions are. The XR needs a uid and the label
    ``crossplane.io/composite`` (`dressing.root_labelled` sets it). Never raises for what a
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
        )


class _Run:
    """State that accumulates over the steps of one run."""

    def __init__(self, xr: Manifest, world: World) -> None:
        self._xr, self._world = xr, world
        self._observed = State(
            Resource(xr),
            {
                name: Resource(
                    manifest, connection_details=dict(world.connection_details.get(name, {}))
                )
                for name, manifest in world.observed.items()
            },
        )
        self._desired = State()
        self._context: dict[str, Any] = {}
        self._ttl_s = 0.0
        self.events: list[Event] = []
        self.conditions: list[Condition] = []
        self.requirements: list[Selector] = []

    def step(self, step: Step) -> None:
        response = self._settled(step)
        self.requirements += [*step.required.values(), *response.requirements.values()]
        if response.ttl_s > 0:
            self._ttl_s = min(self._ttl_s or response.ttl_s, response.ttl_s)
        self._desired, self._context = response.desired, response.context
        self.conditions += [c for c in response.conditions if c.type not in SYSTEM_TYPES]
        for result in response.results:
            if result.severity is Severity.FATAL:
                raise ComposeError(
                    f'pipeline step "{step.name}" returned a fatal result: {result.message}'
                )
            kind: Literal["Normal", "Warning"] = (
                "Normal" if result.severity is Severity.NORMAL else "Warning"
            )
            message = f'Pipeline step "{step.name}": {result.message}'
            self.events.append(Event(kind, result.reason or COMPOSE_REASON, message))

    def _settled(self, step: Step) -> StationResponse:
        """Call the step's function until it asks for nothing new."""
        function = self._function(step)
        given = {name: self._fetched(step, s) for name, s in step.required.items()}
        sent, context, asked = given, self._context, dict[str, Selector]()
        for iteration in range(MAX_ITERATIONS + 1):
            response = self._call(step, function, sent, context)
            fatal = any(result.severity is Severity.FATAL for result in response.results)
            if fatal or response.requirements == asked:
                return response
            asked = dict(response.requirements)
            found = {name: self._fetched(step, s) for name, s in asked.items()}
            resolved = {**given, **found}
            if iteration == 0 and resolved == sent:
                return response
            sent, context = resolved, response.context
        raise ComposeError(
            f'cannot run Composition pipeline step "{step.name}": requirements didn\'t stabilize '
            f"after the maximum number of iterations ({MAX_ITERATIONS})"
        )

    def _function(self, step: Step) -> Station:
        function = self._world.functions.get(step.function)
        if function is not None:
            return function
        if step.function in self._world.foreign:
            known = ", ".join(sorted(self._world.functions)) or "none"
            raise ComposeError(
                f'cannot run Composition pipeline step "{step.name}": cannot run Function '
                f'"{step.function}": it is no Python function of this process; those are: {known}'
            )
        raise ComposeError(
            f'cannot run Composition pipeline step "{step.name}": cannot get gRPC client '
            f'connection for Function "{step.function}": cannot find an active FunctionRevision '
            "(a FunctionRevision with spec.desiredState: Active)"
        )

    def _fetched(self, step: Step, selector: Selector) -> tuple[Manifest, ...]:
        try:
            return tuple(self._world.fetch(selector))
        except OrderkitError as error:
            raise ComposeError(
                f'cannot run Composition pipeline step "{step.name}": cannot fetch required '
                f"resources ({selector.kind} of {selector.api_version}): {error}"
            ) from error

    def _call(
        self,
        step: Step,
        function: Station,
        required: Mapping[str, tuple[Manifest, ...]],
        context: Mapping[str, Any],
    ) -> StationResponse:
        """Call once, with copies in and copies out, as if over a wire."""
        request = StationRequest(
            observed=_copy(self._observed),
            desired=_copy(self._desired),
            context=copied(dict(context)),
            input=copied(dict(step.input)),
            required={name: tuple(copied(m) for m in items) for name, items in required.items()},
        )
        try:
            response = function(request)
            return replace(
                response, desired=_copy(response.desired), context=copied(response.context)
            )
        except NotPlainError as error:
            raise _unusable(step, f"returned data that cannot be sent: {error}") from error
        except Exception as error:  # a function may raise whatever it likes
            raise _unusable(step, f"failed: {type(error).__name__}: {error}") from error

    def result(self) -> Composed:
        resources = {
            name: self._dressed(name, resource)
            for name, resource in sorted(self._desired.resources.items())
        }
        status = dict(self._desired.composite.resource.get("status") or {})
        status.pop("conditions", None)
        return Composed(
            resources=resources,
            deletions={
                name: manifest
                for name, manifest in sorted(self._world.observed.items())
                if name not in resources and dressing.is_controlled_by(manifest, self._xr)
            },
            references=dressing.references([d.manifest for d in resources.values()], self._xr),
            status=status,
            conditions=tuple(self.conditions),
            events=tuple(self.events),
            ready=self._desired.composite.ready,
            ttl_s=self._ttl_s,
            context=self._context,
            requirements=tuple(self.requirements),
        )

    def _dressed(self, name: str, resource: Resource) -> Desired:
        try:
            manifest, overridden = dressing.dress(
                name,
                resource.resource,
                self._xr,
                observed=self._world.observed.get(name),
                scope_of=self._world.scope_of,
            )
        except dressing.UndressableError as error:
            raise ComposeError(str(error)) from error
        if overridden:
            self.events.append(Event("Warning", "NamespaceOverridden", overridden))
        return Desired(manifest, resource.ready is Ready.TRUE)


def _unusable(step: Step, why: str) -> ComposeError:
    return ComposeError(
        f'cannot run Composition pipeline step "{step.name}": Function "{step.function}" {why}'
    )


def _copy(state: State) -> State:
    return State(
        _copy_resource(state.composite, "the XR"),
        {name: _copy_resource(r, name) for name, r in state.resources.items()},
    )


def _copy_resource(resource: Resource, name: str) -> Resource:
    return Resource(
        copied(resource.resource, name),
        Ready(resource.ready),
        dict(resource.connection_details),
    )
