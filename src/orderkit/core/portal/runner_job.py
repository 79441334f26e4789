"""
The Job that runs one Orderkit command in the cluster.

The command is the same as a person types, run with few rights: no root, read-only root file system,
no capabilities, limited time and memory, removed an hour after it ends. platform.yaml, the
credentials and the Job's own token for the API server are in one folder, so that both sides share
only the name `FOLDER` (the objects are in ``day2/job/``).

Repeating is safe: the arguments carry an operation id, so a restarted Pod changes nothing twice.
Exit codes 1 and 5 (something did not answer, or is half done) are retried; 2, 3 and 4 (a wrong
value, a conflict, a refusal) end the Job at once.

Pure; called by ``core.portal.job_copy`` while a pack is published for a portal of profile ``job``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ground.objects.kube_objects import Manifest
from orderkit import __version__

NAMESPACE, ACCOUNT = "orderkit", "orderkit-runner"
SETTINGS, CREDENTIALS = "orderkit-platform", "orderkit-credentials"
"""The ConfigMap with platform.yaml, and the Secret with the files that it names."""
FOLDER = "/etc/orderkit"
USER = 65532
"""That of the image (`Containerfile`)."""
CONTAINER = "orderkit"
_DEADLINE_S = 900
_KEPT_S = 3600
_TOKEN_S = 600
"""Kubernetes makes no token of a shorter life."""
_RETRIES = 4
_FINAL = [2, 3, 4]  # a wrong value, a conflict, a refusal: the same again helps nobody


def image_of(registry: str) -> str:
    """Return the image of this version in a registry: the only one that may run as a Job."""
    return f"{registry}/orderkit/orderkit:v{__version__}"


@dataclass(frozen=True, slots=True)
class RunnerJob:
    """One command. `name` is the Job's and must differ between operations."""

    name: str
    image: str
    arguments: Sequence[str]
    namespace: str = NAMESPACE
    account: str = ACCOUNT
    settings: str = SETTINGS
    credentials: str = CREDENTIALS


def manifest(job: RunnerJob) -> Manifest:
    """Return the Job (batch/v1). It satisfies the Pod security standard *restricted*."""
    labels = {"app.kubernetes.io/name": "orderkit"}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": job.name, "namespace": job.namespace, "labels": labels},
        "spec": {
            "backoffLimit": _RETRIES,
            "activeDeadlineSeconds": _DEADLINE_S,
            "ttlSecondsAfterFinished": _KEPT_S,
            "podFailurePolicy": {
                "rules": [
                    {
                        "action": "FailJob",
                        "onExitCodes": {
                            "containerName": CONTAINER,
                            "operator": "In",
                            "values": _FINAL,
                        },
                    }
                ]
            },
            "template": {"metadata": {"labels": labels}, "spec": pod(job)},
        },
    }


def pod(job: RunnerJob) -> dict[str, Any]:
    """Return the Pod's spec."""
    return {
        # The API server accepts podFailurePolicy only with this restart policy.
        "restartPolicy": "Never",
        "serviceAccountName": job.account,
        # `_settings` projects the token into the one folder instead.
        "automountServiceAccountToken": False,
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": USER,
            "runAsGroup": USER,
            # The projected files have mode 0440: the group makes them readable.
            "fsGroup": USER,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "containers": [_container(job)],
        "volumes": [_settings(job), {"name": "scratch", "emptyDir": {"sizeLimit": "64Mi"}}],
    }


def _container(job: RunnerJob) -> dict[str, Any]:
    return {
        "name": CONTAINER,
        "image": job.image,
        "args": list(job.arguments),
        "env": [
            {"name": "ORDERKIT_PLATFORM", "value": f"{FOLDER}/platform.yaml"},
            {"name": "HOME", "value": "/tmp"},  # noqa: S108 - the Pod's own, an emptyDir
        ],
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        },
        "resources": {
            "requests": {"cpu": "50m", "memory": "128Mi"},
            "limits": {"memory": "384Mi"},
        },
        "volumeMounts": [
            {"name": "settings", "mountPath": FOLDER, "readOnly": True},
            {"name": "scratch", "mountPath": "/tmp"},  # noqa: S108 - the Pod's own
        ],
    }


def _settings(job: RunnerJob) -> dict[str, Any]:
    """Return the folder's volume: settings, kubeconfig, credentials, token, certificates."""
    token = {"path": "token", "expirationSeconds": _TOKEN_S}
    roots = {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}
    return {
        "name": "settings",
        "projected": {
            "defaultMode": 0o440,
            "sources": [
                {"configMap": {"name": job.settings}},
                {"secret": {"name": job.credentials}},
                {"serviceAccountToken": token},
                {"configMap": roots},
            ],
        },
    }
