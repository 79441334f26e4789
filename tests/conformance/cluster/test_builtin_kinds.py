"""The recorded kinds of Kubernetes are those of the API server that the lab builds."""

from __future__ import annotations

from lab.realkube import Kube
from scripts.kubernetes_kinds import recorded, server

from kubeschema.known.builtin_kinds import FILE


def test_the_recorded_kinds_are_what_the_server_has(real_kube: Kube) -> None:
    assert recorded(server(real_kube.kubeconfig)) == FILE.read_text(), (
        "run scripts/kubernetes_kinds.py"
    )
