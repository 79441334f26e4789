"""A patch that copies without end does not fill the memory of the embedded API server."""

from __future__ import annotations

import copy
import tracemalloc
from collections.abc import Iterator

import pytest
import requests
from jsonpatches import COPIED_MAX, PATCHES, SEED

from orderkit.web.serving import HttpServer, bind
from orderkit_standins.cluster import EmbeddedCluster
from orderkit_standins.cluster.http import cluster_app
from orderkit_standins.cluster.patches import json_patch

TOKEN = "patches-token"
MAP = {
    "apiVersion": "v1",
    "kind": "ConfigMap",
    "metadata": {"name": "seeded", "namespace": "default", "annotations": {"a": SEED}},
    "data": {"seed": SEED},
}


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A served cluster with the ConfigMap."""
    cluster = EmbeddedCluster(tmp_path_factory.mktemp("patches") / "cluster.sqlite")
    cluster.create(MAP, owner="test")
    server = HttpServer(cluster_app(cluster, token=TOKEN), bind("cluster", 0))
    server.start()
    yield f"{server.url}/api/v1/namespaces/default/configmaps/seeded"
    cluster.close()
    server.stop()


@pytest.mark.parametrize("reason", PATCHES)
def test_patches_are_limited_as_a_real_server_limits_them(address: str, reason: str) -> None:
    patch, code = PATCHES[reason]
    headers = {
        "Authorization": f"Bearer {TOKEN}",
        "Content-Type": "application/json-patch+json",
    }

    answer = requests.patch(
        address, json=patch, headers=headers, params={"dryRun": "All"}, timeout=60
    )

    assert answer.status_code == code, answer.text[:300]


def test_a_copy_bomb_stays_small_in_memory() -> None:
    tracemalloc.start()
    with pytest.raises(Exception, match="an error in our request"):
        json_patch(copy.deepcopy(MAP), PATCHES["doubles forty times"][0])
    _, peak_bytes = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert peak_bytes < 20 * COPIED_MAX
