"""The page Platform: its checks appear one by one, and a slow one keeps nobody waiting."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Mapping

import pytest
from consolebrowser import Browser
from tests.component.console.conftest import Site

from ground.errors import UnreachableError
from orderkit.flows.install import doctor_checks
from orderkit.flows.install.findings import DoctorFinding
from orderkit.flows.platform import Platform
from orderkit.ports.urgency import waiting
from orderkit.web.console.team_pages import PlatformChecks


@pytest.fixture
def gate(monkeypatch: pytest.MonkeyPatch) -> Iterator[threading.Event]:
    """Checks of which one waits for this event, and one cannot look."""
    opened = threading.Event()

    def slow(_: Platform) -> DoctorFinding:
        opened.wait(20)
        return DoctorFinding("orders", "ok", "400, none failing")

    def broken(_: Platform) -> DoctorFinding:
        raise UnreachableError("the forge does not answer", hint="start it")

    checks = {**doctor_checks.CHECKS, "orders": slow, "portal": broken}
    monkeypatch.setattr(doctor_checks, "CHECKS", checks)
    yield opened
    opened.set()


def until(look: PlatformChecks, platform: Platform, verdict: str) -> Mapping[str, str]:
    """Return what is said of the orders once it is this."""
    end = time.monotonic() + 20
    while True:
        (line,) = [line for line in look.look(platform) if line["check"] == "orders"]
        if line["verdict"] == verdict:
            return line
        assert time.monotonic() < end, line
        time.sleep(0.05)


def test_a_slow_check_keeps_neither_the_page_nor_the_others_waiting(
    site: Site, gate: threading.Event
) -> None:
    checks = PlatformChecks(limit_s=3)
    begin = time.monotonic()
    first = checks.look(site.running.platform)

    assert time.monotonic() - begin < 10, "the slow check takes twice as long"
    assert {line["check"] for line in first} >= {"forge", "orders", "portal", "gitea-release"} - {
        "gitea-release"
    }
    (orders,) = [line for line in first if line["check"] == "orders"]
    assert (orders["verdict"], orders["running"]) == ("running", True)
    late = until(checks, site.running.platform, "late")
    assert "no answer after" in late["detail"]
    assert "orderkit doctor" in late["advice"]
    (portal,) = [line for line in checks.look(site.running.platform) if line["check"] == "portal"]
    assert (portal["verdict"], portal["detail"]) == ("fail", "the forge does not answer")
    gate.set()
    assert until(checks, site.running.platform, "ok")["detail"] == "400, none failing"


def test_however_many_look_a_check_runs_once(
    site: Site, gate: threading.Event, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs: list[float] = []

    def counted(_: Platform) -> DoctorFinding:
        runs.append(time.monotonic())
        gate.wait(20)
        return DoctorFinding("orders", "ok", "fine")

    monkeypatch.setattr(doctor_checks, "CHECKS", {**doctor_checks.CHECKS, "orders": counted})
    checks = PlatformChecks(kept_s=0)
    lookers = [
        threading.Thread(target=checks.look, args=(site.running.platform,)) for _ in range(8)
    ]
    for looker in lookers:
        looker.start()
    for looker in lookers:
        looker.join(30)

    assert len(runs) == 1, "also if its answer is out of date: it is running"


def test_the_page_is_there_at_once_and_completes_itself(
    engineer: Browser, gate: threading.Event
) -> None:
    begin = time.monotonic()
    first = engineer.get("/platform")

    assert first.status == 200
    assert time.monotonic() - begin < 5
    if "still running" in first.page.text:
        assert "data-running" in first.text
        assert '<meta http-equiv="refresh" content="3">' in first.text, "without JavaScript, too"
    gate.set()
    end = time.monotonic() + 30
    while "data-running" in (there := engineer.get("/platform")).text:
        assert time.monotonic() < end
        time.sleep(0.2)
    assert "serves Argo CD's and Crossplane's kinds" in there.page.text


def test_pages_and_doctor_say_that_something_waits_for_the_forges_limits(
    engineer: Browser, site: Site
) -> None:
    said = "GitHub limits the speed of changes: one waits 4"

    with waiting("GitHub", 45):
        assert said in engineer.get("/").page.text
        found = doctor_checks.found("speed", site.running.platform)
        assert found.verdict == "warn"
        assert "s more for GitHub's limit of speed" in found.detail

    assert said not in engineer.get("/").page.text
    assert doctor_checks.found("speed", site.running.platform).verdict == "ok"
