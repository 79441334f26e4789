"""
Station ``database``: PostgreSQL, and the Secret that opens it.

The Secret holds what is secret and nothing else: values of Secrets are masked wherever people look,
and the host is an output. With RDS it comes in two steps: the password first, which the instance is
created with, the URL once there is a host. A host that was known stays, whatever the provider
reports later.
"""

from __future__ import annotations

from typing import Any

from orderkit.stations import StationRequest, StationResponse, generated_password, managed, secret

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
    values = {"PGPASSWORD": password}
    if host:
        values["DATABASE_URL"] = f"postgresql://{USER}:{password}@{host}:{PORT}/{DATABASE}"
    environment.parts.want(CREDENTIALS, secret(values))
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
    status = environment.request.xr.get("status") or {}
    return str(address or status.get("databaseHost") or "")


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
    password = {"name": CREDENTIALS, "key": "PGPASSWORD"}
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
                    {"name": "POSTGRES_USER", "value": USER},
                    {"name": "POSTGRES_PASSWORD", "valueFrom": {"secretKeyRef": password}},
                    {"name": "POSTGRES_DB", "value": DATABASE},
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
