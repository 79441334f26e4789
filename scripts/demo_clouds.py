"""
Tell the stories of three packs on embedded platforms, with twins of the clouds.

A workspace with a GPU, an application with its own cluster and database, a service with its
micro-frontends, and clusters on three clouds. Every line was checked at the cluster or the forge;
the first expectation that does not hold ends it. Nothing leaves this machine.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from orderkit.controllers import Kind, ObjectKey
from orderkit_standins.testing import Story, TrialPlatform, expect, trial_platform, wait

PACKS = Path(__file__).parents[1] / "packs"
TEAM = "vision"
NAMESPACE = f"team-{TEAM}"
PUBLIC_KEY = (
    "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIDemoKeyOfNobodyDemoKeyOfNobodyDemoKeyOf eve@laptop"
)
WORKSPACE = Kind("platform.acme.io", "v1alpha1", "GpuDevWorkspace")
APPLICATION_ENVIRONMENT = Kind("platform.acme.io", "v1alpha1", "ApplicationEnvironment")
UNIFIED_ENVIRONMENT = Kind("platform.acme.com", "v1alpha1", "UnifiedEnvironment")
CLUSTER = Kind("myplatform.io", "v1alpha1", "XCluster")
CLOUD = Kind("cloud.embedded.orderkit.dev", "v1alpha1", "ExternalResource")
"""What a twin's cloud has."""


class Site:
    """One pack on a platform of its own."""

    def __init__(self, story: Story, platform: TrialPlatform) -> None:
        self.story, self.platform = story, platform

    def status(self, xr: ObjectKey) -> dict[str, Any]:
        """Return the status of an XR."""
        status: dict[str, Any] = (self.platform.cluster.get(xr) or {}).get("status") or {}
        return status

    def until(self, xr: ObjectKey, what: str, holds: Callable[[dict[str, Any]], bool]) -> Any:
        """Wait until an XR's status is as it should be; return it."""
        return wait(what, lambda: self.status(xr), holds)

    def end(self, order: str, xr: ObjectKey) -> None:
        """End an order, and check that nothing of it is left, in the cloud either."""
        count = self.platform.end(order)
        expect(self.platform.cluster.get(xr) is None, f"{order} is gone")
        expect(order not in self.platform.orders(), "the ledger does not have it any more")
        left = [thing["spec"]["externalName"] for thing in self.platform.cluster.list(CLOUD).items]
        expect(not left, f"nothing is left in the cloud: {left}")
        self.story.stage("end", f"{order}: {count} objects are gone, and nothing is in the cloud")


def workspaces(site: Site) -> None:
    """Tell document 002: a machine with a GPU."""
    order = site.platform.order(
        "gpuworkspace",
        {
            "name": "eve",
            "team": TEAM,
            "owner": "user:default/eve",
            "publicKey": PUBLIC_KEY,
            "sshFrom": '["203.0.113.0/24"]',
        },
    )
    xr = ObjectKey(WORKSPACE, order.id, NAMESPACE)
    status = site.until(xr, "an address", lambda now: bool(now.get("sshCommand")))
    site.story.stage("workspace", f"{status['instanceId']}: {status['sshCommand']}")
    site.platform.change(order.id, "instanceType", "g5.xlarge")
    after = site.until(
        xr,
        "another machine type",
        lambda now: (now["phase"], now.get("instanceType")) == ("Ready", "g5.xlarge"),
    )
    expect(after["instanceId"] == status["instanceId"], "it is the same machine")
    site.story.stage("larger", f"{after['instanceId']} is a {after['instanceType']} now")
    site.platform.change(order.id, "running", value=False)
    stopped = site.until(xr, "it stopped", lambda now: now["phase"] == "Stopped")
    expect(stopped["instanceId"] == status["instanceId"], "the machine still exists")
    expect(not stopped.get("sshCommand"), "there is no address to connect to")
    site.story.stage("stop", f"{stopped['instanceId']} is stopped and kept; nobody can connect")
    site.end(order.id, xr)


def environments(site: Site) -> None:
    """Tell documents 000 and 001: an application's environment, and a squad's."""
    order = site.platform.order(
        "appenvironment", {"name": "feature-x", "team": TEAM, "nodeSize": "small"}
    )
    xr = ObjectKey(APPLICATION_ENVIRONMENT, order.id, NAMESPACE)
    status = site.until(xr, "all addresses", lambda now: bool(now.get("bucketUrl")))
    endpoints = ", ".join(str(status[name]) for name in ("gkeEndpoint", "dbEndpoint", "bucketUrl"))
    site.story.stage("environment", endpoints)
    site.end(order.id, xr)
    squad = site.platform.order(
        "unifiedenvironment",
        {
            "environment": "payments",
            "squad": TEAM,
            "frontends": '["checkout", "shop"]',
            "backend": '{"image": "registry.example.org/payments:1.4.2"}',
            "database": '{"service": "rds", "size": "small"}',
        },
    )
    xr = ObjectKey(UNIFIED_ENVIRONMENT, "payments")
    status = site.until(xr, "a backend", lambda now: bool(now.get("backendUrl")))
    site.story.stage("service", f"{status['backendUrl']}, buckets {status['bucketName']}")
    site.end(squad.id, xr)


def clusters(site: Site) -> None:
    """Tell document 004: one form, three clouds."""
    for cloud, location in (("gcp", "eu-west"), ("aws", "eu-central"), ("azure", "us-east")):
        order = site.platform.order(
            "cluster",
            {"cluster_name": f"try-{cloud}", "owner": TEAM, "cloud": cloud, "location": location},
        )
        xr = ObjectKey(CLUSTER, order.id, NAMESPACE)
        status = site.until(xr, "an endpoint", lambda now: bool(now.get("clusterEndpoint")))
        site.story.stage(cloud, f"Kubernetes {status['version']} at {status['clusterEndpoint']}")
        site.end(order.id, xr)


STORIES: tuple[tuple[str, str, Callable[[Site], None], dict[str, str]], ...] = (
    ("workspaces", "A workspace with a GPU", workspaces, {}),
    (
        "environments",
        "Environments for an application and for a squad",
        environments,
        {"PROJECT_ID": "acme-lab", "BUCKET_PREFIX": "acme"},
    ),
    ("clusters", "Clusters on three clouds", clusters, {"PROJECT_ID": "acme-lab"}),
)


def main() -> int:
    """Tell all stories; 1 if an expectation does not hold."""
    with tempfile.TemporaryDirectory(prefix="orderkit-demo-") as folder:
        for name, headline, tell, values in STORIES:
            story = Story(Path(folder) / name, print)
            story.headline(headline)
            with trial_platform(
                story.folder,
                PACKS / name,
                teams=(TEAM,),
                requester="user:default/eve",
                values=values,
            ) as platform:
                tell(Site(story, platform))
            story.end()
    return 0


if __name__ == "__main__":
    sys.exit(main())
