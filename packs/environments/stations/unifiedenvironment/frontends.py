"""
Station ``frontends``: for each micro-frontend a bucket that serves it, and what the order shows.

AWS refuses ACLs on new buckets, so a policy lets everybody read, and the block of public policies
is lifted before it. Buckets hold what a pipeline built and can build again: they go with the order.
"""

from __future__ import annotations

import json
from typing import Any

from orderkit.stations import StationRequest, StationResponse, managed

from .backend import BACKEND
from .environment import Environment, start

_S3 = "s3.aws.m.upbound.io/v1beta1"


def frontends(request: StationRequest) -> StationResponse:
    """Want five resources for each micro-frontend, and write the status."""
    environment = start(request)
    if isinstance(environment, StationResponse):
        return environment
    names = list(environment.spec.get("frontends") or ())
    for frontend in names:
        _want_bucket(environment, frontend)
    _write_status(environment, names)
    return environment.response


def bucket_name(environment: Environment, frontend: str) -> str:
    """Return the bucket's name; the XRD keeps it below 63 characters."""
    spec = environment.spec
    return f"{spec['bucketPrefix']}-{spec['environment']}-{frontend}"


def _want_bucket(environment: Environment, frontend: str) -> None:
    parts, name = environment.parts, bucket_name(environment, frontend)
    tags = {"tags": dict(environment.labels), "forceDestroy": True}
    bucket = f"bucket-{frontend}"
    parts.want(bucket, _resource(environment, "Bucket", tags, external_name=name))
    reference = {"bucket": name}
    details: dict[str, dict[str, Any]] = {
        "BucketOwnershipControls": {"rule": {"objectOwnership": "BucketOwnerEnforced"}},
        "BucketPublicAccessBlock": {
            "blockPublicAcls": True,
            "ignorePublicAcls": True,
            "blockPublicPolicy": False,
            "restrictPublicBuckets": False,
        },
        "BucketWebsiteConfiguration": {
            "indexDocument": {"suffix": "index.html"},
            "errorDocument": {"key": "index.html"},  # routes of a page are its script's
        },
    }
    for kind, fields in details.items():
        resource = _resource(environment, kind, {**reference, **fields})
        parts.want(f"{_PARTS[kind]}-{frontend}", resource, after=[bucket])
    policy, access = f"policy-{frontend}", f"public-access-{frontend}"
    if parts.exists(policy) or parts.is_ready(access):
        fields = {**reference, "policy": read_by_everybody(name)}
        parts.want(policy, _resource(environment, "BucketPolicy", fields))


_PARTS = {
    "BucketOwnershipControls": "ownership",
    "BucketPublicAccessBlock": "public-access",
    "BucketWebsiteConfiguration": "website",
}


def _resource(
    environment: Environment, kind: str, fields: dict[str, Any], *, external_name: str = ""
) -> dict[str, Any]:
    region = environment.settings.get("region", str)
    return managed(
        _S3,
        kind,
        {"region": region, **fields},
        provider_config="aws",
        external_name=external_name,
    )


def read_by_everybody(bucket: str) -> str:
    """Return the bucket's policy: objects can be read, and nothing can be listed."""
    statement = {
        "Sid": "Read",
        "Effect": "Allow",
        "Principal": "*",
        "Action": "s3:GetObject",
        "Resource": f"arn:aws:s3:::{bucket}/*",
    }
    return json.dumps({"Version": "2012-10-17", "Statement": [statement]}, sort_keys=True)


def _write_status(environment: Environment, names: list[str]) -> None:
    parts = environment.parts
    buckets, websites = {}, {}
    for frontend in names:
        if all(parts.is_ready(f"{kind}-{frontend}") for kind in ("bucket", "policy", "website")):
            buckets[frontend] = bucket_name(environment, frontend)
            path = ("status", "atProvider", "websiteEndpoint")
            endpoint = parts.observed(f"website-{frontend}", *path)
            if endpoint:
                websites[frontend] = f"http://{endpoint}"
    phase, waits = parts.phase(), BACKEND not in environment.response.desired.resources
    status: dict[str, Any] = {"phase": "Provisioning" if waits and phase == "Ready" else phase}
    if buckets:
        status["buckets"] = buckets
    if websites:
        status["websites"] = websites
    if names and names[0] in buckets:
        status["bucketName"] = buckets[names[0]]
    problems = parts.problems()
    if problems:
        part, text = next(iter(problems.items()))
        status["problem"] = f"{part}: {text}"
    environment.response.merge_status(status)
