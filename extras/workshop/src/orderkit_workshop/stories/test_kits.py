"""
Run a pack's scenarios and compare the results with the expected files.

``tests/kits/<kit>/<case>/`` holds ``scenario.yaml`` and ``expected/``. With `update`, expected
files are rewritten, but never against the scenario's ``refused``: a missing or unexpected refusal
stays a failure. A broken scenario or kit does not stop the others.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from fnmatch import fnmatchcase
from functools import partial
from pathlib import PurePosixPath

from compositions.station import Station
from ground.errors import NotFoundError, OrderkitError, UsageError
from orderkit.core.kit.pack import Pack, read_pack
from orderkit_workshop.check.scenario import (
    Difference,
    Scenario,
    ScenarioOutcome,
    differences,
    golden,
    read_scenario,
)
from orderkit_workshop.ports.pack_folder import PackFolder
from orderkit_workshop.stories.try_scenario import ScenarioTrial, prepare
from yamlfiles import yaml11

ROOM = PurePosixPath("tests", "kits")
SCENARIO, EXPECTED, VALUES = "scenario.yaml", "expected", "values.yaml"
_VALUES_SCHEMA = {"type": "object", "additionalProperties": {"type": "string"}}


class ScenarioResult(StrEnum):
    """What became of a scenario."""

    PASSED = "passed"
    FAILED = "failed"
    UPDATED = "updated"
    BROKEN = "broken"
    """It could not be run: the scenario or the kit is broken."""


@dataclass(frozen=True, slots=True)
class TestSelection:
    """What to run: kits (all if empty), and of their cases those that match."""

    pack: PackFolder
    kits: Sequence[str] = ()
    pattern: str = ""
    """A part of ``<kit>/<case>``, or a pattern with ``*``; empty: all."""
    update: bool = False
    functions: Mapping[str, Callable[[], Station]] = field(default_factory=dict)
    """What connects to functions that run somewhere, by the name that pipelines call."""


@dataclass(frozen=True, slots=True)
class Tested:
    """One scenario that was run. `message` explains a failure without a difference."""

    kit: str
    case: str
    result: ScenarioResult
    seconds: float
    reason: str = ""
    message: str = ""
    differences: tuple[Difference, ...] = ()
    not_run: str = ""

    @property
    def name(self) -> str:
        return f"{self.kit}/{self.case}"

    @property
    def ok(self) -> bool:
        return self.result in {ScenarioResult.PASSED, ScenarioResult.UPDATED}


@dataclass(frozen=True, slots=True)
class TestReport:
    """All scenarios that were run, in order, and the kits that have none."""

    cases: tuple[Tested, ...]
    untested: tuple[str, ...]
    seconds: float

    def count(self, result: ScenarioResult) -> int:
        """Return how many scenarios came to this result."""
        return sum(case.result is result for case in self.cases)

    @property
    def ok(self) -> bool:
        """Whether all passed. Kits without any scenario at all are a failure too."""
        return all(case.ok for case in self.cases) and bool(self.cases or not self.untested)


def run_tests(request: TestSelection) -> TestReport:
    """
    Run scenarios; with `update` write what differs.

    Raises:
        InvalidInputError: The pack itself is broken. NotFoundError: A named kit is not in it.
        UsageError: No scenario matches the pattern.
        OSError: The folder cannot be read or written.
    """
    start_s = time.perf_counter()
    pack = read_pack(request.pack.files())
    names = [*request.kits] or _kits(request.pack, pack)
    for name in request.kits:
        if name not in pack.kit_names:
            pack.kit(name)  # says which kits there are
    cases_by_kit = {name: _cases(request.pack, name) for name in names}
    matching = {
        name: [case for case in cases if _matches(f"{name}/{case}", request.pattern)]
        for name, cases in cases_by_kit.items()
    }
    if request.pattern and not any(matching.values()):
        raise UsageError(
            f"no scenario matches '{request.pattern}'", hint="scenarios are named <kit>/<case>"
        )
    runner = _Runner(request, pack)
    cases = tuple(tested for name in names for tested in runner.kit(name, matching[name]))
    untested = tuple(name for name, cases in cases_by_kit.items() if not cases)
    return TestReport(cases, untested, time.perf_counter() - start_s)


def _kits(folder: PackFolder, pack: Pack) -> list[str]:
    """Return the pack's kits, then folders of scenarios whose kit is gone."""
    names = folder.folders(ROOM)
    strays = [n for n in names if n not in pack.kit_names and not n.startswith((".", "_"))]
    return [*pack.kit_names, *strays]


def _cases(folder: PackFolder, kit: str) -> list[str]:
    return [name for name in folder.folders(ROOM / kit) if not name.startswith(".")]


def _matches(name: str, pattern: str) -> bool:
    if any(mark in pattern for mark in "*?["):
        return fnmatchcase(name, pattern)
    return pattern in name


def _same(function: Station) -> Station:
    return function


class _Runner:
    """Runs the scenarios of one pack; stations are loaded once."""

    def __init__(self, request: TestSelection, pack: Pack) -> None:
        self._wanted, self._pack = request, pack
        self._stations: Mapping[str, Station] | None = None
        self._programs: Mapping[str, Station] = {}

    def kit(self, name: str, cases: Sequence[str]) -> Iterator[Tested]:
        """Yield each scenario of a kit, run."""
        if not cases:
            return
        try:
            trial = self._prepared(name)
        except OrderkitError as error:
            for case in cases:
                yield Tested(name, case, ScenarioResult.BROKEN, 0, message=_error_text(error))
            return
        for case in cases:
            yield self._case(trial, case)

    def _prepared(self, name: str) -> ScenarioTrial:
        if self._stations is None:
            self._stations = self._wanted.pack.stations()
            self._programs = self._wanted.pack.programs(self._pack.files)
        data = self._wanted.pack.file(ROOM / VALUES)
        values: dict[str, str] = {}
        if data is not None:
            values = yaml11.load(data, name=str(ROOM / VALUES), schema=_VALUES_SCHEMA)
        functions: dict[str, Callable[[], Station]] = {
            name: partial(_same, program) for name, program in self._programs.items()
        }
        functions |= self._wanted.functions
        return prepare(self._pack, name, self._stations, values, functions)

    def _case(self, trial: ScenarioTrial, case: str) -> Tested:
        kit, start_s = trial.kit.name, time.perf_counter()
        pack, folder = self._wanted.pack, ROOM / kit / case
        reason = ""
        try:
            scenario = _scenario(pack, folder / SCENARIO)
            reason = scenario.reason
            outcome = trial.run(scenario, case=case)
        except OrderkitError as error:
            spent = time.perf_counter() - start_s
            return Tested(kit, case, ScenarioResult.BROKEN, spent, reason, _error_text(error))
        differing = differences(pack.files_below(folder / EXPECTED), golden(outcome))
        message = _refusal_mismatch(scenario, outcome)
        result = ScenarioResult.FAILED if differing or message else ScenarioResult.PASSED
        # never against the scenario's "refused": such a mismatch stays a failure
        if differing and not message and self._wanted.update:
            for difference in differing:
                pack.write(folder / EXPECTED / difference.path, difference.after)
            result = ScenarioResult.UPDATED
        if differing and not message and EXPECTED not in pack.folders(folder):
            message = "there are no expected files yet: run with --update and review them"
        spent = time.perf_counter() - start_s
        shown_differences = () if message else differing
        return Tested(kit, case, result, spent, reason, message, shown_differences, outcome.not_run)


def _scenario(pack: PackFolder, path: PurePosixPath) -> Scenario:
    data = pack.file(path)
    if data is None:
        raise NotFoundError(f"{path}: is missing", hint="each folder here is a scenario")
    return read_scenario(data, name=str(path))


def _refusal_mismatch(scenario: Scenario, outcome: ScenarioOutcome) -> str:
    """Say what contradicts the scenario's ``refused``; empty if nothing does."""
    refusal = outcome.refusal
    if refusal is None:
        stage = scenario.refused
        return f"was not refused, but must be (refused: {stage})" if stage else ""
    refusal_text = f"refused by {refusal.stage}: {refusal.message}"
    hint = f" ({refusal.hint})" if refusal.hint else ""
    if scenario.refused is None:
        return f"{refusal_text}{hint}; if it must be, write 'refused: {refusal.stage}'"
    if scenario.refused is not refusal.stage:
        return f"{refusal_text}{hint}; it must be refused by {scenario.refused}"
    return ""


def _error_text(error: OrderkitError) -> str:
    return f"{error} ({error.hint})" if error.hint else str(error)
