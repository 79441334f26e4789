"""
How the installed service is watched: scraping, alerts and a dashboard, for Prometheus and Grafana.

The alerts use metrics of ``web.metrics``: ``tests/unit/platform/test_service_monitoring`` compares
the names, and promtool fires each alert (``tests/e2e/test_service_alerts``). Pure.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from ground.objects.kube_objects import Manifest

_MONITORING = "monitoring.coreos.com/v1"


@dataclass(frozen=True, slots=True)
class Alert:
    """A rule of Prometheus, and what a person does about it."""

    name: str
    expression: str
    for_: str
    severity: Literal["critical", "warning"]
    summary: str
    description: str


@dataclass(frozen=True, slots=True)
class Panel:
    """A graph of the dashboard."""

    title: str
    expression: str
    legend: str = ""
    unit: str = "short"


ALERTS = (
    Alert(
        "OrderkitServiceAbsent",
        "absent(orderkit_build_info)",
        "5m",
        "critical",
        "No replica of Orderkit's service can be scraped",
        "Look at the Pods in namespace orderkit-service. If they run, check the token in the Secret"
        " of the ServiceMonitor: it needs the right observe.",
    ),
    Alert(
        "OrderkitModelIncomplete",
        "orderkit_model_complete == 0",
        "10m",
        "critical",
        "{{ $labels.pod }} has not read all orders",
        "The replica is not ready. /readyz names the part that does not answer: forge, cluster or"
        " signers.",
    ),
    Alert(
        "OrderkitModelStale",
        "orderkit_model_age_seconds > 300",
        "5m",
        "warning",
        "Lists of {{ $labels.pod }} are {{ $value | humanizeDuration }} old",
        "A watch of the cluster is broken, or the ledger cannot be read. The log names the kind.",
    ),
    Alert(
        "OrderkitWatchesBreak",
        "increase(orderkit_model_watch_restarts_total[15m]) > 60",
        "5m",
        "warning",
        "Watches of {{ $labels.pod }} break again and again",
        "The API server or a proxy ends the service's connections. Rows may be out of date.",
    ),
    Alert(
        "OrderkitKindsLeftOut",
        "orderkit_model_kinds_left_out > 0",
        "15m",
        "warning",
        "{{ $labels.pod }} may not read {{ $value }} kinds of parts of orders",
        "Repeat 'orderkit platform upgrade': it writes the rights for the pack's kits.",
    ),
    Alert(
        "OrderkitOrderFails",
        "max(orderkit_oldest_failing_seconds) > 3600",
        "10m",
        "warning",
        "An order has been failing for {{ $value | humanizeDuration }}",
        "'orderkit list --failing' names it, 'orderkit status ORDER' says why.",
    ),
    Alert(
        "OrderkitForgeFails",
        'sum(rate(orderkit_forge_requests_total{outcome=~"5xx|no answer"}[10m]))'
        " / sum(rate(orderkit_forge_requests_total[10m])) > 0.1",
        "10m",
        "critical",
        "The forge does not answer {{ $value | humanizePercentage }} of Orderkit's requests",
        "Look at the forge. Orderkit repeats reads, and finishes writes when it answers again.",
    ),
    Alert(
        "OrderkitErrors",
        'sum(rate(orderkit_requests_total{status=~"5.."}[10m]))'
        " / sum(rate(orderkit_requests_total[10m])) > 0.05",
        "10m",
        "critical",
        "{{ $value | humanizePercentage }} of requests to Orderkit fail",
        "502 and 503: forge, cluster or portal do not answer. 500 is a bug: the log has its trace.",
    ),
    Alert(
        "OrderkitSlow",
        "histogram_quantile(0.95, sum by (le)"
        ' (rate(orderkit_request_seconds_bucket{operation!="streamOrders"}[10m]))) > 10',
        "15m",
        "warning",
        "One request in twenty to Orderkit takes longer than {{ $value | humanizeDuration }}",
        "Compare the durations by operation on the dashboard. Plans need processor time, changes"
        " wait for the forge.",
    ),
    Alert(
        "OrderkitPlansFail",
        'sum(increase(orderkit_pull_plans_total{state=~"error|stuck"}[30m])) > 3',
        "0m",
        "warning",
        "{{ $value | humanize }} pull requests could not be planned",
        "The pull request shows the error. 'orderkit platform webhook --missed' plans again.",
    ),
    Alert(
        "OrderkitCallersRefused",
        "sum by (reason) (rate(orderkit_refused_total[10m])) > 1",
        "10m",
        "warning",
        "Orderkit refuses {{ $value | humanize }} callers a second: {{ $labels.reason }}",
        "The audit log has their addresses. A secret may have been rotated on one side only.",
    ),
    Alert(
        "OrderkitNotificationsLate",
        "orderkit_notifications_oldest_seconds > 900",
        "5m",
        "warning",
        "Channel {{ $labels.channel }} is {{ $value | humanizeDuration }} behind",
        "'orderkit notify test' tries the channel and shows its answer.",
    ),
    Alert(
        "OrderkitNotificationsLost",
        "increase(orderkit_notifications_given_up_total[1h]) > 0",
        "0m",
        "warning",
        "Channel {{ $labels.channel }} gave events up",
        "They could not be delivered for a day. 'orderkit doctor' names them.",
    ),
    Alert(
        "OrderkitCampaignStopped",
        'max(delta(orderkit_campaigns{state="stopped"}[1h])) > 0',
        "0m",
        "warning",
        "A campaign has stopped in the last hour",
        "'orderkit campaign status' names it, 'orderkit campaign retry' goes on.",
    ),
    Alert(
        "OrderkitMixedReleases",
        "count(count by (version) (orderkit_build_info)) > 1",
        "30m",
        "warning",
        "Replicas of Orderkit run different releases",
        "A rolling upgrade does not end. Look at the Deployment in namespace orderkit-service.",
    ),
)
_AT_WORK = '{state=~"running|paused|takingBack|reverting"}'
PANELS = (
    Panel("Orders", "max by (phase) (orderkit_orders)", "{{phase}}"),
    Panel("Oldest failing order", "max(orderkit_oldest_failing_seconds)", unit="s"),
    Panel(
        "Time to Ready, 95 of 100 orders",
        "histogram_quantile(0.95, sum by (le) (rate(orderkit_order_ready_seconds_bucket[6h])))",
        unit="s",
    ),
    Panel(
        "Requests to the forge",
        "sum by (outcome) (rate(orderkit_forge_requests_total[5m]))",
        "{{outcome}}",
        "reqps",
    ),
    Panel(
        "Races lost to other writers",
        "sum by (end) (increase(orderkit_lost_races_total[1h]))",
        "{{end}}",
    ),
    Panel(
        "Sweeps of leases",
        "sum by (action) (increase(orderkit_lease_sweeps_total[1h]))",
        "{{action}}",
    ),
    Panel("Campaigns", 'max by (state) (orderkit_campaigns{state!~"done|reverted"})', "{{state}}"),
    Panel(
        "Orders of campaigns that run",
        f"max by (outcome) (sum by (pod, outcome) (orderkit_campaign_orders{_AT_WORK}))",
        "{{outcome}}",
    ),
    Panel(
        "Waves of campaigns that run",
        f"max by (progress) (sum by (pod, progress) (orderkit_campaign_waves{_AT_WORK}))",
        "{{progress}}",
    ),
    Panel("Rows that wait", "orderkit_model_rows_due", "{{pod}}"),
    Panel("Replicas that have read everything", "sum(orderkit_model_complete)"),
    Panel("Age of rows", "orderkit_model_age_seconds", "{{pod}}", "s"),
    Panel("Open streams", "orderkit_streams_open", "{{pod}}"),
    Panel(
        "Requests",
        "sum by (operation) (rate(orderkit_requests_total[5m]))",
        "{{operation}}",
        "reqps",
    ),
    Panel(
        "Failed requests",
        'sum by (operation, status) (rate(orderkit_requests_total{status=~"5.."}[5m]))',
        "{{operation}} {{status}}",
        "reqps",
    ),
    Panel(
        "Duration, 95 of 100 requests",
        "histogram_quantile(0.95, sum by (le, operation)"
        " (rate(orderkit_request_seconds_bucket[5m])))",
        "{{operation}}",
        "s",
    ),
    Panel("Requests in progress", "orderkit_requests_in_progress", "{{pod}}"),
    Panel("Refused callers", "sum by (reason) (rate(orderkit_refused_total[5m]))", "{{reason}}"),
    Panel("Watches that broke", "rate(orderkit_model_watch_restarts_total[5m])", "{{pod}}"),
    Panel(
        "Plans of pull requests",
        "sum by (state) (increase(orderkit_pull_plans_total[1h]))",
        "{{state}}",
    ),
    Panel(
        "Checks of pushes", "sum by (state) (increase(orderkit_push_checks_total[1h]))", "{{state}}"
    ),
    Panel("Notifications that wait", "orderkit_notifications_queued", "{{channel}}"),
    Panel("Deliveries that failed", "rate(orderkit_notifications_failed_total[5m])", "{{channel}}"),
)


def monitoring(namespace: str, labels: Mapping[str, str], token_secret: str) -> list[Manifest]:
    """Return ServiceMonitor, PrometheusRule, and the dashboard as Grafana's sidecar loads it."""
    name = "orderkit-service"
    meta = {"name": name, "namespace": namespace, "labels": dict(labels)}
    authorization = {"type": "Bearer", "credentials": {"name": token_secret, "key": "token"}}
    endpoint = {
        "port": "http",
        "path": "/metrics",
        "interval": "30s",
        "authorization": authorization,
    }
    return [
        {
            "apiVersion": _MONITORING,
            "kind": "ServiceMonitor",
            "metadata": meta,
            "spec": {"selector": {"matchLabels": dict(labels)}, "endpoints": [endpoint]},
        },
        {
            "apiVersion": _MONITORING,
            "kind": "PrometheusRule",
            "metadata": meta,
            "spec": alert_groups(),
        },
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {
                **meta,
                "name": f"{name}-dashboard",
                "labels": {**labels, "grafana_dashboard": "1"},
            },
            "data": {"orderkit.json": json.dumps(dashboard(), indent=1) + "\n"},
        },
    ]


def alert_groups() -> dict[str, Any]:
    """Return the alerts as a file of Prometheus' rules has them."""
    rules = [
        {
            "alert": alert.name,
            "expr": alert.expression,
            "for": alert.for_,
            "labels": {"severity": alert.severity},
            "annotations": {"summary": alert.summary, "description": alert.description},
        }
        for alert in ALERTS
    ]
    return {"groups": [{"name": "orderkit", "rules": rules}]}


def dashboard() -> dict[str, Any]:
    """Return the dashboard of Grafana."""
    source = {"type": "prometheus", "uid": "${source}"}
    return {
        "uid": "orderkit",
        "title": "Orderkit",
        "schemaVersion": 39,
        "refresh": "30s",
        "time": {"from": "now-6h", "to": "now"},
        "templating": {
            "list": [
                {"name": "source", "type": "datasource", "query": "prometheus", "label": "Source"}
            ]
        },
        "panels": [
            {
                "id": number + 1,
                "type": "timeseries",
                "title": panel.title,
                "datasource": source,
                "gridPos": {"x": number % 2 * 12, "y": number // 2 * 8, "w": 12, "h": 8},
                "fieldConfig": {"defaults": {"unit": panel.unit, "min": 0}, "overrides": []},
                "targets": [
                    {
                        "refId": "A",
                        "datasource": source,
                        "expr": panel.expression,
                        "legendFormat": panel.legend,
                    }
                ],
            }
            for number, panel in enumerate(PANELS)
        ],
    }
