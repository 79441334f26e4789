"""A real API server limits JSON patches as the embedded one does."""

from __future__ import annotations

import pytest
import requests
import yaml
from jsonpatches import PATCHES, SEED
from lab.realkube import Kube
from tests.conformance.policies.apiserver import ApiServer

MAP = {
    "apiVersion": "v1",
    "kind": "ConfigMap",
    "metadata": {"name": "seeded", "namespace": "default", "annotations": {"a": SEED}},
    "data": {"seed": SEED},
}


@pytest.mark.parametrize("reason", PATCHES)
def test_patches_are_limited(real_kube: Kube, reason: str) -> None:
    patch, code = PATCHES[reason]
    server = ApiServer(real_kube.kubeconfig)
    server.must(MAP)
    config = yaml.safe_load(real_kube.kubeconfig.read_text())

    answer = requests.patch(
        f"{config['clusters'][0]['cluster']['server']}{server.path(MAP, 'seeded')}",
        json=patch,
        headers={
            "Authorization": f"Bearer {config['users'][0]['user']['token']}",
            "Content-Type": "application/json-patch+json",
        },
        params={"dryRun": "All"},
        verify=config["clusters"][0]["cluster"]["certificate-authority"],
        timeout=60,
    )
    server.close()

    assert answer.status_code == code, answer.text[:300]
