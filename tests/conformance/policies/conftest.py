"""Who judges policies: the embedded cluster over HTTP, and a real API server (``--e2e``)."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import yaml
from tests.conformance.policies.apiserver import ApiServer

from orderkit.web.serving import HttpServer, bind
from orderkit_standins.cluster import EmbeddedCluster
from orderkit_standins.cluster.http import cluster_app

TOKEN = "suite-token"


@pytest.fixture(scope="package", params=["embedded", "real"])
def server(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ApiServer]:
    """An API server that enforces policies."""
    if request.param == "real":
        found = ApiServer(request.getfixturevalue("real_kube").kubeconfig)
        yield found
        found.close()
        return
    folder = tmp_path_factory.mktemp("policies")
    cluster = EmbeddedCluster(folder / "cluster.sqlite")
    served = HttpServer(cluster_app(cluster, token=TOKEN), bind("cluster", 0))
    served.start()
    config = {
        "clusters": [{"cluster": {"server": served.url}}],
        "users": [{"user": {"token": TOKEN}}],
    }
    (folder / "kubeconfig").write_text(yaml.safe_dump(config))
    found = ApiServer(folder / "kubeconfig")
    yield found
    found.close()
    served.stop()
    cluster.close()
