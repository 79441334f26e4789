"""
Station ``render-iam``: the five parts in Google's cloud.

Rights are granted on the buckets themselves, not in the project's policy, which would grow by two
members with every agent. The agent may read its dataset's bucket and owns its own bucket.
"""

from __future__ import annotations

from orderkit.stations import KEEP, MANAGE, Manifest, StationRequest, StationResponse, managed

from .agent import KEY_SECRET, Agent, start

_CLOUD = "cloudplatform.gcp.m.upbound.io/v1beta1"
_STORAGE = "storage.gcp.m.upbound.io/v1beta1"


def render_iam(request: StationRequest) -> StationResponse:
    """Want bucket, account, key, and the account's rights on two buckets."""
    agent = start(request)
    if not agent.dataset:
        return agent.response
    want = agent.parts.want
    want("bucket", _bucket(agent))
    want("account", _account(agent))
    want("account-key", _key(agent))
    source = bucket_of(str(agent.dataset["gcsPath"]))
    # A grant cannot be moved to another bucket, so each bucket has a part of its own.
    # Two of them exist for a moment when the bucket changes, so Kubernetes chooses the name.
    reader = {"metadata": {"generateName": "reader-"}}
    want(f"reader-of-{source}", {**_member(agent, source, "objectViewer"), **reader})
    want("bucket-owner", _member(agent, agent.bucket, "objectAdmin"))
    agent.response.merge_status({"bucket": agent.bucket})
    return agent.response


def bucket_of(path: str) -> str:
    """Return the bucket of a blob; for a file (in demos only), its folder."""
    scheme, _, rest = path.partition("://")
    folders = [folder for folder in rest.split("/")[:-1] if folder]
    if not folders:
        return "files"
    return folders[-1] if scheme == "file" else folders[0]


def _provider(agent: Agent) -> str:
    return str(agent.settings.get("providerConfig", "gcp"))


def _bucket(agent: Agent) -> Manifest:
    delete_at_end = agent.spec.get("bucketOnEnd") == "delete"
    settings = {
        "project": agent.spec["projectId"],
        "location": agent.settings.get("location", "EU"),
        "uniformBucketLevelAccess": True,
        "publicAccessPrevention": "enforced",
        "forceDestroy": delete_at_end,
        "labels": {"agent": agent.name},
    }
    return managed(
        _STORAGE,
        "Bucket",
        settings,
        provider_config=_provider(agent),
        policies=MANAGE if delete_at_end else KEEP,
        external_name=agent.bucket,
    )


def _account(agent: Agent) -> Manifest:
    settings = {"project": agent.spec["projectId"], "displayName": f"Agent {agent.name}"}
    name, provider = f"agent-{agent.name}", _provider(agent)
    return managed(_CLOUD, "ServiceAccount", settings, provider_config=provider, external_name=name)


def _key(agent: Agent) -> Manifest:
    return managed(
        _CLOUD,
        "ServiceAccountKey",
        {"serviceAccountIdRef": agent.parts.reference("account")},
        provider_config=_provider(agent),
        connection_secret=KEY_SECRET,
    )


def _member(agent: Agent, bucket: str, role: str) -> Manifest:
    settings = {
        "bucket": bucket,
        "role": f"roles/storage.{role}",
        "member": f"serviceAccount:{agent.account_email}",
    }
    return managed(_STORAGE, "BucketIAMMember", settings, provider_config=_provider(agent))
