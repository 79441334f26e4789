"""
The dataset-watcher's metrics: what a pass came to, as numbers to alert on.

Called by ``commands``.
"""

from __future__ import annotations

from whisperops.metrics import Metrics
from whisperops.watching import Pass

_P = "whisperops_watcher_"
_GAUGES = {
    "listed_blobs": "CSV files that the last listing showed",
    "registered_datasets": "records of this source",
    "ready_datasets": "of them, those an agent can use",
    "refused_blobs": "CSV files that cannot be registered; the log says why",
    "missing_blobs": "records whose blob was not in the last listing",
    "suspicious": "1 while a loss is too large to be believed and nothing is removed",
    "pass_seconds": "how long the last pass took",
    "last_success_timestamp_seconds": "when everything was last in step",
}
_COUNTERS = {
    "passes_total": "passes begun",
    "writes_total": "writes to records",
    "removed_total": "records removed",
    "commits_total": "commits to the catalog repository",
}


def described() -> Metrics:
    """Return the metrics, all at 0."""
    metrics = Metrics()
    metrics.begin(_P, _GAUGES, _COUNTERS)
    metrics.describe(_P + "failures_total", "counter", "passes in which this part failed")
    for part in ("bucket", "registry", "catalog"):
        metrics.add(_P + "failures_total", 0, part=part)
    return metrics


def note(metrics: Metrics, done: Pass, *, took_s: float, now_s: float) -> None:
    """Enter a pass."""
    metrics.add(_P + "passes_total")
    metrics.add(_P + "writes_total", done.writes)
    metrics.add(_P + "removed_total", done.removed)
    metrics.add(_P + "commits_total", 1 if done.commit else 0)
    for part in done.failures:
        metrics.add(_P + "failures_total", part=part)
    if "registry" not in done.failures:
        metrics.set(_P + "registered_datasets", done.registered)
        metrics.set(_P + "ready_datasets", done.ready)
    if not {"bucket", "registry"} & done.failures.keys():
        metrics.set(_P + "listed_blobs", done.listed)
        metrics.set(_P + "refused_blobs", len(done.refused))
        metrics.set(_P + "missing_blobs", done.missing)
        metrics.set(_P + "suspicious", int(done.suspicious))
    metrics.set(_P + "pass_seconds", took_s)
    if not done.failures and done.whole:
        metrics.set(_P + "last_success_timestamp_seconds", now_s)
