"""
The checks of the page *Platform*: run beside each other, each shown when it has an answer.

A page never waits for a slow check. It shows which checks still run, and for how long; a check that
runs longer than its limit is called late until it answers. However many people look, a check runs
once at a time, and its answer is kept for a while.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from typing import Any

from orderkit.flows.install import doctor_checks
from orderkit.flows.install.doctor_finding import DoctorFinding
from orderkit.flows.install.server_releases import check_releases
from orderkit.flows.platform import Platform

LIMIT_S, KEPT_S = 20.0, 60.0
"""After how long a check is late; how long answers are shown before everything is checked again."""
_AT_ONCE = 6
_FIRST_S = 0.5
"""How long a page waits for checks that answer at once."""
_RELEASES = "releases"
_RANKS = {"fail": 0, "warn": 1, "late": 1, "running": 2}


@dataclass
class _Check:
    """One check: its last answer, and the run that is under way."""

    findings: Sequence[DoctorFinding] = ()
    run: Future[Sequence[DoctorFinding]] | None = None
    begun_s: float = field(default_factory=time.monotonic)

    @property
    def is_running(self) -> bool:
        return self.run is not None and not self.run.done()


class PlatformChecks:
    """The checks of one platform, shared by everybody who looks."""

    def __init__(self, *, limit_s: float = LIMIT_S, kept_s: float = KEPT_S) -> None:
        self._limit_s, self._kept_s = limit_s, kept_s
        self._lock = threading.Lock()
        self._checks: dict[str, _Check] = {}
        self._begun_s = float("-inf")
        self._threads = ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="platform check")

    def look(self, platform: Platform) -> list[dict[str, Any]]:
        """Begin what is due, and return what is known of each check, failed ones first."""
        with self._lock:
            if time.monotonic() - self._begun_s > self._kept_s:
                self._begin(platform)
            runs = [check.run for check in self._checks.values() if check.run is not None]
        wait(runs, timeout=_FIRST_S)
        with self._lock:
            lines = {name: self._lines(name, check) for name, check in self._checks.items()}
        failed = [s for s in doctor_checks.SYSTEMS if any(f["verdict"] == "fail" for f in lines[s])]
        shown = [
            line
            for name, found in lines.items()
            if doctor_checks.is_known_without(name, failed)
            for line in found
        ]
        return sorted(shown, key=lambda line: _RANKS.get(line["verdict"], 3))

    def _begin(self, platform: Platform) -> None:
        self._begun_s = time.monotonic()
        runs: dict[str, Callable[[], Sequence[DoctorFinding]]] = {
            name: lambda name=name: (doctor_checks.found(name, platform),)  # type: ignore[misc]
            for name in doctor_checks.CHECKS
        }
        runs[_RELEASES] = lambda: tuple(check_releases(platform, None, without=()))
        for name, run in runs.items():
            check = self._checks.setdefault(name, _Check())
            if not check.is_running:
                check.begun_s = time.monotonic()
                check.run = self._threads.submit(run)

    def _lines(self, name: str, check: _Check) -> list[dict[str, Any]]:
        run = check.run
        if run is not None and run.done():
            error = run.exception()
            check.findings = (
                (DoctorFinding(name, "fail", f"this is a bug in Orderkit: {error!r}"),)
                if error
                else run.result()
            )
        ran_s = time.monotonic() - check.begun_s
        if check.is_running and (not check.findings or ran_s > self._limit_s):
            is_late = ran_s > self._limit_s
            verdict = "late" if is_late else "running"
            detail = f"no answer after {ran_s:.0f} s" if is_late else "is running"
            advice = f"run 'orderkit doctor' to wait for {name}" if is_late else ""
            return [_line(DoctorFinding(name, "warn", detail, advice), verdict, is_running=True)]
        return [_line(f, f.verdict, is_running=check.is_running) for f in check.findings]


def _line(finding: DoctorFinding, verdict: str, *, is_running: bool) -> dict[str, Any]:
    return {
        "check": finding.check,
        "verdict": verdict,
        "detail": finding.detail,
        "advice": finding.advice,
        "running": is_running,
    }
