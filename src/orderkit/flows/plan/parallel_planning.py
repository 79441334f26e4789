"""
Plan many orders at once: lanes of two processes each, one for each pack.

A lane's first process assembles an order as it is, its second goes on from there with the other
pack. A task that takes too long costs its process, which is killed, and one order, which is then
unknown; a pack whose stations gave no answer several times is given up.
"""

from __future__ import annotations

import pickle
import queue
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field, replace

from compositions.station import Selector
from ground.errors import OrderkitError
from ground.objects.kube_objects import Manifest, ObjectKey, metadata
from orderkit.core.inheriting_threads import InheritingThreads
from orderkit.core.plan import Assembly, Fault, Plan
from orderkit.core.plan.assembly import selector_text
from orderkit.core.plan.fleet_plan import OWN, OrderPlan
from orderkit.flows.composing.cluster_questions import Lookup, looked_up
from orderkit.flows.plan.planning_process import (
    ENTRY,
    AssemblerSetup,
    PlanAfter,
    PlanBefore,
    TaskAnswer,
    pickled,
)
from orderkit.ports.processes import (
    ChildEndedError,
    ChildProcess,
    ChildTimeoutError,
    Processes,
    ProcessLimits,
)

MEMORY_BYTES = 1 << 30
"""Data memory of one process that runs stations."""
START_S = 60.0
"""How long a process may take to load a pack."""
LOOKS_MAX = 5
"""How often facts may make stations ask for more facts."""
_ORDERS_PER_LANE = 8
_HABITS_MAX = 50
_SILENT_MAX = 3
"""So many orders without an answer, and a pack is given up."""


class SilentError(OrderkitError):
    """A pack's process gave no answer: it took too long, or ended."""


@dataclass(frozen=True, slots=True)
class OrderToPlan:
    """One order to plan."""

    order: str
    team: str
    xr: Manifest
    source: str
    observed: Mapping[str, Manifest] = field(default_factory=dict)
    unknowns: tuple[str, ...] = ()
    is_stored: bool = False
    """The XR is as the API server has it."""


@dataclass(frozen=True, slots=True)
class FleetLimits:
    """What planning may take."""

    lanes: int
    """How many orders at the same time."""
    order_s: float = 10.0
    """How long one side of one order may take."""


class Assembler:
    """One process with one pack. Not for several threads."""

    def __init__(
        self, title: str, setup: AssemblerSetup, limit_s: float, processes: Processes
    ) -> None:
        self.title = title
        self._setup, self._limit_s, self._processes = setup, limit_s, processes
        self._child: ChildProcess | None = None
        self._is_ready = False
        self.silent = 0
        """How often in a row it gave no answer."""

    def start(self) -> ChildProcess:
        """Start loading the pack; `ask` waits for it."""
        child = self._processes.start(ENTRY, ProcessLimits(data_bytes=MEMORY_BYTES))
        self._child, self._is_ready = child, False
        child.send(pickled(self._setup), START_S)
        return child

    def ask(self, task: PlanBefore | PlanAfter) -> TaskAnswer:
        """
        Give the answer to a task.

        Raises:
            SilentError: There was none in time, and the process was killed.
            OrderkitError: The pack cannot be loaded.
        """
        try:
            answer = self._exchange(self._child or self.start(), task)
        except ChildTimeoutError as error:
            self.stop()
            self.silent += 1
            raise SilentError(
                f"the stations of {self.title} gave no answer within {self._limit_s:g} s"
            ) from error
        except ChildEndedError as error:
            self.stop()
            self.silent += 1
            raise SilentError(f"the stations of {self.title} ended their process") from error
        self.silent = 0
        return answer

    def _exchange(self, child: ChildProcess, task: PlanBefore | PlanAfter) -> TaskAnswer:
        if not self._is_ready:
            loaded = _answer(child, START_S)
            if loaded.error:
                raise OrderkitError(f"{self.title}: {loaded.error}")
            self._is_ready = True
        child.send(pickled(task), self._limit_s)
        return _answer(child, self._limit_s)

    def kill(self) -> None:
        """End the process from another thread than the one that asks."""
        if self._child is not None:
            self._child.kill()

    def stop(self) -> None:
        """End the process, whatever it does. Safe to call twice."""
        if self._child is not None:
            self._child.stop()
        self._child = None


def _answer(child: ChildProcess, timeout_s: float) -> TaskAnswer:
    answer: TaskAnswer = pickle.loads(child.receive(timeout_s))  # noqa: S301 - from a process of ours
    return answer


class _Habits:
    """
    What stations ask for, order after order, with the XR's name taken out.

    Orders of one kit ask alike: what is looked up beforehand saves assembling twice. A guess that
    is wrong does no harm: nothing is shown to a station that it does not ask for.
    """

    def __init__(self) -> None:
        self._asked: dict[str, Selector] = {}

    def note(self, selector: Selector, name: str) -> None:
        """Remember what one order asked for."""
        if len(self._asked) < _HABITS_MAX:
            bare = _renamed(selector, name, OWN)
            self._asked.setdefault(selector_text(bare), bare)

    def of(self, name: str) -> list[Selector]:
        """Return what the order with this XR will probably ask for."""
        return [_renamed(selector, OWN, name) for selector in self._asked.values()]


def _renamed(selector: Selector, old: str, new: str) -> Selector:
    if not old:
        return selector
    home = selector.namespace.replace(old, new) if selector.namespace else selector.namespace
    labels = {key: text.replace(old, new) for key, text in selector.labels.items()}
    new_name = selector.name.replace(old, new)
    return replace(selector, name=new_name, namespace=home, labels=labels)


@dataclass(slots=True)
class OrderPlanner:
    """Two processes, one for each pack. Used by one thread."""

    base: Assembler
    candidate: Assembler
    lookup: Lookup | None
    habits: _Habits = field(default_factory=_Habits)

    def start(self) -> None:
        """Start loading both packs; a process that ends at once is noticed by the first order."""
        for side in (self.base, self.candidate):
            with suppress(ChildTimeoutError, ChildEndedError):
                side.start()

    def plan(self, work: OrderToPlan) -> OrderPlan:
        """Plan one order; what goes wrong is told in its plan's place."""
        try:
            return self._planned(work)
        except OrderkitError as error:
            return OrderPlan(work.order, work.team, None, str(error), work.source)

    def _planned(self, work: OrderToPlan) -> OrderPlan:
        for side in (self.base, self.candidate):
            if side.silent >= _SILENT_MAX:
                raise SilentError(f"not tried: {side.title} gave {side.silent} orders no answer")
        lookups = _Lookups(self.lookup, self.habits, str(metadata(work.xr).get("name") or ""))
        before = lookups.answered(
            self.base, lambda facts: PlanBefore(work.xr, work.observed, facts)
        )
        after = lookups.answered(
            self.candidate,
            lambda facts: PlanAfter(work.xr, before.payload, facts, is_stored=work.is_stored),
        )
        plan: Plan = pickle.loads(after.payload)  # noqa: S301 - from a process of ours
        unknowns, faults = (*work.unknowns, *plan.before.unknowns), plan.before.faults
        if after.judged:
            faults = self._faults(work, lookups.facts)
        plan = replace(plan, before=replace(plan.before, unknowns=unknowns, faults=faults))
        return OrderPlan(
            work.order, work.team, plan, "", work.source, before.stored, before.secret_fields
        )

    def _faults(self, work: OrderToPlan, facts: tuple[Manifest, ...]) -> tuple[Fault, ...]:
        """Return what is wrong with an order already."""
        answer = self.base.ask(PlanBefore(work.xr, work.observed, facts, is_judged=True))
        assembly: Assembly = pickle.loads(answer.payload)  # noqa: S301 - from a process of ours
        return assembly.faults

    def kill(self) -> None:
        """Make whoever waits for an answer get none."""
        self.base.kill()
        self.candidate.kill()

    def stop(self) -> None:
        """End both processes."""
        self.base.stop()
        self.candidate.stop()


class _Lookups:
    """What stations ask for on the way of one order; what they will ask is looked up first."""

    def __init__(self, lookup: Lookup | None, habits: _Habits, name: str) -> None:
        self._lookup, self._habits, self._name = lookup, habits, name
        self._facts: dict[ObjectKey, Manifest] = {}
        self._looked_up: set[str] = set()
        self._learn(habits.of(name))

    @property
    def facts(self) -> tuple[Manifest, ...]:
        """Everything that was found."""
        return tuple(self._facts.values())

    def answered(
        self, side: Assembler, task: Callable[[tuple[Manifest, ...]], PlanBefore | PlanAfter]
    ) -> TaskAnswer:
        """Give a task, look up what its stations ask for, and again until that is all."""
        for _ in range(LOOKS_MAX):
            answer = side.ask(task(self.facts))
            if answer.error:
                raise OrderkitError(f"{side.title}: {answer.error}")
            if not self._learn(answer.selectors):
                break
        return answer

    def _learn(self, selectors: Iterable[Selector]) -> bool:
        fact_count = len(self._facts)
        for selector in selectors:
            self._habits.note(selector, self._name)
            name = selector_text(selector)
            if self._lookup is not None and name not in self._looked_up:
                self._looked_up.add(name)
                objects = looked_up(self._lookup, selector)
                self._facts.update((ObjectKey.of(manifest), manifest) for manifest in objects)
        return len(self._facts) > fact_count


def plan_all(
    work: Sequence[OrderToPlan],
    packs: tuple[AssemblerSetup, AssemblerSetup],
    lookup: Lookup | None,
    limits: FleetLimits,
    processes: Processes,
) -> list[OrderPlan]:
    """
    Plan every order, in the order they are given. Nothing is left behind, whatever happens.

    Args:
        packs: The one that is published, and the other one.
        lookup: Where stations' requirements are looked up; None: nowhere.
    """
    number = max(1, min(limits.lanes, -(-len(work) // _ORDERS_PER_LANE)))
    with ExitStack() as undo:
        free: queue.SimpleQueue[OrderPlanner] = queue.SimpleQueue()
        lanes = [_lane(packs, lookup, limits, processes) for _ in range(number)]
        for lane in lanes:
            undo.callback(lane.stop)
            lane.start()
            free.put(lane)

        def plan(order: OrderToPlan) -> OrderPlan:
            lane = free.get()
            try:
                return lane.plan(order)
            finally:
                free.put(lane)

        pool = undo.enter_context(InheritingThreads(number, thread_name_prefix="lane"))
        try:
            return list(pool.map(plan, work))
        except BaseException:
            # an interrupt, too: no process stays behind
            pool.shutdown(wait=False, cancel_futures=True)
            for lane in lanes:
                lane.kill()
            raise


def _lane(
    packs: tuple[AssemblerSetup, AssemblerSetup],
    lookup: Lookup | None,
    limits: FleetLimits,
    processes: Processes,
) -> OrderPlanner:
    base, candidate = packs
    return OrderPlanner(
        Assembler("the pack as it is", base, limits.order_s, processes),
        Assembler("the other pack", candidate, limits.order_s, processes),
        lookup,
    )
