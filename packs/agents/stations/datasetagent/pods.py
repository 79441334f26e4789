"""Make the kit's own Deployments and Services: those of the sandbox and the chat."""

from __future__ import annotations

from dataclasses import dataclass, field

from orderkit.stations import Manifest, manifest

from .agent import Agent

PORT = 8080


@dataclass(frozen=True, slots=True)
class Program:
    """One container that a Deployment runs."""

    name: str
    image: str
    env: dict[str, str]
    memory: str
    account: str = ""
    mounts: dict[str, Manifest] = field(default_factory=dict)
    """Volumes by the path where they are mounted, read-only."""


def deployment(agent: Agent, program: Program) -> Manifest:
    """Return a program's Deployment: not root, a read-only file system, and a scratch folder."""
    app = {"app.kubernetes.io/name": program.name}
    scratch = {"name": "scratch", "emptyDir": {}}
    volumes = [{"name": f"mount-{n}", **v} for n, v in enumerate(program.mounts.values())]
    mounts = [
        {"name": f"mount-{n}", "mountPath": path, "readOnly": True}
        for n, path in enumerate(program.mounts)
    ]
    container = {
        "name": program.name,
        "image": program.image,
        "ports": [{"name": "http", "containerPort": PORT}],
        "env": [{"name": key, "value": value} for key, value in program.env.items()],
        "resources": {
            "requests": {"cpu": "100m", "memory": program.memory},
            "limits": {"memory": program.memory},
        },
        "readinessProbe": {"httpGet": {"path": "/healthz", "port": "http"}},
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        },
        "volumeMounts": [{"name": "scratch", "mountPath": "/tmp"}, *mounts],  # noqa: S108 - in a Pod
    }
    pod: Manifest = {
        "automountServiceAccountToken": bool(program.account),
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": 65532,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "containers": [container],
        "volumes": [scratch, *volumes],
    }
    if program.account:
        pod["serviceAccountName"] = program.account
    template = {"metadata": {"labels": {**agent.parts.labels, **app}}, "spec": pod}
    spec = {"replicas": 1, "selector": {"matchLabels": app}, "template": template}
    return manifest("apps/v1", "Deployment", program.name, labels=app, spec=spec)


def service(name: str) -> Manifest:
    """Return the Service of a program."""
    app = {"app.kubernetes.io/name": name}
    port = {"name": "http", "port": 80, "targetPort": "http", "protocol": "TCP"}
    return manifest("v1", "Service", name, labels=app, spec={"selector": app, "ports": [port]})
