"""
The spend meter's metrics: what a pass came to, as numbers to alert on.

Called by ``commands``.
"""

from __future__ import annotations

from whisperops.metering import Round
from whisperops.metrics import Metrics

_P = "whisperops_meter_"
_GAUGES = {
    "budgets": "budgets that the last pass found",
    "measured_budgets": "of them, those whose spend is known",
    "pass_seconds": "how long the last pass took",
    "last_success_timestamp_seconds": "when every budget was last measured",
}
_COUNTERS = {
    "passes_total": "passes begun",
    "writes_total": "records written",
    "failures_total": "budgets that could not be measured in a pass, and passes without budgets",
}


def described() -> Metrics:
    """Return the metrics, all at 0."""
    metrics = Metrics()
    metrics.begin(_P, _GAUGES, _COUNTERS)
    return metrics


def note(metrics: Metrics, done: Round, *, took_s: float, now_s: float) -> None:
    """Enter a pass."""
    metrics.add(_P + "passes_total")
    metrics.add(_P + "writes_total", done.writes)
    metrics.add(_P + "failures_total", len(done.failures))
    if "cluster" not in done.failures:
        metrics.set(_P + "budgets", done.budgets)
        metrics.set(_P + "measured_budgets", done.measured)
    metrics.set(_P + "pass_seconds", took_s)
    if not done.failures:
        metrics.set(_P + "last_success_timestamp_seconds", now_s)
