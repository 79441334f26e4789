"""
Count behaviours: which were tried on which forge, and why some were not tried on a real one.

A behaviour is what a case id stands for: ``test_f01_…``, or a row of a table with `id` and
`reason`. It is *observed* (on Gitea 1.26.0) or *read* (from the source of Gitea 1.24 or of
Forgejo; those have columns ``1.24-read`` and ``forgejo-read``, or the mark ``read``).
A behaviour that cannot be tried on the real Gitea carries the mark ``embedded_only(reason)``.

Each report carries its case (`CASE`), so that those of all workers are counted together, in the
process that prints the end of the run: `Counting`, registered by ``tests/conftest.py``.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pytest

EMBEDDED, REAL = "embedded forge", "real Gitea"
AIM = 150
CASE = "behaviour of the forge"
"""The property of a test report that holds its `Case`, as a tuple."""
_NAMED = re.compile(r"test_([a-z]+\d+[a-z]?)_(\w+)")
_COLUMN = re.compile(r"([\w.]+)-(observed|read)")


@dataclass(frozen=True, slots=True)
class Case:
    """One test: a behaviour on a forge. `excuse` says why it is not for a real one."""

    behaviour: str
    forge: str
    tag: str
    excuse: str


def case_of(item: pytest.Function) -> Case | None:
    """Return what a test tries; None if it has no case id."""
    callspec = getattr(item, "callspec", None)
    params: Mapping[str, Any] = callspec.params if callspec else {}
    behaviour = _behaviour(item.originalname, params)
    if not behaviour:
        return None
    forge, tag = _forge(params)
    if item.get_closest_marker("read"):
        tag = "read"
    only = item.get_closest_marker("embedded_only")
    return Case(behaviour, forge, tag, str(only.args[0]) if only else "")


def _behaviour(test: str, params: Mapping[str, Any]) -> str:
    for value in params.values():
        if isinstance(getattr(value, "id", None), str) and hasattr(value, "reason"):
            return f"{value.id} {value.reason}"
    named = _NAMED.fullmatch(test)
    return f"{named[1].upper()} {named[2].replace('_', ' ')}" if named else ""


def _forge(params: Mapping[str, Any]) -> tuple[str, str]:
    if params.get("target") == "real":
        return REAL, "observed"
    for value in params.values():
        column = _COLUMN.fullmatch(value) if isinstance(value, str) else None
        if column:
            version, tag = column.groups()
            return EMBEDDED if tag == "observed" else f"{EMBEDDED} as {version}", tag
    return EMBEDDED, "observed"


class Coverage:
    """The cases of a run and what became of them."""

    def __init__(self, cases: Mapping[str, Case]) -> None:
        self._cases = cases
        self._passed: Counter[Case] = Counter()
        self._skipped: dict[Case, str] = {}

    def add(self, report: pytest.TestReport) -> None:
        """Take one report of the run; of other folders, too."""
        case = self._cases.get(report.nodeid)
        if case is None:
            return
        if report.skipped and isinstance(report.longrepr, tuple):
            self._skipped[case] = report.longrepr[2].removeprefix("Skipped: ")
        elif report.passed and report.when == "call":
            self._passed[case] += 1

    def lines(self) -> Iterator[str]:
        """Yield the text for the end of the run."""
        yield f"{'distinct behaviours that passed':32} observed  read   tests"
        for forge in sorted({case.forge for case in self._passed}):
            here = {case: n for case, n in self._passed.items() if case.forge == forge}
            tags = Counter(case.tag for case in here)
            yield f"{forge:32} {tags['observed']:8} {tags['read']:5} {sum(here.values()):7}"
        if self._tried(REAL):
            both = self._tried(REAL) & self._tried(EMBEDDED)
            yield f"on both the embedded forge and the real Gitea: {len(both)} (aim: {AIM})"
            yield from self._missing()
        for identifier, names in self._used_twice():
            yield f"id {identifier} is used for several behaviours: {'; '.join(names)}"

    def unexcused(self) -> list[str]:
        """Return what was tried on the embedded forge only, and does not say why."""
        if not self._tried(REAL):
            return []
        return sorted(name for name, why in self._not_real().items() if not why)

    def _tried(self, forge: str) -> set[str]:
        return {case.behaviour for case in self._passed if case.forge == forge}

    def _not_real(self) -> dict[str, str]:
        """Return the reasons of what passed on the embedded forge and is not a real case."""
        skipped = {case.behaviour: why for case, why in self._skipped.items() if case.forge == REAL}
        known = {case.behaviour for case in self._cases.values() if case.forge == REAL}
        return {
            case.behaviour: case.excuse or skipped.get(case.behaviour, "")
            for case in self._passed
            if case.forge == EMBEDDED
            and case.tag == "observed"
            and (case.behaviour not in known or case.behaviour in skipped)
        }

    def _missing(self) -> Iterator[str]:
        for name, why in sorted(self._not_real().items()):
            yield f"not tried on the real Gitea: {name}: {why or 'NO REASON GIVEN'}"

    def _used_twice(self) -> Iterator[tuple[str, list[str]]]:
        names: defaultdict[str, set[str]] = defaultdict(set)
        for case in self._cases.values():
            names[case.behaviour.partition(" ")[0]].add(case.behaviour)
        for identifier, found in sorted(names.items()):
            if len(found) > 1:
                yield identifier, sorted(found)


class Counting:
    """Counts the behaviours of a run; one that is kept from the real forge must say why."""

    def __init__(self) -> None:
        self._cases: dict[str, Case] = {}
        self._coverage = Coverage(self._cases)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        case = dict(report.user_properties).get(CASE)
        if isinstance(case, tuple | list):
            self._cases[report.nodeid] = Case(*case)
            self._coverage.add(report)

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        if self._coverage.unexcused() and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        if self._cases:
            terminalreporter.section("behaviours of the forge", sep="-")
            for line in self._coverage.lines():
                terminalreporter.write_line(line)
