"""Every alert of the installed service, judged by promtool: it fires with its fault only."""

from __future__ import annotations

import json
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml
from lab import realprometheus

from orderkit.core.platform.service_monitoring import ALERTS, PANELS, alert_groups

POD = 'pod="a"'
BUCKETS = ("1", "10", "30", "+Inf")


@dataclass(frozen=True)
class Case:
    """Series of a platform with the fault and of one without, each as promtool writes them."""

    fault: dict[str, str]
    health: dict[str, str]
    after: str = "1h"
    labels: dict[str, str] | None = None


def constant(name: str, value: float, labels: str = POD) -> dict[str, str]:
    return {f"{name}{{{labels}}}": f"{value}x120"}


def growing(name: str, step: float, labels: str = POD) -> dict[str, str]:
    return {f"{name}{{{labels}}}": f"0+{step}x120"}


def durations(steps: tuple[float, ...], operation: str = "listOrders") -> dict[str, str]:
    return {
        f'orderkit_request_seconds_bucket{{operation="{operation}",le="{bound}"}}': f"0+{step}x120"
        for bound, step in zip(BUCKETS, steps, strict=True)
    }


def requests(good: float, bad: float) -> dict[str, str]:
    return growing("orderkit_requests_total", good, 'status="200"') | growing(
        "orderkit_requests_total", bad, 'status="503"'
    )


def releases(*names: str) -> dict[str, str]:
    return {f'orderkit_build_info{{version="{name}"}}': "1x120" for name in names}


A = {"pod": "a"}
CHANNEL = 'channel="chat"'
CASES = {
    "OrderkitServiceAbsent": Case(releases(), releases("0.2.0")),
    "OrderkitModelIncomplete": Case(
        constant("orderkit_model_complete", 0), constant("orderkit_model_complete", 1), labels=A
    ),
    "OrderkitModelStale": Case(
        constant("orderkit_model_age_seconds", 400),
        constant("orderkit_model_age_seconds", 60),
        labels=A,
    ),
    "OrderkitWatchesBreak": Case(
        growing("orderkit_model_watch_restarts_total", 6),
        growing("orderkit_model_watch_restarts_total", 1),
        labels=A,
    ),
    "OrderkitKindsLeftOut": Case(
        constant("orderkit_model_kinds_left_out", 2),
        constant("orderkit_model_kinds_left_out", 0),
        labels=A,
    ),
    "OrderkitOrderFails": Case(
        constant("orderkit_oldest_failing_seconds", 4000),
        constant("orderkit_oldest_failing_seconds", 60),
    ),
    "OrderkitForgeFails": Case(
        growing("orderkit_forge_requests_total", 60, 'outcome="2xx"')
        | growing("orderkit_forge_requests_total", 10, 'outcome="no answer"'),
        growing("orderkit_forge_requests_total", 60, 'outcome="2xx"')
        | growing("orderkit_forge_requests_total", 1, 'outcome="5xx"'),
    ),
    "OrderkitErrors": Case(requests(60, 6), requests(60, 1)),
    "OrderkitSlow": Case(
        durations((0, 0, 60, 60)) | durations((60, 60, 60, 60), "getOrder"),
        durations((60, 60, 60, 60)) | durations((0, 0, 0, 60), "streamOrders"),
    ),
    "OrderkitPlansFail": Case(
        growing("orderkit_pull_plans_total", 1, 'state="error"'),
        growing("orderkit_pull_plans_total", 1, 'state="success"'),
    ),
    "OrderkitCallersRefused": Case(
        growing("orderkit_refused_total", 120, 'reason="unproved"'),
        growing("orderkit_refused_total", 6, 'reason="unproved"'),
        labels={"reason": "unproved"},
    ),
    "OrderkitNotificationsLate": Case(
        constant("orderkit_notifications_oldest_seconds", 1000, CHANNEL),
        constant("orderkit_notifications_oldest_seconds", 10, CHANNEL),
        labels={"channel": "chat"},
    ),
    "OrderkitNotificationsLost": Case(
        growing("orderkit_notifications_given_up_total", 1, CHANNEL),
        constant("orderkit_notifications_given_up_total", 3, CHANNEL),
        labels={"channel": "chat"},
    ),
    "OrderkitCampaignStopped": Case(
        {'orderkit_campaigns{state="stopped",pod="a"}': "2x40 3x80"},
        constant("orderkit_campaigns", 2, 'state="stopped",pod="a"'),
    ),
    "OrderkitMixedReleases": Case(releases("0.2.0", "0.3.0"), releases("0.2.0")),
}


@pytest.fixture(scope="module")
def promtool() -> str:
    return str(realprometheus.program("promtool"))


@pytest.fixture
def rules(tmp_path: Path) -> Path:
    path = tmp_path / "rules.yaml"
    path.write_text(yaml.safe_dump(alert_groups()))
    return path


def judged(promtool: str, rules: Path, name: str, series: dict[str, str], alerts: Any) -> None:
    """Have promtool evaluate one alert over these series."""
    test = {
        "rule_files": [rules.name],
        "evaluation_interval": "1m",
        "tests": [
            {
                "interval": "1m",
                "input_series": [{"series": k, "values": v} for k, v in series.items()],
                "alert_rule_test": [{"alertname": name, "eval_time": "1h", "exp_alerts": alerts}],
            }
        ],
    }
    file = rules.parent / "test.yaml"
    file.write_text(yaml.safe_dump(test))
    done = subprocess.run(
        [promtool, "test", "rules", str(file)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_every_alert_has_a_case() -> None:
    assert CASES.keys() == {alert.name for alert in ALERTS}


def test_promtool_takes_the_rules(promtool: str, rules: Path) -> None:
    done = subprocess.run(
        [promtool, "check", "rules", str(rules)], capture_output=True, text=True, check=False
    )

    assert done.returncode == 0, done.stderr
    assert f"{len(ALERTS)} rules found" in done.stdout


@pytest.mark.parametrize("name", CASES)
def test_an_alert_fires_with_the_fault_and_not_without(
    promtool: str, rules: Path, name: str
) -> None:
    case = CASES[name]
    groups = yaml.safe_load(rules.read_text())
    for rule in groups["groups"][0]["rules"]:
        rule.pop("annotations")  # their values are judged for readers, in the unit test
    rules.write_text(yaml.safe_dump(groups))
    severity = next(alert.severity for alert in ALERTS if alert.name == name)
    fired = [{"exp_labels": {"severity": severity, **(case.labels or {})}}]

    judged(promtool, rules, name, case.fault, fired)
    judged(promtool, rules, name, case.health, [])


def test_the_texts_of_alerts_have_their_values(promtool: str, rules: Path) -> None:
    expected = {
        "exp_labels": {"severity": "warning", **A},
        "exp_annotations": {
            "summary": "Lists of a are 6m 40s old",
            "description": next(a.description for a in ALERTS if a.name == "OrderkitModelStale"),
        },
    }

    judged(promtool, rules, "OrderkitModelStale", CASES["OrderkitModelStale"].fault, [expected])


def test_every_panel_is_an_expression(promtool: str, tmp_path: Path) -> None:
    panels = [
        {"record": f"panel:{number}", "expr": panel.expression}
        for number, panel in enumerate(PANELS)
    ]
    path = tmp_path / "panels.yaml"
    path.write_text(json.dumps({"groups": [{"name": "panels", "rules": panels}]}))

    done = subprocess.run(
        [promtool, "check", "rules", str(path)], capture_output=True, text=True, check=False
    )

    assert done.returncode == 0, done.stderr
