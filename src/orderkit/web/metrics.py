"""
Metrics of the service in Prometheus' text format (version 0.0.4).

Requests by operation and status, their durations, requests in progress, and refused requests by
reason; orders by phase; campaigns; what the process counted (``core.telemetry``). Shown at
``/metrics``; thread-safe.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import get_args

from orderkit import __version__
from orderkit.core.campaign.record import STATES, CampaignFigures
from orderkit.core.order.order_state import Phase
from orderkit.core.order.order_view import OrderRow
from orderkit.core.telemetry import COUNTED, Counted
from orderkit.flows.live.live_row import BOUNDS_S, ModelState
from orderkit.flows.notify.channel_worker import ChannelState

MEDIA = "text/plain; version=0.0.4; charset=utf-8"
_NOTIFICATION_METRICS = {
    "queued": "orderkit_notifications_queued",
    "age_s": "orderkit_notifications_oldest_seconds",
}
_BOUNDS_S = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)


class Metrics:
    """The metrics since the process started."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._requests: Counter[tuple[str, int]] = Counter()
        self._refused: Counter[str] = Counter()
        self._plans: Counter[str] = Counter()
        self._pushes: Counter[str] = Counter()
        self._within: Counter[tuple[str, float]] = Counter()
        self._count: Counter[str] = Counter()
        self._sum_s: dict[str, float] = {}
        self._under_way = 0

    def begin(self) -> None:
        """Count a request that begins."""
        with self._lock:
            self._under_way += 1

    def end(self, operation: str, status: int, duration_s: float) -> None:
        """Count a request that was answered."""
        with self._lock:
            self._under_way -= 1
            self._requests[operation, status] += 1
            self._count[operation] += 1
            self._sum_s[operation] = self._sum_s.get(operation, 0.0) + duration_s
            for bound in _BOUNDS_S:
                if duration_s <= bound:
                    self._within[operation, bound] += 1

    def refuse(self, reason: str) -> None:
        """Count a refused caller."""
        with self._lock:
            self._refused[reason] += 1

    def plan(self, state: str) -> None:
        """Count a pull request that was planned for a webhook, by outcome."""
        with self._lock:
            self._plans[state] += 1

    def push(self, state: str) -> None:
        """Count a push to main that was checked for a webhook, by outcome."""
        with self._lock:
            self._pushes[state] += 1

    def text(self) -> str:
        """Return everything, in order."""
        with self._lock:
            return "\n".join([*self._lines(), ""])

    def _lines(self) -> Iterator[str]:
        yield from _head("orderkit_build_info", "gauge", "The version that runs.")
        yield f'orderkit_build_info{{version="{__version__}"}} 1'
        yield from _head("orderkit_requests_in_progress", "gauge", "Requests under way.")
        yield f"orderkit_requests_in_progress {self._under_way}"
        yield from _head("orderkit_requests_total", "counter", "Requests that were answered.")
        for (operation, status), count in sorted(self._requests.items()):
            labels = f'operation="{operation}",status="{status}"'
            yield f"orderkit_requests_total{{{labels}}} {count}"
        yield from _head("orderkit_refused_total", "counter", "Callers that were turned away.")
        for reason, count in sorted(self._refused.items()):
            yield f'orderkit_refused_total{{reason="{reason}"}} {count}'
        yield from _head("orderkit_pull_plans_total", "counter", "Plans made for webhooks.")
        for state, count in sorted(self._plans.items()):
            yield f'orderkit_pull_plans_total{{state="{state}"}} {count}'
        yield from _head("orderkit_push_checks_total", "counter", "Pushes checked for webhooks.")
        for state, count in sorted(self._pushes.items()):
            yield f'orderkit_push_checks_total{{state="{state}"}} {count}'
        yield from self._durations()

    def _durations(self) -> Iterator[str]:
        name = "orderkit_request_seconds"
        yield from _head(name, "histogram", "How long answers took.")
        for operation, count in sorted(self._count.items()):
            label = f'operation="{operation}"'
            for bound in _BOUNDS_S:
                count_within = self._within[operation, bound]
                yield f'{name}_bucket{{{label},le="{bound:g}"}} {count_within}'
            yield f'{name}_bucket{{{label},le="+Inf"}} {count}'
            yield f"{name}_sum{{{label}}} {self._sum_s[operation]:.6f}"
            yield f"{name}_count{{{label}}} {count}"


def model_text(state: ModelState, streams: int) -> str:
    """Return the figures of the live model, and how many streams follow it."""
    return "\n".join([*_model_lines(state, streams), ""])


def counts_text(counts: Mapping[tuple[Counted, str], int]) -> str:
    """Return what this process counted."""
    lines: list[str] = []
    for name, (label, description) in COUNTED.items():
        lines += _head(f"orderkit_{name}_total", "counter", description)
        found = sorted((value, n) for (counted, value), n in counts.items() if counted == name)
        lines += [f'orderkit_{name}_total{{{label}="{value}"}} {n}' for value, n in found]
    return "\n".join([*lines, ""])


def orders_text(rows: Iterable[OrderRow], now: datetime) -> str:
    """Return how many orders are in each phase, and for how long the oldest one fails."""
    phases: Counter[str] = Counter(dict.fromkeys(get_args(Phase), 0))
    longest_s = 0.0
    for row in rows:
        phases[row.phase] += 1
        if row.phase == "Failing" and row.since:
            longest_s = max(longest_s, (now - datetime.fromisoformat(row.since)).total_seconds())
    lines = [
        *_head("orderkit_orders", "gauge", "Orders by phase."),
        *(f'orderkit_orders{{phase="{phase}"}} {n}' for phase, n in sorted(phases.items())),
        *_head("orderkit_oldest_failing_seconds", "gauge", "For how long the oldest order fails."),
        f"orderkit_oldest_failing_seconds {longest_s:.0f}",
    ]
    return "\n".join([*lines, ""])


def _model_lines(state: ModelState, streams: int) -> Iterator[str]:
    for name, kind, value, description in (
        ("model_complete", "gauge", int(state.is_complete), "1 once everything was read."),
        ("model_age_seconds", "gauge", round(state.age_s, 3), "How old rows may be."),
        ("model_orders", "gauge", state.orders, "Orders in the live model."),
        ("model_watch_restarts_total", "counter", state.restarts, "Watches that broke."),
        ("model_kinds_left_out", "gauge", len(state.left_out), "Kinds that may not be read."),
        ("model_rows_due", "gauge", state.rows_due, "Rows that wait to be made again."),
        ("streams_open", "gauge", streams, "Open streams of GET /v1/stream."),
    ):
        yield from _head(f"orderkit_{name}", kind, description)
        yield f"orderkit_{name} {value}"
    yield from _campaign_lines(state.campaigns)
    name, took = "orderkit_order_ready_seconds", state.to_ready
    yield from _head(name, "histogram", "From ordering to the first Ready.")
    for bound in BOUNDS_S:
        yield f'{name}_bucket{{le="{bound:g}"}} {took.within.get(bound, 0)}'
    yield f'{name}_bucket{{le="+Inf"}} {took.count}'
    yield f"{name}_sum {took.sum_s:.0f}"
    yield f"{name}_count {took.count}"


def _campaign_lines(figures: CampaignFigures) -> Iterator[str]:
    yield from _head("orderkit_campaigns", "gauge", "Campaigns of the ledger, by state.")
    for state in STATES:
        yield f'orderkit_campaigns{{state="{state}"}} {figures.states[state]}'
    for name, label, counts, description in (
        ("waves", "progress", figures.waves, "Waves of campaigns: over or open."),
        ("orders", "outcome", figures.orders, "Orders of campaigns, by what became of them."),
    ):
        yield from _head(f"orderkit_campaign_{name}", "gauge", description)
        for (state, value), count in sorted(counts.items()):
            yield f'orderkit_campaign_{name}{{state="{state}",{label}="{value}"}} {count}'


def notifications_text(channels: Sequence[ChannelState]) -> str:
    """Return the figures of notifications: nothing in a replica that does not send."""
    lines = [
        *_head("orderkit_notifications_sent_total", "counter", "Events that were delivered."),
        *(
            f'orderkit_notifications_sent_total{{channel="{c.channel}",event="{kind}"}} {count}'
            for c in channels
            for kind, count in sorted(c.sent.items())
        ),
    ]
    for name, kind, description in (
        ("failed", "counter", "Attempts to deliver that failed."),
        ("given_up", "counter", "Events that were not delivered for a day."),
        ("queued", "gauge", "Events that are due."),
        ("age_s", "gauge", "For how long the oldest event is due."),
    ):
        metric = _NOTIFICATION_METRICS.get(name, f"orderkit_notifications_{name}_total")
        lines += _head(metric, kind, description)
        lines += [f'{metric}{{channel="{c.channel}"}} {getattr(c, name):g}' for c in channels]
    return "\n".join([*lines, ""]) if channels else ""


def _head(name: str, kind: str, description: str) -> Iterator[str]:
    yield f"# HELP {name} {description}"
    yield f"# TYPE {name} {kind}"
