"""Alerts and dashboard use metrics that the service has, with the labels that it gives them."""

from __future__ import annotations

import re
from collections import Counter
from datetime import UTC, datetime

import pytest

from orderkit.core.campaign.record import CampaignFigures
from orderkit.core.platform.service_monitoring import ALERTS, PANELS, dashboard
from orderkit.core.telemetry import COUNTED
from orderkit.flows.live.live_row import ModelState
from orderkit.flows.notify.channel_worker import ChannelState
from orderkit.web.metrics import Metrics, counts_text, model_text, notifications_text, orders_text

EXPRESSIONS = [(each.name, each.expression) for each in ALERTS] + [
    (each.title, each.expression) for each in PANELS
]
OF_PROMETHEUS = {"pod"}
"""Labels that a ServiceMonitor adds."""


def served() -> dict[str, set[str]]:
    """Return the labels of each metric that /metrics can have."""
    metrics = Metrics()
    metrics.begin()
    metrics.end("listOrders", 200, 0.1)
    metrics.refuse("unproved")
    metrics.plan("success")
    metrics.push("success")
    state = ModelState(
        is_complete=True,
        age_s=0.0,
        orders=1,
        restarts=0,
        waits_for="",
        left_out={},
        ledger_commit="c",
        campaigns=CampaignFigures(
            waves=Counter({("running", "open"): 1}), orders=Counter({("running", "ready"): 1})
        ),
    )
    channel = ChannelState("chat", {"ready": 1}, 0, 0, 0, 0.0)
    text = metrics.text() + model_text(state, 0) + notifications_text([channel])
    text += orders_text([], datetime.now(UTC)) + counts_text({(name, "x"): 1 for name in COUNTED})
    found: dict[str, set[str]] = {}
    for name, labels in re.findall(r"^(\w+)(?:\{(.*)\})? ", text, re.MULTILINE):
        found.setdefault(name, set()).update(re.findall(r"(\w+)=", labels))
    return found


@pytest.mark.parametrize(("name", "expression"), EXPRESSIONS, ids=[n for n, _ in EXPRESSIONS])
def test_an_expression_names_metrics_that_exist(name: str, expression: str) -> None:
    metrics = served()
    used = set(re.findall(r"orderkit_\w+", expression))

    assert used, name
    assert used <= metrics.keys()
    labels = set().union(*(metrics[one] for one in used)) | OF_PROMETHEUS
    matched = re.findall(r"[{,](\w+)(?:=~|!=|=)", expression)
    grouped = [
        one for group in re.findall(r"by \(([^)]*)\)", expression) for one in group.split(",")
    ]
    assert {one.strip() for one in (*matched, *grouped)} <= labels


def test_the_dashboard_has_every_panel_once() -> None:
    panels = dashboard()["panels"]

    assert [one["title"] for one in panels] == [one.title for one in PANELS]
    assert len({(one["gridPos"]["x"], one["gridPos"]["y"]) for one in panels}) == len(panels)


def test_every_alert_says_what_a_person_does() -> None:
    assert len({alert.name for alert in ALERTS}) == len(ALERTS)
    assert all(alert.summary and alert.description.endswith(".") for alert in ALERTS)
