"""What the demo is about, and how it looks at the platform; called by its stages."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import requests

from orderkit.cli.connecting import SECRET_HEADER, token
from orderkit.cli.demo.narration import PATIENCE_S, expect, wait
from orderkit.cli.serving.embedded_platform import Running
from orderkit.core.names import RepoId
from orderkit.core.objects.kube_objects import (
    CONFIG_MAP,
    NAMESPACE,
    Kind,
    Manifest,
    ObjectKey,
    condition,
    dig,
    metadata,
)
from orderkit.flows.platform import Platform
from orderkit.ports.cluster import Cluster
from whisperops.building import build_meter, build_watcher
from whisperops.commands import source_of
from whisperops.demo.counters import Counters
from whisperops.demo.kagent import DEPLOYMENT
from whisperops.metering import Meter
from whisperops.planning import LossRule
from whisperops.records import LARGEST_BYTES, XDATASET
from whisperops.watching import Watcher

TEAM, AGENT = "ae86", "housing-bot"
ORDER, HOME = f"datasetagent-{AGENT}", f"agent-{AGENT}"
REPO = RepoId(TEAM, ORDER)
REQUESTER = "user:default/demo"
PRICES_AT = "crossplane-system/whisperops-pricing"
"""Where a budget that names no other table looks for prices; the layer of controllers brings it."""
MODEL = "gemini-2.5-flash"
XR = ObjectKey(Kind("whisperops.io", "v1alpha1", "XDatasetAgent"), AGENT)
BUDGET = ObjectKey(Kind("whisperops.io", "v1alpha1", "XAgentBudget"), AGENT, HOME)
EXTERNAL = Kind("cloud.embedded.orderkit.dev", "v1alpha1", "ExternalResource")


@dataclass(frozen=True)
class Site:
    """The platform, the bucket, the counters, and the controllers that watch them."""

    running: Running
    settings_file: Path
    bucket: Path
    counters: Counters
    losses: LossRule = field(default_factory=lambda: LossRule(2, 3, 10))

    @property
    def platform(self) -> Platform:
        return self.running.platform

    @property
    def cluster(self) -> Cluster:
        return self.running.platform.cluster

    @cached_property
    def watcher(self) -> Watcher:
        """The dataset-watcher, as ``python -m whisperops watch`` builds it."""
        url = self.bucket.as_uri()
        options = {
            "platform": str(self.settings_file),
            "bucket": url,
            "timeout_s": PATIENCE_S,
            "largest_bytes": LARGEST_BYTES,
            "owner": "group:default/platform",
            "namespace": "whisperops",
            "passes": self.losses.passes,
            "most": self.losses.most,
            "percent": self.losses.most_percent,
            "registers": True,
        }
        return build_watcher(options, source_of(url), RepoId("platform", "datasets"))[0]

    @cached_property
    def meter(self) -> Meter:
        """The spend meter, as ``python -m whisperops meter`` builds it."""
        options = {
            "platform": str(self.settings_file),
            "prices": PRICES_AT,
            "prometheus": self.counters.url,
            "tenant": "",
            "allow_http": False,
        }
        return build_meter(options, "")[0]

    def config_map(self, name: str) -> Manifest:
        return self.cluster.get(ObjectKey(CONFIG_MAP, name, HOME)) or {}

    def deployment(self, name: str) -> Manifest:
        return self.cluster.get(ObjectKey(DEPLOYMENT, name, HOME)) or {}

    def gate(self) -> int:
        """Ask the service what a chat asks before each request."""
        settings = self.running.settings
        with requests.Session() as session:
            session.trust_env = False
            return session.get(
                f"{settings.service.url}/v1/gates/agentbudget/{AGENT}",
                params={"namespace": HOME},
                headers={SECRET_HEADER: token(settings.service)},
                timeout=PATIENCE_S,
            ).status_code


def registry(site: Site) -> dict[str, bool]:
    """Return the datasets of the registry, and whether each is ready."""
    found = site.cluster.list(XDATASET).items
    return {metadata(m)["name"]: bool(dig(m, "status", "ready")) for m in found}


def xr(site: Site) -> Manifest:
    """Return the agent, empty if it is gone."""
    return site.cluster.get(XR) or {}


def budget(site: Site) -> dict[str, Any]:
    """Return the budget's status."""
    found: dict[str, Any] = dig(site.cluster.get(BUDGET) or {}, "status", default={})
    return found


def is_settled(found: Manifest, ready: str) -> bool:
    """Say whether Synced is True and Ready is as wanted, both for the newest generation."""
    newest = metadata(found).get("generation")
    return all(
        (entry := condition(found, type_)) is not None
        and entry["status"] == status
        and entry.get("observedGeneration") == newest
        for type_, status in (("Synced", "True"), ("Ready", ready))
    )


def wait_ready(site: Site, ready: str = "True") -> Manifest:
    """Wait until the agent is settled with this readiness; return it."""
    found = wait(f"the agent being Ready={ready}", lambda: xr(site), lambda m: is_settled(m, ready))
    expect(found, "the agent is there")
    return found


def parts(site: Site) -> dict[ObjectKey, Manifest | None]:
    """Return what the agent composes, each as the cluster holds it."""
    found = dig(xr(site), "spec", "crossplane", "resourceRefs", default=())
    return {key: site.cluster.get(key) for key in map(ObjectKey.from_json, found)}


def owners_of_replicas(deployment: Manifest) -> dict[str, list[str]]:
    """Return each manager that owns ``spec.replicas``, with all fields of spec that it owns."""
    found = {}
    for entry in metadata(deployment)["managedFields"]:
        fields = dig(entry, "fieldsV1", "f:spec", default={})
        if "f:replicas" in fields:
            found[str(entry["manager"])] = sorted(fields)
    return found


def namespace_is_there(site: Site) -> bool:
    """Say whether the agent's Namespace exists."""
    return site.cluster.get(ObjectKey(NAMESPACE, HOME)) is not None


def in_the_cloud(site: Site) -> list[str]:
    """Return what exists in the cloud, by kind and external name."""
    found = site.cluster.list(EXTERNAL).items
    return sorted(f"{m['spec']['kind']} {m['spec']['externalName']}" for m in found)
