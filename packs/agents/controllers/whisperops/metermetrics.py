"""
The spend meter's metrics: the result of each pass, as numbers to alert on.

Called by ``commands``.
"""

from __future__ import annotations

from whisperops.metering import MeterResult
from whisperops.metrics import Metrics

_PREFIX = "whisperops_meter_"
_GAUGES = {
    "budgets": "budgets of the last pass",
    "measured_budgets": "budgets of the last pass whose spend is known",
    "pass_seconds": "duration of the last pass",
    "last_success_timestamp_seconds": "when a pass last measured every budget",
}
_COUNTERS = {
    "passes_total": "passes started",
    "writes_total": "records written",
    "failures_total": "budgets that could not be measured in a pass, and passes without budgets",
}


def new_metrics() -> Metrics:
    """Return the metrics, all at 0."""
    metrics = Metrics()
    metrics.begin(_PREFIX, _GAUGES, _COUNTERS)
    return metrics


def note(metrics: Metrics, result: MeterResult, *, took_s: float, now_s: float) -> None:
    """Record the result of a pass."""
    metrics.add(_PREFIX + "passes_total")
    metrics.add(_PREFIX + "writes_total", result.writes)
    metrics.add(_PREFIX + "failures_total", len(result.failures))
    if "cluster" not in result.failures:
        metrics.set(_PREFIX + "budgets", result.budgets)
        metrics.set(_PREFIX + "measured_budgets", result.measured)
    metrics.set(_PREFIX + "pass_seconds", took_s)
    if not result.failures:
        metrics.set(_PREFIX + "last_success_timestamp_seconds", now_s)
