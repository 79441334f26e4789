"""
Assemble orders by the stations of one pack, for a plan over many orders.

It gets the pack once, then does one task after the other: assemble an order as it is, or go on from
there with another pack and compare. Two packs never meet in one process: `load` is the entry of a
child (`ports.processes`), and ``parallel_planning`` sends it pickled values of this module. Both
ends are ours, on one machine; stations run in confined processes that each child starts.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from compositions.function_processes import FunctionProcess
from compositions.station import Selector
from ground.errors import OrderkitError
from ground.names import Files
from ground.objects.kube_objects import Kind, Manifest
from ground.objects.values import ABSENT, path_text, same, value_at
from orderkit.core.kit.pack import read_pack
from orderkit.core.plan import Assembly, AssemblyContext, Fault, assemble, with_secret_traces
from orderkit.core.plan.assembly import SecretField
from orderkit.core.plan.comparison import plan_with_secrets
from orderkit.core.plan.dangers import DangerContext
from orderkit.core.plan.fleet_plan import without_unnamed
from orderkit.core.plan.live_state import Defaults, paused_parts
from orderkit.core.plan.masking import masked, masked_assembly
from orderkit.core.plan.price_table import PriceTable
from orderkit.core.plan.secret_traces import secret_fields
from orderkit.core.secret_values import SecretTexts, values_of
from orderkit.flows.composing.cluster_questions import judged
from orderkit.flows.composing.planner import with_costs
from orderkit.flows.composing.published_pack import loaded_workshop
from orderkit.ports.pipeline_functions import PipelineFunctions

ENTRY = "orderkit.flows.plan.planning_process:load"


@dataclass(frozen=True, slots=True)
class AssemblerSetup:
    """What the process works with."""

    files: Files
    """Of the pack, as far as they are needed."""
    functions: PipelineFunctions
    defaults: Defaults = field(default_factory=dict)
    """What the XRD of the pack before gave to fields that nobody set."""
    prices: PriceTable | None = None
    """What things cost."""
    processes: tuple[FunctionProcess, ...] = ()
    """Functions to call instead of running them here."""
    asks_cluster: bool = False
    """What cannot be looked up does not exist."""


@dataclass(frozen=True, slots=True)
class PlanBefore:
    """Assemble an order as it is."""

    xr: Manifest
    observed: Mapping[str, Manifest]
    existing: tuple[Manifest, ...]
    is_judged: bool = False
    """Say, too, what of it should be refused already."""


@dataclass(frozen=True, slots=True)
class PlanAfter:
    """Assemble an order anew and compare with what the other process found."""

    xr: Manifest
    before: bytes
    """The `Assembly`, pickled."""
    existing: tuple[Manifest, ...]
    is_stored: bool = False
    """The XR is as the API server has it, with the defaults of its first day."""


@dataclass(frozen=True, slots=True)
class TaskAnswer:
    """What became of a task: a pickled `Assembly` or slim `Plan`, or an error."""

    payload: bytes = b""
    error: str = ""
    selectors: tuple[Selector, ...] = ()
    stored: Manifest = field(default_factory=dict)
    """Of `PlanBefore`: the XR with its defaults."""
    secret_fields: frozenset[SecretField] = frozenset()
    """Of `PlanBefore`: what of the order's objects follows from a Secret."""
    judged: bool = False
    """Of `PlanAfter`: something is wrong with the outcome, perhaps already before."""


def load(message: bytes) -> tuple[bytes, Callable[[bytes], bytes] | None]:
    """Load a pack; return whether that went well, and what answers tasks."""
    setup: AssemblerSetup = pickle.loads(message)  # noqa: S301 - from the process that started us
    try:
        workshop = loaded_workshop(read_pack(setup.files), setup.functions, setup.processes)
        workshop = replace(workshop, asks_cluster=setup.asks_cluster)
        bench = _Bench(workshop, setup.defaults, setup.prices)
    except OrderkitError as error:
        return pickled(TaskAnswer(error=str(error))), None
    return pickled(TaskAnswer()), bench.answer


@dataclass(slots=True)
class _Bench:
    workshop: AssemblyContext
    defaults: Defaults
    prices: PriceTable | None

    def answer(self, message: bytes) -> bytes:
        task: PlanBefore | PlanAfter = pickle.loads(message)  # noqa: S301 - from the process that started us
        try:
            answer = self.before(task) if isinstance(task, PlanBefore) else self.after(task)
        except (OrderkitError, ValueError, MemoryError, RecursionError) as error:
            # the text of an exception may hold a value that a station was given
            secrets = SecretTexts(values_of(task.existing))
            answer = TaskAnswer(error=secrets.redact(f"{type(error).__name__}: {error}"))
        return pickled(answer)

    def before(self, task: PlanBefore) -> TaskAnswer:
        if self.workshop.blueprint(task.xr) is None:
            return TaskAnswer(error=_no_composition(task.xr))
        workshop = replace(self.workshop, existing=task.existing)
        assembly = assemble(task.xr, workshop, observed=task.observed)
        assembly = with_secret_traces(assembly, task.xr, workshop, task.observed)
        stored = {key: value for key, value in assembly.xr.items() if key != "status"}
        hidden = secret_fields(assembly, {**task.observed, "": task.xr})
        selectors = assembly.requirements
        if task.is_judged:
            assembly = judged(None, workshop, assembly, assembly)
            assembly = masked_assembly(assembly, task.existing)
        return TaskAnswer(
            pickled(assembly), selectors=selectors, stored=stored, secret_fields=hidden
        )

    def after(self, task: PlanAfter) -> TaskAnswer:
        if self.workshop.blueprint(task.xr) is None:
            return TaskAnswer(error=_no_composition(task.xr))
        before: Assembly = pickle.loads(task.before)  # noqa: S301 - from a process like this one
        workshop = replace(self.workshop, existing=(*task.existing, *before.assumed))
        observed = before.observed
        # what the old XRD refused is not what is stored
        stored = task.xr if any(_is_schema(fault) for fault in before.faults) else before.xr
        made_by = before.made_by
        after = assemble(stored, workshop, observed=observed, attributed=made_by)
        after = with_secret_traces(
            after, stored, workshop, observed, attributed=made_by, before=before
        )
        after = replace(after, faults=tuple(f for f in after.faults if not self._is_ours(f, task)))
        fresh = after
        if after.renamed:
            fresh = assemble(stored, workshop)
            fresh = with_secret_traces(fresh, stored, workshop, {})
        context = DangerContext(workshop.laws, workshop.existing)
        plan = plan_with_secrets(before, after, fresh=fresh, context=context)
        plan = replace(plan, paused=paused_parts(before, after, None, task.xr))
        plan = replace(plan, after=judged(None, workshop, before, plan.after))
        selectors = {
            repr(selector): selector for selector in (*after.requirements, *fresh.requirements)
        }
        is_judged = plan.after.faults != after.faults
        plan = without_unnamed(with_costs(masked(plan, context, fresh=fresh), self.prices))
        return TaskAnswer(pickled(plan), selectors=tuple(selectors.values()), judged=is_judged)

    def _is_ours(self, fault: Fault, task: PlanAfter) -> bool:
        """Say whether an unknown field is only an old default, which the API server drops."""
        if fault.path or not fault.message.startswith("unknown field"):
            return False
        for steps, default in self.defaults.items():
            if fault.field == path_text(("spec", *steps)):
                value = value_at(task.xr, ("spec", *steps))
                return value is ABSENT or (task.is_stored and same(value, default))
        return False


def _is_schema(fault: Fault) -> bool:
    return not fault.path and bool(fault.field)


def _no_composition(xr: Manifest) -> str:
    return f"this pack has no Composition for {Kind.of(xr)}"


def pickled(value: object) -> bytes:
    """Return a value as a message."""
    return pickle.dumps(value, pickle.HIGHEST_PROTOCOL)
