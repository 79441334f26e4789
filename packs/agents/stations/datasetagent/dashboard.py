"""
Station ``render-dashboard``: one Grafana dashboard for the agent.

Built as an object and written as canonical JSON, never from text templates: a name with a quote
cannot break it, and the same agent always gives the same bytes.
"""

from __future__ import annotations

import json
from functools import lru_cache
from typing import Any

from orderkit.stations import StationRequest, StationResponse, manifest

from .agent import GRAFANA_LABEL, start

_SOURCE = {"type": "prometheus", "uid": "${datasource}"}
_TOKENS = ("input", "output", "cached_input")
_WIDTH, _HEIGHT = 12, 8


def render_dashboard(request: StationRequest) -> StationResponse:
    """Want the ConfigMap that Grafana's sidecar picks up."""
    agent = start(request)
    if not agent.dataset:
        return agent.response
    about = f"{agent.dataset['displayName']}: {agent.spec['description']}"
    text = _dashboard_json(agent.name, agent.namespace, about)
    data = {f"agent-{agent.name}.json": text}
    agent.parts.want("dashboard", manifest("v1", "ConfigMap", labels=GRAFANA_LABEL, data=data))
    return agent.response


@lru_cache(maxsize=1_000)  # every round needs it, and no other part takes as long to make
def _dashboard_json(name: str, namespace: str, about: str) -> str:
    dashboard = _dashboard(name, namespace, about)
    return json.dumps(dashboard, ensure_ascii=False, sort_keys=True, indent=1) + "\n"


def _dashboard(name: str, namespace: str, about: str) -> dict[str, Any]:
    agent = f'agent_name="{name}"'
    pods = f'namespace="{namespace}"'
    panels = [
        _panel("Tokens per second", "short", {
            kind: f"sum(rate(whisperops_tokens_{kind}_total{{{agent}}}[5m]))" for kind in _TOKENS
        }),
        _panel("Tokens since yesterday", "short", {
            kind: f"sum(increase(whisperops_tokens_{kind}_total{{{agent}}}[1d]))"
            for kind in _TOKENS
        }),
        _panel("Sandbox memory", "bytes", {
            "used": f'container_memory_working_set_bytes{{{pods},container="sandbox"}}',
            "limit": f'kube_pod_container_resource_limits{{{pods},container="sandbox",'
            'resource="memory"}',
        }),
        _panel("Replicas", "short", {
            "running": f"kube_deployment_status_replicas_available{{{pods}}}",
        }),
    ]  # fmt: skip
    for number, panel in enumerate(panels):
        panel["id"] = number + 1
        panel["gridPos"] = {
            "h": _HEIGHT, "w": _WIDTH, "x": number % 2 * _WIDTH, "y": number // 2 * _HEIGHT,
        }  # fmt: skip
    return {
        "uid": f"agent-{name}",
        "title": f"Agent {name}",
        "description": about,
        "tags": ["whisperops", "agent"],
        "schemaVersion": 39,
        "time": {"from": "now-24h", "to": "now"},
        "refresh": "1m",
        "templating": {"list": [
            {"name": "datasource", "type": "datasource", "query": "prometheus", "label": "Source"},
        ]},
        "panels": panels,
    }  # fmt: skip


def _panel(title: str, unit: str, queries: dict[str, str]) -> dict[str, Any]:
    return {
        "type": "timeseries",
        "title": title,
        "datasource": _SOURCE,
        "fieldConfig": {"defaults": {"unit": unit}, "overrides": []},
        "targets": [
            {"refId": chr(ord("A") + n), "expr": query, "legendFormat": name, "datasource": _SOURCE}
            for n, (name, query) in enumerate(queries.items())
        ],
    }
