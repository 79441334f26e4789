"""
Station ``render-iam``: the five parts in Google's cloud.

Rights are granted on the buckets themselves, not in the project's policy, which would grow by two
members with every agent. The agent may read its dataset's bucket and owns its own bucket.
"""

from __future__ import annotations

from typing import Any

from orderkit.stations import StationRequest, StationResponse

from .agent import KEY_SECRET, Agent, start

_EXTERNAL_NAME = "crossplane.io/external-name"
_CLOUD = "cloudplatform.gcp.m.upbound.io/v1beta1"
_STORAGE = "storage.gcp.m.upbound.io/v1beta1"
_KEEP = ["Observe", "Create", "Update", "LateInitialize"]
"""Everything but Delete: the bucket outlives its agent."""


def render_iam(request: StationRequest) -> StationResponse:
    """Want bucket, account, key, and the account's rights on two buckets."""
    agent = start(request)
    if not agent.dataset:
        return agent.response
    agent.want("bucket", _bucket(agent))
    agent.want("account", _account(agent))
    agent.want("account-key", _key(agent))
    source = bucket_of(str(agent.dataset["gcsPath"]))
    # A grant cannot be moved to another bucket, so each bucket has a part of its own.
    agent.want(f"reader-of-{source}", _member(agent, "reader", source, "objectViewer"))
    agent.want("bucket-owner", _member(agent, "bucket-owner", agent.bucket, "objectAdmin"))
    agent.response.merge_status({"bucket": agent.bucket})
    return agent.response


def bucket_of(path: str) -> str:
    """Return the bucket of a blob; for a file (in demos only), its folder."""
    scheme, _, rest = path.partition("://")
    folders = [folder for folder in rest.split("/")[:-1] if folder]
    if not folders:
        return "files"
    return folders[-1] if scheme == "file" else folders[0]


def _managed(agent: Agent, name: str, **spec: Any) -> dict[str, Any]:
    provider = agent.settings.get("providerConfig", "gcp")
    return {
        "metadata": agent.metadata(name),
        "spec": {
            **spec,
            "providerConfigRef": {"kind": "ClusterProviderConfig", "name": provider},
        },
    }


def _bucket(agent: Agent) -> dict[str, Any]:
    delete_at_end = agent.spec.get("bucketOnEnd") == "delete"
    bucket = _managed(
        agent,
        "bucket",
        managementPolicies=["*"] if delete_at_end else _KEEP,
        forProvider={
            "project": agent.spec["projectId"],
            "location": agent.settings.get("location", "EU"),
            "uniformBucketLevelAccess": True,
            "publicAccessPrevention": "enforced",
            "forceDestroy": delete_at_end,
            "labels": {"agent": agent.name},
        },
    )
    bucket["metadata"]["annotations"] = {_EXTERNAL_NAME: agent.bucket}
    return {"apiVersion": _STORAGE, "kind": "Bucket", **bucket}


def _account(agent: Agent) -> dict[str, Any]:
    account = _managed(
        agent,
        "account",
        forProvider={
            "project": agent.spec["projectId"],
            "displayName": f"Agent {agent.name}",
        },
    )
    account["metadata"]["annotations"] = {_EXTERNAL_NAME: f"agent-{agent.name}"}
    return {"apiVersion": _CLOUD, "kind": "ServiceAccount", **account}


def _key(agent: Agent) -> dict[str, Any]:
    return {
        "apiVersion": _CLOUD,
        "kind": "ServiceAccountKey",
        **_managed(
            agent,
            "account-key",
            forProvider={"serviceAccountIdRef": {"name": "account"}},
            writeConnectionSecretToRef={"name": KEY_SECRET},
        ),
    }


def _member(agent: Agent, name: str, bucket: str, role: str) -> dict[str, Any]:
    member = _managed(
        agent,
        name,
        forProvider={
            "bucket": bucket,
            "role": f"roles/storage.{role}",
            "member": f"serviceAccount:{agent.account_email}",
        },
    )
    if name == "reader":  # two of them exist for a moment when the bucket changes
        del member["metadata"]["name"]
        member["metadata"]["generateName"] = "reader-"
    return {"apiVersion": _STORAGE, "kind": "BucketIAMMember", **member}
