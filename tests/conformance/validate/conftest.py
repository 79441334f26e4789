"""
The judges of validation, and what the real API server said.

``recorded.json`` holds the verdicts of kube-apiserver 1.36.1, so that every run is compared with
real answers. With ``--e2e`` the server itself is asked too, the one of ``make lab`` or the one
that ``ORDERKIT_TEST_KUBECONFIG`` names. To record again after a change of the cases:

    ORDERKIT_RECORD_VERDICTS=1 scripts/test.sh --e2e tests/conformance/validate -k recorded
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from lab.realkube import Kube
from tests.conformance.validate.judges import Judge, Ours, Server
from tests.workers import summary

from orderkit.web.serving import HttpServer, bind
from orderkit_standins.cluster import EmbeddedCluster
from orderkit_standins.cluster.http import cluster_app

RECORD_VARIABLE = "ORDERKIT_RECORD_VERDICTS"
RECORDED = Path(__file__).with_name("recorded.json")
TOKEN = "suite-token"


@pytest.fixture(scope="session")
def recorded() -> dict[str, Any]:
    """What the real server said, by case."""
    found: dict[str, Any] = json.loads(RECORDED.read_text())
    return found


@pytest.fixture(scope="package")
def real(real_kube: Kube) -> Iterator[Server]:
    """A real API server."""
    server = Server(real_kube.kubeconfig)
    yield server
    server.close()


@pytest.fixture(scope="package")
def embedded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """The embedded cluster's API server, over HTTP."""
    folder = tmp_path_factory.mktemp("validate")
    cluster = EmbeddedCluster(folder / "cluster.sqlite")
    served = HttpServer(cluster_app(cluster, token=TOKEN), bind("cluster", 0))
    served.start()
    config = {
        "clusters": [{"cluster": {"server": served.url}}],
        "users": [{"user": {"token": TOKEN}}],
    }
    (folder / "kubeconfig").write_text(yaml.safe_dump(config))
    server = Server(folder / "kubeconfig")
    yield server
    server.close()
    served.stop()
    cluster.close()


@pytest.fixture(scope="package", params=["ours", "embedded", "real"])
def judge(request: pytest.FixtureRequest) -> Judge:
    """Each that gives verdicts."""
    if request.param == "ours":
        return Ours()
    found: Judge = request.getfixturevalue(request.param)
    return found


@pytest.fixture(scope="session")
def figure(pytestconfig: pytest.Config) -> Callable[[str], None]:
    """Keep a text for the end of the report."""
    texts: list[str] = []
    summary(pytestconfig).add("validation against kube-apiserver", lambda: texts)
    return texts.append
