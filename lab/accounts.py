"""
A service account of a real API server, as a program in the cluster would be it.

Used by ``realargocd`` for its controller, and by tests that write as Crossplane does.
"""

from __future__ import annotations

from pathlib import Path

import requests
import yaml

from orderkit.adapters.kube.cluster import KubeCluster

_DAY_S = 86_400


def write_kubeconfig(cluster: KubeCluster, kubeconfig: Path, account: str, path: Path) -> Path:
    """
    Make the account, with all rights, and write a kubeconfig with a token for it, good for a day.

    Args:
        kubeconfig: An administrator's.
        account: As the API server names it: ``system:serviceaccount:<namespace>:<name>``.
    """
    _, _, namespace, name = account.split(":")
    subject = {"kind": "ServiceAccount", "name": name, "namespace": namespace}
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"}
    for manifest in (
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}},
        {
            "apiVersion": "v1",
            "kind": "ServiceAccount",
            "metadata": {"name": name, "namespace": namespace},
        },
        {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "ClusterRoleBinding",
            "metadata": {"name": f"{name}-of-the-lab"},
            "roleRef": role,
            "subjects": [subject],
        },
    ):
        cluster.apply(manifest, owner="lab")
    config = yaml.safe_load(kubeconfig.read_text())
    config["users"][0]["user"] = {"token": issue_token(kubeconfig, namespace, name)}
    path.touch(mode=0o600)
    path.write_text(yaml.safe_dump(config))
    return path


def issue_token(kubeconfig: Path, namespace: str, name: str) -> str:
    """Return a token of an account that exists, good for a day."""
    config = yaml.safe_load(kubeconfig.read_text())
    server = config["clusters"][0]["cluster"]
    answer = requests.post(
        f"{server['server']}/api/v1/namespaces/{namespace}/serviceaccounts/{name}/token",
        json={"spec": {"expirationSeconds": _DAY_S}},
        headers={"Authorization": f"Bearer {config['users'][0]['user']['token']}"},
        verify=server["certificate-authority"],
        timeout=60,
    )
    answer.raise_for_status()
    token: str = answer.json()["status"]["token"]
    return token
