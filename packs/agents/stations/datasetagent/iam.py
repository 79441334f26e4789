"""
Station ``render-iam``: the five parts in Google's cloud.

Rights are given on the buckets themselves, not in the project's policy: one shared policy would
grow by two members with every agent. The agent reads the bucket of its dataset and owns its own.
"""

from __future__ import annotations

from typing import Any

from orderkit.core.crossplane.station import StationRequest, StationResponse

from .agent import KEY_SECRET, Agent, started

_EXTERNAL_NAME = "crossplane.io/external-name"
_CLOUD = "cloudplatform.gcp.m.upbound.io/v1beta1"
_STORAGE = "storage.gcp.m.upbound.io/v1beta1"
_KEEP = ["Observe", "Create", "Update", "LateInitialize"]
"""Everything but Delete: the bucket outlives its agent."""


def render_iam(request: StationRequest) -> StationResponse:
    """Want bucket, account, key, and the account's rights on two buckets."""
    agent = started(request)
    if not agent.dataset:
        return agent.response
    agent.want("bucket", _bucket(agent))
    agent.want("account", _account(agent))
    agent.want("account-key", _key(agent))
    source = bucket_of(str(agent.dataset["gcsPath"]))
    # Who reads which bucket cannot be changed once granted: another bucket is another part.
    agent.want(f"reader-of-{source}", _member(agent, "reader", source, "objectViewer"))
    agent.want("bucket-owner", _member(agent, "bucket-owner", agent.bucket, "objectAdmin"))
    agent.response.merge_status({"bucket": agent.bucket})
    return agent.response


def bucket_of(path: str) -> str:
    """Return the bucket of a blob; of a file, which only a demonstration has, its folder."""
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
    forgotten = agent.spec.get("bucketOnEnd") == "delete"
    found = _managed(
        agent,
        "bucket",
        managementPolicies=["*"] if forgotten else _KEEP,
        forProvider={
            "project": agent.spec["projectId"],
            "location": agent.settings.get("location", "EU"),
            "uniformBucketLevelAccess": True,
            "publicAccessPrevention": "enforced",
            "forceDestroy": forgotten,
            "labels": {"agent": agent.name},
        },
    )
    found["metadata"]["annotations"] = {_EXTERNAL_NAME: agent.bucket}
    return {"apiVersion": _STORAGE, "kind": "Bucket", **found}


def _account(agent: Agent) -> dict[str, Any]:
    found = _managed(
        agent,
        "account",
        forProvider={
            "project": agent.spec["projectId"],
            "displayName": f"Agent {agent.name}",
        },
    )
    found["metadata"]["annotations"] = {_EXTERNAL_NAME: f"agent-{agent.name}"}
    return {"apiVersion": _CLOUD, "kind": "ServiceAccount", **found}


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
    found = _managed(
        agent,
        name,
        forProvider={
            "bucket": bucket,
            "role": f"roles/storage.{role}",
            "member": f"serviceAccount:{agent.account_email}",
        },
    )
    if name == "reader":  # two of them exist for a moment when the bucket changes
        del found["metadata"]["name"]
        found["metadata"]["generateName"] = "reader-"
    return {"apiVersion": _STORAGE, "kind": "BucketIAMMember", **found}
