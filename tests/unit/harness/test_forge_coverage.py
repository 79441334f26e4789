"""How behaviours of the forge are counted, and what has to say why it is not."""

from __future__ import annotations

import pytest
from tests.conformance.forge.coverage import EMBEDDED, REAL, Case, Coverage

BOTH, OURS = "W01 create", "V30 the version"


def _run(excuse: str = "", skip: str = "") -> Coverage:
    """Return a run: one case on both forges, one on ours alone, one skipped on the real one."""
    cases = {
        "a[embedded]": Case(BOTH, EMBEDDED, "observed", ""),
        "a[real]": Case(BOTH, REAL, "observed", ""),
        "b": Case(OURS, EMBEDDED, "observed", excuse),
        "c[embedded]": Case("X01 skipped", EMBEDDED, "observed", ""),
        "c[real]": Case("X01 skipped", REAL, "observed", ""),
        "d": Case(BOTH, f"{EMBEDDED} as 1.24", "read", ""),
    }
    found = Coverage(cases)
    for nodeid in cases:
        found.add(_report(nodeid, skip if nodeid == "c[real]" else ""))
    found.add(_report("elsewhere", ""))
    return found


def _report(nodeid: str, skip: str) -> pytest.TestReport:
    longrepr = ("f.py", 1, f"Skipped: {skip}") if skip else None
    outcome = "skipped" if skip else "passed"
    where = ("f.py", 1, "t")
    return pytest.TestReport(nodeid, where, {}, outcome, longrepr, "call")  # type: ignore[arg-type]


def test_what_has_no_reason_is_named() -> None:
    assert _run(skip="too slow").unexcused() == [OURS]
    assert _run(excuse="ours", skip="too slow").unexcused() == []


def test_without_a_real_forge_nothing_is_missing() -> None:
    found = Coverage({"b": Case(OURS, EMBEDDED, "observed", "")})
    found.add(_report("b", ""))

    assert found.unexcused() == []
    assert not [line for line in found.lines() if "not tried" in line]


def test_behaviours_are_counted_by_forge_and_by_how_they_are_known() -> None:
    lines = list(_run(excuse="ours", skip="too slow").lines())

    assert f"{EMBEDDED:32}        3     0       3" in lines
    assert f"{EMBEDDED + ' as 1.24':32}        0     1       1" in lines
    assert "on both the embedded forge and the real Gitea: 1 (aim: 150)" in lines
    assert "not tried on the real Gitea: X01 skipped: too slow" in lines


def test_an_id_that_stands_for_two_behaviours_is_named() -> None:
    cases = {
        "a": Case("S01 clone", EMBEDDED, "observed", ""),
        "b": Case("S01 a status", EMBEDDED, "observed", ""),
    }

    (line,) = [line for line in Coverage(cases).lines() if "several" in line]

    assert "S01" in line
