"""The spend meter against a real Prometheus that scrapes an agent's counters."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import urlsplit

import pytest
import requests
from lab import realprometheus

from ground.errors import RemoteError
from ground.objects.kube_objects import CONFIG_MAP, Manifest, ObjectKey
from orderkit.ports.clock import SystemClock
from orderkit_standins.cluster import EmbeddedCluster
from whisperops.metering import Meter
from whisperops.metrics import Metrics
from whisperops.prometheus import Prometheus
from whisperops.serving import HealthServer
from whisperops.spending import BUDGET

INPUT, OUTPUT = "whisperops_tokens_input_total", "whisperops_tokens_output_total"
AGENT = {"agent_name": "housing-bot", "model": "gemini-flash"}
PRICES = """\
models:
  gemini-flash: {input_per_million: "1", output_per_million: "10", cached_input_per_million: "0"}
"""
DEADLINE_S = 180.0
CRD: Manifest = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "xagentbudgets.whisperops.io"},
    "spec": {
        "group": BUDGET.group,
        "scope": "Namespaced",
        "names": {"kind": BUDGET.kind, "plural": "xagentbudgets"},
        "versions": [
            {
                "name": BUDGET.version,
                "served": True,
                "storage": True,
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "x-kubernetes-preserve-unknown-fields": True,
                    }
                },
            }
        ],
    },
}


@pytest.fixture
def counters() -> Iterator[tuple[Metrics, str]]:
    """An agent's counters, exported."""
    metrics = Metrics()
    for name in (INPUT, OUTPUT):
        metrics.describe(name, "counter", "tokens")
        metrics.add(name, 0, **AGENT)
    server = HealthServer(("127.0.0.1", 0), metrics, alive=lambda: True, ready=lambda: True)
    with server:
        yield metrics, urlsplit(server.url).netloc


@pytest.fixture
def prometheus(tmp_path: Path, counters: tuple[Metrics, str]) -> Iterator[str]:
    (tmp_path / "prometheus").mkdir()
    with realprometheus.serving(tmp_path / "prometheus", counters[1]) as url:
        yield url


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[EmbeddedCluster]:
    opened = EmbeddedCluster(tmp_path / "cluster.sqlite")
    opened.apply(CRD, owner="test")
    for namespace in ("whisperops", "agent-housing-bot"):
        opened.apply(_manifest("v1", "Namespace", namespace), owner="test")
    table = _manifest("v1", "ConfigMap", "agent-prices", "whisperops")
    opened.apply({**table, "data": {"prices.yaml": PRICES}}, owner="test")
    start = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    budget = _manifest(BUDGET.api_version, BUDGET.kind, "housing-bot", "agent-housing-bot")
    spec = {"agentName": "housing-bot", "windowStart": start}
    opened.apply({**budget, "spec": spec}, owner="test")
    yield opened
    opened.close()


def test_what_an_agent_uses_is_in_its_record_to_the_token(
    counters: tuple[Metrics, str], prometheus: str, cluster: EmbeddedCluster
) -> None:
    metrics, client = counters[0], Prometheus(prometheus)
    meter = Meter(cluster, client, SystemClock(), ("whisperops", "agent-prices"))
    _until(lambda: _shown(prometheus, INPUT) == 0)
    metrics.add(INPUT, 1_230_000, **AGENT)
    metrics.add(OUTPUT, 77_000, **AGENT)
    _until(lambda: _shown(prometheus, OUTPUT) == 77_000)

    first = meter.run_pass()
    metrics.add(INPUT, 1_000_000, **AGENT)
    _until(lambda: _shown(prometheus, INPUT) == 2_230_000)
    second = meter.run_pass()

    assert not first.failures
    assert not second.failures
    assert _spend(cluster)["spentUsd"] == "3.00"
    assert _spend(cluster)["measured"] == "true"
    tokens = cluster.get(ObjectKey(CONFIG_MAP, "tokens-housing-bot", "agent-housing-bot"))
    assert tokens is not None
    assert json.loads(tokens["data"]["odometer"])["tokens"] == [
        ["gemini-flash", "input", 2_230_000.0],
        ["gemini-flash", "output", 77_000.0],
    ]


def test_a_real_refusal_is_told_as_one(prometheus: str) -> None:
    with pytest.raises(RemoteError, match="refused the query: bad_data"):
        Prometheus(prometheus).samples("sum(", at_s=time.time())
    with pytest.raises(RemoteError, match="no range of samples"):
        Prometheus(prometheus).samples("vector(1)", at_s=time.time())


def _manifest(api_version: str, kind: str, name: str, namespace: str = "") -> Manifest:
    where = {"namespace": namespace} if namespace else {}
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": name, **where}}


def _spend(cluster: EmbeddedCluster) -> dict[str, str]:
    found = cluster.get(ObjectKey(CONFIG_MAP, "spend-housing-bot", "agent-housing-bot"))
    assert found is not None
    return dict(found["data"])


def _shown(url: str, name: str) -> float | None:
    """Return the last value that Prometheus has scraped."""
    query = {"query": f'{name}{{agent_name="housing-bot"}}'}
    result = requests.get(f"{url}/api/v1/query", params=query, timeout=60).json()["data"]["result"]
    return float(result[0]["value"][1]) if result else None


def _until(probe: Callable[[], bool]) -> None:
    deadline = time.monotonic() + DEADLINE_S
    while not probe():
        assert time.monotonic() < deadline, "did not happen in time"
        time.sleep(0.1)
