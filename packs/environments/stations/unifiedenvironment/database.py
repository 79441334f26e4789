"""
Station ``database``: PostgreSQL and the Secret that the backend reads.

The Secret has libpq's own variables (``PGHOST`` ...), so a backend needs ``envFrom`` and nothing
else. With RDS it comes in two steps: the password first, which the instance is created with, the
host once there is one. A host that was known stays, whatever the provider reports later.
"""

from __future__ import annotations

import base64
from typing import Any

from orderkit.stations import (
    StationRequest,
    StationResponse,
    generated_password,
    managed,
    secret,
)

from .environment import CREDENTIALS, DATABASE, PORT, USER, Environment, start

_DATA = "/var/lib/postgresql/data"


def database(request: StationRequest) -> StationResponse:
    """Want the credentials, and RDS or a StatefulSet that they open."""
    environment = start(request)
    if isinstance(environment, StationResponse):
        return environment
    password = generated_password(request, environment.response, CREDENTIALS, "PGPASSWORD")
    if password is None:
        return environment.response
    host = _host(environment)
    values = {"PGUSER": USER, "PGPASSWORD": password, "PGDATABASE": DATABASE, "PGPORT": str(PORT)}
    environment.parts.want(CREDENTIALS, secret({**values, **({"PGHOST": host} if host else {})}))
    if environment.uses_rds:
        _want_instance(environment)
    else:
        _want_stateful_set(environment)
    if host:
        environment.response.merge_status({"databaseHost": host, "databaseSecret": CREDENTIALS})
    return environment.response


def _host(environment: Environment) -> str:
    if not environment.uses_rds:
        return f"database.{environment.namespace}.svc"
    address = environment.parts.observed("database", "status", "atProvider", "address")
    if address:
        return str(address)
    kept = environment.parts.observed(CREDENTIALS, "data", "PGHOST", default="")
    return base64.b64decode(kept).decode(errors="replace")


def _want_instance(environment: Environment) -> None:
    settings, size = environment.settings, environment.database_size
    backup_days = settings.get("postgres.backupDays", int)
    instance = managed(
        "rds.aws.m.upbound.io/v1beta1",
        "Instance",
        {
            "region": settings.get("region", str),
            "identifier": f"{environment.spec['environment']}-environment",
            "engine": "postgres",
            "engineVersion": settings.get("postgres.version", str),
            "instanceClass": size["instanceClass"],
            "allocatedStorage": size["storageGb"],
            "storageType": "gp3",
            "storageEncrypted": True,
            "dbName": DATABASE,
            "username": USER,
            "passwordSecretRef": {"name": CREDENTIALS, "key": "PGPASSWORD"},
            "port": PORT,
            "publiclyAccessible": False,
            "dbSubnetGroupName": settings.get("rds.subnetGroup", str),
            "vpcSecurityGroupIds": settings.get("rds.securityGroups", list),
            "multiAz": settings.get("postgres.multiAz", bool),
            "backupRetentionPeriod": backup_days,
            "autoMinorVersionUpgrade": True,
            "applyImmediately": True,
            "skipFinalSnapshot": True,
            "tags": dict(environment.labels),
        },
        provider_config="aws",
    )
    environment.parts.want("database", instance, after=[CREDENTIALS])


def _want_stateful_set(environment: Environment) -> None:
    """The claim is a part of its own: a StatefulSet's templates can never ask for more storage."""
    size = environment.database_size
    parts = environment.parts
    claim = {
        "accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": f"{size['storageGb']}Gi"}},
    }
    app = {"app": "database"}
    parts.want(
        "database-storage",
        {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {}, "spec": claim},
        ready=parts.exists("database-storage"),
    )
    service = {"clusterIP": "None", "selector": app, "ports": [{"name": "postgres", "port": PORT}]}
    parts.want(
        "database-service",
        {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "database"}, "spec": service},
    )
    parts.want(
        "database",
        {
            "apiVersion": "apps/v1",
            "kind": "StatefulSet",
            "metadata": {},
            "spec": {
                "replicas": 1,
                "serviceName": "database",
                "selector": {"matchLabels": app},
                "template": {
                    "metadata": {"labels": {**app, **environment.labels}},
                    "spec": _pod(environment),
                },
            },
        },
        after=[CREDENTIALS, "database-storage"],
    )


def _pod(environment: Environment) -> dict[str, Any]:
    size = environment.database_size
    ready = {"exec": {"command": ["pg_isready", "--username", USER, "--dbname", DATABASE]}}
    variables = {
        "POSTGRES_USER": "PGUSER",
        "POSTGRES_PASSWORD": "PGPASSWORD",
        "POSTGRES_DB": "PGDATABASE",
    }
    return {
        "automountServiceAccountToken": False,
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": 70,
            "fsGroup": 70,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "containers": [
            {
                "name": "postgres",
                "image": environment.settings.get("postgres.image", str),
                "ports": [{"name": "postgres", "containerPort": PORT}],
                "env": [
                    *(
                        {
                            "name": name,
                            "valueFrom": {"secretKeyRef": {"name": CREDENTIALS, "key": key}},
                        }
                        for name, key in variables.items()
                    ),
                    {"name": "PGDATA", "value": f"{_DATA}/pgdata"},
                ],
                "resources": {
                    "requests": {"cpu": size["cpu"], "memory": size["memory"]},
                    "limits": {"memory": size["memory"]},
                },
                "readinessProbe": {**ready, "periodSeconds": 5},
                "livenessProbe": {**ready, "initialDelaySeconds": 30, "periodSeconds": 20},
                "securityContext": {
                    "allowPrivilegeEscalation": False,
                    "capabilities": {"drop": ["ALL"]},
                },
                "volumeMounts": [{"name": "data", "mountPath": _DATA}],
            }
        ],
        "volumes": [
            {
                "name": "data",
                "persistentVolumeClaim": {"claimName": environment.parts.name("database-storage")},
            }
        ],
    }
