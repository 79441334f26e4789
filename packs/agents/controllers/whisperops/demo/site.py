"""The platform, bucket and controllers of the demo, and questions its stages ask of them."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from orderkit.controllers import (
    CONFIG_MAP,
    Cluster,
    Kind,
    Manifest,
    ObjectKey,
    RepoId,
    condition,
    dig,
    metadata,
)
from orderkit_standins.testing import TrialPlatform, expect, wait
from whisperops.buckets import source_of
from whisperops.building import build_meter, build_watcher
from whisperops.comparing import LossRule
from whisperops.demo.counters import Counters
from whisperops.demo.kagent import DEPLOYMENT
from whisperops.metering import Meter
from whisperops.records import LARGEST_BYTES, XDATASET
from whisperops.watching import Watcher

TEAM, AGENT = "ae86", "housing-bot"
ORDER, AGENT_NAMESPACE = f"datasetagent-{AGENT}", f"agent-{AGENT}"
REQUESTER = "user:default/demo"
PRICES = "crossplane-system/whisperops-pricing"
"""The price table of budgets that name none; the layer of controllers delivers it."""
MODEL = "gemini-2.5-flash"
XR = ObjectKey(Kind("whisperops.io", "v1alpha1", "XDatasetAgent"), AGENT)
BUDGET = ObjectKey(Kind("whisperops.io", "v1alpha1", "XAgentBudget"), AGENT, AGENT_NAMESPACE)
NAMESPACE = Kind("", "v1", "Namespace")
EXTERNAL = Kind("cloud.embedded.orderkit.dev", "v1alpha1", "ExternalResource")
_LIST_TIMEOUT_S = 120.0


@dataclass(frozen=True)
class Site:
    """The platform, the bucket, the token counters, and the controllers that use them."""

    platform: TrialPlatform
    bucket: Path
    counters: Counters
    loss_rule: LossRule = field(default_factory=lambda: LossRule(2, 3, 10))

    @property
    def cluster(self) -> Cluster:
        return self.platform.cluster

    @cached_property
    def watcher(self) -> Watcher:
        """The dataset-watcher, as ``python -m whisperops watch`` builds it."""
        url = self.bucket.as_uri()
        options = {
            "platform": str(self.platform.file),
            "bucket": url,
            "timeout_s": _LIST_TIMEOUT_S,
            "largest_bytes": LARGEST_BYTES,
            "owner": "group:default/platform",
            "namespace": "whisperops",
            "passes": self.loss_rule.passes,
            "most": self.loss_rule.most,
            "percent": self.loss_rule.most_percent,
            "registers": True,
        }
        return build_watcher(options, source_of(url), RepoId("platform", "datasets"))[0]

    @cached_property
    def meter(self) -> Meter:
        """The spend meter, as ``python -m whisperops meter`` builds it."""
        options = {
            "platform": str(self.platform.file),
            "prices": PRICES,
            "prometheus": self.counters.url,
            "tenant": "",
            "allow_http": False,
        }
        return build_meter(options, "")[0]

    def config_map(self, name: str) -> Manifest:
        return self.cluster.get(ObjectKey(CONFIG_MAP, name, AGENT_NAMESPACE)) or {}

    def deployment(self, name: str) -> Manifest:
        return self.cluster.get(ObjectKey(DEPLOYMENT, name, AGENT_NAMESPACE)) or {}

    def gate_status(self) -> int:
        """Ask the service what a chat asks before each request."""
        return self.platform.gate_status("agentbudget", AGENT, namespace=AGENT_NAMESPACE)


def registered_datasets(site: Site) -> dict[str, bool]:
    """Return the datasets of the registry, and whether each is ready."""
    datasets = site.cluster.list(XDATASET).items
    return {metadata(m)["name"]: bool(dig(m, "status", "ready")) for m in datasets}


def agent_xr(site: Site) -> Manifest:
    """Return the agent's XR, empty if it is gone."""
    return site.cluster.get(XR) or {}


def budget_status(site: Site) -> dict[str, Any]:
    """Return the status of the agent's budget."""
    status: dict[str, Any] = dig(site.cluster.get(BUDGET) or {}, "status", default={})
    return status


def is_settled(xr: Manifest, ready: str) -> bool:
    """Return whether Synced is True and Ready is `ready`, both for the newest generation."""
    newest = metadata(xr).get("generation")
    return all(
        (entry := condition(xr, type_)) is not None
        and entry["status"] == status
        and entry.get("observedGeneration") == newest
        for type_, status in (("Synced", "True"), ("Ready", ready))
    )


def wait_ready(site: Site, ready: str = "True") -> Manifest:
    """Wait until the agent is settled with this readiness; return its XR."""
    xr = wait(
        f"the agent being Ready={ready}",
        lambda: agent_xr(site),
        lambda manifest: is_settled(manifest, ready),
    )
    expect(xr, "the agent is there")
    return xr


def parts(site: Site) -> dict[ObjectKey, Manifest | None]:
    """Return what the agent composes, as the cluster has it now."""
    references = dig(agent_xr(site), "spec", "crossplane", "resourceRefs", default=())
    return {key: site.cluster.get(key) for key in map(ObjectKey.from_json, references)}


def owners_of_replicas(deployment: Manifest) -> dict[str, list[str]]:
    """Return each manager that owns ``spec.replicas``, with all fields of spec that it owns."""
    owners = {}
    for entry in metadata(deployment)["managedFields"]:
        fields = dig(entry, "fieldsV1", "f:spec", default={})
        if "f:replicas" in fields:
            owners[str(entry["manager"])] = sorted(fields)
    return owners


def namespace_exists(site: Site) -> bool:
    """Return whether the agent's Namespace exists."""
    return site.cluster.get(ObjectKey(NAMESPACE, AGENT_NAMESPACE)) is not None


def cloud_resources(site: Site) -> list[str]:
    """Return what exists in the cloud, by kind and external name."""
    resources = site.cluster.list(EXTERNAL).items
    return sorted(f"{m['spec']['kind']} {m['spec']['externalName']}" for m in resources)
