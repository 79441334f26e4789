"""
The dataset-watcher's metrics: the result of each pass, as numbers to alert on.

Called by ``commands``.
"""

from __future__ import annotations

from whisperops.metrics import Metrics
from whisperops.watching import WatchResult

_PREFIX = "whisperops_watcher_"
_GAUGES = {
    "listed_blobs": "CSV files in the last listing",
    "registered_datasets": "records of this source",
    "ready_datasets": "records of this source that an agent can use",
    "refused_blobs": "CSV files that cannot be registered; the log says why",
    "missing_blobs": "records whose blob was missing from the last listing",
    "suspicious": "1 while a loss waits for a person's confirmation and nothing is removed",
    "pass_seconds": "duration of the last pass",
    "last_success_timestamp_seconds": "when a pass last succeeded in all parts",
}
_COUNTERS = {
    "passes_total": "passes started",
    "writes_total": "writes to records",
    "removed_total": "records removed",
    "commits_total": "commits to the catalog repository",
}


def new_metrics() -> Metrics:
    """Return the metrics, all at 0."""
    metrics = Metrics()
    metrics.begin(_PREFIX, _GAUGES, _COUNTERS)
    metrics.describe(_PREFIX + "failures_total", "counter", "passes in which this part failed")
    for part in ("bucket", "registry", "catalog"):
        metrics.add(_PREFIX + "failures_total", 0, part=part)
    return metrics


def note(metrics: Metrics, result: WatchResult, *, took_s: float, now_s: float) -> None:
    """Record the result of a pass."""
    metrics.add(_PREFIX + "passes_total")
    metrics.add(_PREFIX + "writes_total", result.writes)
    metrics.add(_PREFIX + "removed_total", result.removed)
    metrics.add(_PREFIX + "commits_total", 1 if result.commit else 0)
    for part in result.failures:
        metrics.add(_PREFIX + "failures_total", part=part)
    if "registry" not in result.failures:
        metrics.set(_PREFIX + "registered_datasets", result.registered)
        metrics.set(_PREFIX + "ready_datasets", result.ready)
    if not {"bucket", "registry"} & result.failures.keys():
        metrics.set(_PREFIX + "listed_blobs", result.listed)
        metrics.set(_PREFIX + "refused_blobs", len(result.refusals))
        metrics.set(_PREFIX + "missing_blobs", result.missing)
        metrics.set(_PREFIX + "suspicious", int(result.suspicious))
    metrics.set(_PREFIX + "pass_seconds", took_s)
    if not result.failures and result.complete:
        metrics.set(_PREFIX + "last_success_timestamp_seconds", now_s)
