"""
An application environment on Google Cloud: cluster, database, bucket, and a Secret about them.

External names end in six characters of the order's identity, because Cloud SQL does not give the
name of a deleted instance to another one for a week.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

from orderkit.stations import (
    KEEP,
    MANAGE,
    Parts,
    Settings,
    StationRequest,
    StationResponse,
    generated_password,
    layered_settings,
    managed,
    secret,
)

CLUSTER, POOL, SQL, DATABASE, USER, BUCKET = "cluster", "nodes", "sql", "database", "user", "bucket"
PASSWORD, SUMMARY = "database-password", "connection"
_DATABASE_NAME = _USER_NAME = "app"
_EXTERNAL_NAME = "crossplane.io/external-name"
_AT_PROVIDER = ("status", "atProvider")


def station(request: StationRequest) -> StationResponse:
    """Want the environment; databases and nodes wait for what they live in."""
    response = StationResponse.to(request)
    settings = layered_settings(request, response)
    if settings is None:
        return response
    password = generated_password(request, response, PASSWORD)
    if password is None:
        return response
    spec = request.xr["spec"]
    labels = {"platform.acme.io/environment": spec["name"], "platform.acme.io/owner": spec["team"]}
    parts = Parts(request, response, labels=labels)
    parts.want(PASSWORD, secret({"password": password}))
    _want_cluster(parts, settings)
    _want_database(parts, settings)
    _want_bucket(parts, settings)
    outputs = _outputs(parts)
    connection = {"kubeconfig": parts.connection(CLUSTER, "kubeconfig"), "db_password": password}
    if host := outputs.get("dbEndpoint"):
        # only here: values of Secrets are masked wherever people look, and the host is an output
        connection["DATABASE_URL"] = f"postgresql://{_USER_NAME}:{password}@{host}/{_DATABASE_NAME}"
    parts.want(SUMMARY, secret({key: text for key, text in connection.items() if text}))
    problems = [f"{part}: {text}" for part, text in parts.problems().items()]
    response.merge_status(
        {
            **outputs,
            "phase": parts.phase(),
            "secretName": parts.name(SUMMARY),
            **({"problem": problems[0]} if problems else {}),
        }
    )
    return response


def _want_cluster(parts: Parts, settings: Settings) -> None:
    spec = parts.request.xr["spec"]
    cluster = {
        "initialNodeCount": 1,
        "removeDefaultNodePool": True,  # nodes come in a pool of their own, whose size can change
        "deletionProtection": False,
        "networkingMode": "VPC_NATIVE",
        "ipAllocationPolicy": {},
        "releaseChannel": {"channel": settings.get("releaseChannel", str)},
        "workloadIdentityConfig": {"workloadPool": f"{spec['projectId']}.svc.id.goog"},
        "resourceLabels": _cloud_labels(parts),
    }
    location = {"location": settings.get("location", str)}
    parts.want(CLUSTER, _google(parts, CLUSTER, "container/Cluster", {**location, **cluster}))
    pool = {
        **location,
        "clusterRef": parts.reference(CLUSTER),
        "nodeCount": settings.get("nodes.count", int),
        "management": {"autoRepair": True, "autoUpgrade": True},
        "nodeConfig": {
            "machineType": settings.get("nodes.machineType", str),
            "diskSizeGb": settings.get("nodes.diskGb", int),
            "oauthScopes": ["https://www.googleapis.com/auth/cloud-platform"],
            "workloadMetadataConfig": {"mode": "GKE_METADATA"},
            "shieldedInstanceConfig": {"enableSecureBoot": True},
        },
    }
    parts.want(POOL, _google(parts, POOL, "container/NodePool", pool), needs=[CLUSTER])


def _want_database(parts: Parts, settings: Settings) -> None:
    parameters = parts.request.xr["spec"]["parameters"]
    backups = settings.get("database.backups", bool)
    network = settings.values.get("privateNetwork")
    address: dict[str, Any] = {"ipv4Enabled": not network, "sslMode": "ENCRYPTED_ONLY"}
    instance = {
        "databaseVersion": settings.get("database.version", str),
        "region": settings.get("region", str),
        "deletionProtection": False,
        "settings": {
            "tier": settings.get("database.tier", str),
            "edition": "ENTERPRISE",  # its successor knows none of the small tiers
            "diskSize": parameters["storageGB"],
            "diskAutoresize": False,
            "backupConfiguration": {"enabled": backups, "pointInTimeRecoveryEnabled": backups},
            "ipConfiguration": address | ({"privateNetwork": network} if network else {}),
            "userLabels": _cloud_labels(parts),
        },
    }
    parts.want(SQL, _google(parts, SQL, "sql/DatabaseInstance", instance))
    # PostgreSQL refuses to drop what owns or is in use; the instance's end takes both with it
    inside = {"instanceRef": parts.reference(SQL), "deletionPolicy": "ABANDON"}
    database = _google(parts, DATABASE, "sql/Database", inside, _DATABASE_NAME)
    parts.want(DATABASE, database, needs=[SQL])
    password = {"passwordSecretRef": {**parts.reference(PASSWORD), "key": "password"}}
    user = _google(parts, USER, "sql/User", {**inside, **password}, _USER_NAME)
    parts.want(USER, user, needs=[SQL])


def _want_bucket(parts: Parts, settings: Settings) -> None:
    spec = parts.request.xr["spec"]
    bucket = {
        "location": settings.get("region", str),
        "uniformBucketLevelAccess": True,
        "publicAccessPrevention": "enforced",
        "forceDestroy": spec["parameters"]["deletionPolicy"] == "Delete",
        "labels": _cloud_labels(parts),
    }
    name = f"{spec['projectId']}-{_name_in_cloud(parts, BUCKET)}"
    parts.want(BUCKET, _google(parts, BUCKET, "storage/Bucket", bucket, name))


def _google(
    parts: Parts, part: str, kind: str, for_provider: Mapping[str, Any], external_name: str = ""
) -> dict[str, Any]:
    """Return a resource of Google's; an external name that it has already stays."""
    spec = parts.request.xr["spec"]
    present = parts.observed(part, "metadata", "annotations", _EXTERNAL_NAME, default="")
    orphan = spec["parameters"]["deletionPolicy"] == "Orphan"
    service, _, kind = kind.partition("/")
    return managed(
        f"{service}.gcp.m.upbound.io/v1beta1",
        kind,
        {"project": spec["projectId"], **for_provider},
        provider_config="gcp",
        policies=KEEP if orphan else MANAGE,
        external_name=present or external_name or _name_in_cloud(parts, part),
        connection_secret=parts.name(f"{part}-details") if part in {CLUSTER, SQL} else "",
    )


def _name_in_cloud(parts: Parts, part: str) -> str:
    meta, name = parts.request.xr["metadata"], parts.request.xr["spec"]["name"]
    identity = "/".join(str(meta.get(key) or "") for key in ("uid", "namespace", "name"))
    return f"{name}-{hashlib.sha256(f'{identity}/{part}'.encode()).hexdigest()[:6]}"


def _cloud_labels(parts: Parts) -> dict[str, str]:
    """Return labels of Google Cloud: small letters, without a domain."""
    return {key.rpartition("/")[2]: text for key, text in parts.labels.items()}


def _outputs(parts: Parts) -> dict[str, str]:
    """Return what people order it for, as far as it is known; what was known stays."""
    paths = {
        "gkeEndpoint": [(CLUSTER, "endpoint")],
        "dbEndpoint": [(SQL, "privateIpAddress"), (SQL, "publicIpAddress")],
        "bucketUrl": [(BUCKET, "url")],
    }
    status = parts.request.xr.get("status") or {}
    outputs = {}
    for name, places in paths.items():
        values = [parts.observed(part, *_AT_PROVIDER, field) for part, field in places]
        value = next((value for value in values if value), status.get(name))
        if value:
            outputs[name] = str(value)
    return outputs
