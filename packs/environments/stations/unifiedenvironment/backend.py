"""Station ``backend``: the Python service, once its database can be reached."""

from __future__ import annotations

from typing import Any

from orderkit.stations import Ready, StationRequest, StationResponse

from .environment import CREDENTIALS, DATABASE, PORT, USER, Environment, start

BACKEND, _SERVICE = "backend", "backend-service"


def backend(request: StationRequest) -> StationResponse:
    """Want Service and Deployment; the Deployment waits until the database was ready once."""
    environment = start(request)
    if isinstance(environment, StationResponse):
        return environment
    parts, app = environment.parts, {"app": BACKEND}
    service = {"selector": app, "ports": [{"name": "http", "port": 80, "targetPort": "http"}]}
    head = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": BACKEND}}
    parts.want(_SERVICE, {**head, "spec": service})
    host = (environment.response.desired.composite.resource.get("status") or {}).get("databaseHost")
    if host and (parts.is_ready("database") or parts.exists(BACKEND)):
        parts.want(BACKEND, _deployment(environment, host), after=[CREDENTIALS])
    if BACKEND not in environment.response.desired.resources:
        environment.response.desired.composite.ready = Ready.FALSE
    url = f"http://{BACKEND}.{environment.namespace}.svc"
    environment.response.merge_status({"backendUrl": url})
    return environment.response


def _deployment(environment: Environment, database_host: str) -> dict[str, Any]:
    backend, app = environment.spec["backend"], {"app": BACKEND}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {},
        "spec": {
            "replicas": backend["replicas"],
            "selector": {"matchLabels": app},
            "template": {
                "metadata": {"labels": {**app, **environment.labels}},
                "spec": _pod(environment, database_host),
            },
        },
    }


def _pod(environment: Environment, database_host: str) -> dict[str, Any]:
    backend = environment.spec["backend"]
    memory = environment.settings.get("backend.memory", str)
    variables = {  # libpq's own names
        "PORT": str(backend["port"]),
        "PGHOST": database_host,
        "PGPORT": str(PORT),
        "PGUSER": USER,
        "PGDATABASE": DATABASE,
    }
    probe = {"httpGet": {"path": backend["healthPath"], "port": "http"}}
    return {
        "automountServiceAccountToken": False,
        "securityContext": {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}},
        "containers": [
            {
                "name": BACKEND,
                "image": backend["image"],
                "ports": [{"name": "http", "containerPort": backend["port"]}],
                "env": [{"name": name, "value": value} for name, value in variables.items()],
                "envFrom": [{"secretRef": {"name": CREDENTIALS}}],
                "resources": {
                    "requests": {
                        "cpu": environment.settings.get("backend.cpu", str),
                        "memory": memory,
                    },
                    "limits": {"memory": memory},
                },
                "startupProbe": {**probe, "periodSeconds": 2, "failureThreshold": 60},
                "readinessProbe": {**probe, "periodSeconds": 5},
                "livenessProbe": {**probe, "periodSeconds": 20, "failureThreshold": 3},
                "securityContext": {
                    "allowPrivilegeEscalation": False,
                    "capabilities": {"drop": ["ALL"]},
                },
            }
        ],
    }
