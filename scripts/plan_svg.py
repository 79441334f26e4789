"""
Draw pictures of plans.

- docs/plan.svg: what another dataset and budget do to an agent as ``make demo-agents`` has one;
- packs/clusters/docs/<cloud>.svg: a cluster on each cloud, to which a pool is added.

The pack's own stations run here, without a cluster, so the picture is the same everywhere;
``--check`` compares.
"""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

from compositions.layered_settings import ENVIRONMENT
from compositions.resource_builders import STAND_IN_SEED
from ground.objects.kube_objects import Manifest
from orderkit.adapters.folders.pack_folder import read_folder
from orderkit.adapters.folders.station_process import load_stations
from orderkit.core.kit.pack import read_pack
from orderkit.core.plan import Assembly, Plan, assemble, compare
from orderkit.core.plan.graph import graph_of
from orderkit.core.plan.graph_svg import to_svg
from orderkit.flows.composing.published_pack import workshop_of
from orderkit_workshop.check.kit_under_check import PackFacts

ROOT = Path(__file__).parents[1]
PACK, CLUSTERS = ROOT / "packs" / "agents", ROOT / "packs" / "clusters"
GROUP = "whisperops.io/v1alpha1"


def agent(**changed: Any) -> Manifest:
    """Return the order of the demo, with other fields."""
    spec = {
        "agentName": "housing-bot",
        "datasetRef": {"name": "california-housing"},
        "budgetUsd": 5,
        "description": "Answers questions about houses in California.",
        "owner": "ae86",
        "baseDomain": "agents.example.org",
        "projectId": "whisperops-demo",
    }
    meta = {"name": "housing-bot", "uid": "00000000-0000-4000-8000-000000000000"}
    return {
        "apiVersion": GROUP,
        "kind": "XDatasetAgent",
        "metadata": meta,
        "spec": spec | changed,
    }


def dataset(name: str, title: str) -> Manifest:
    """Return a dataset of the catalog."""
    return {
        "apiVersion": GROUP,
        "kind": "XDataset",
        "metadata": {"name": name},
        "spec": {"gcsPath": f"gs://{name}/{title}.csv", "displayName": title, "sizeBytes": 1992294},
        "status": {"ready": True},
    }


def agent_plan() -> Plan:
    """Return the plan of an agent."""
    catalog = (
        dataset("california-housing", "California Housing"),
        dataset("spotify-tracks", "Tracks"),
    )
    bare = workshop_of(read_pack(read_folder(PACK)), load_stations(PACK))
    workshop = replace(bare, existing=catalog)
    wanted = agent(datasetRef={"name": "spotify-tracks"}, budgetUsd=8)
    before = assemble(agent(), workshop)
    return compare(before, assemble(wanted, workshop, observed=before.observed))


def cluster(cloud: str, **changed: Any) -> Manifest:
    """Return the order of a private cluster with a domain."""
    pool = {"name": "default", "size": "medium", "minNodes": 3, "maxNodes": 10}
    spec = {
        "clusterName": "prod",
        "owner": "ae86",
        "cloud": cloud,
        "location": "eu-central",
        "planeType": "production",
        "private": True,
        "version": "1.34",
        "pools": [pool],
        "domain": "prod.example.com",
        "createDnsZones": True,
        "existing": {"mode": "none"},
        "addOns": ["cert-manager", "ingress-nginx", "monitoring"],
    }
    meta = {"name": "cluster-prod", "namespace": "team-ae86"}
    return {
        "apiVersion": "myplatform.io/v1alpha1",
        "kind": "XCluster",
        "metadata": {**meta, "uid": "00000000-0000-4000-8000-000000000001"},
        "spec": spec | changed,
    }


def cluster_plan(cloud: str) -> Plan:
    """Return the plan of a cluster that gets another pool; Usages would hide the rest."""
    pack = read_pack(read_folder(CLUSTERS))
    delivered = PackFacts(pack.files).of_kind(ENVIRONMENT)
    layers = tuple(doc.manifest for doc in delivered)
    workshop = replace(
        workshop_of(pack, load_stations(CLUSTERS)), existing=(STAND_IN_SEED, *layers)
    )
    before = without_usages(assemble(cluster(cloud), workshop))
    batch = {"name": "batch", "size": "memory", "minNodes": 1, "maxNodes": 20}
    wanted = cluster(cloud, pools=[*cluster(cloud)["spec"]["pools"], batch])
    return compare(before, without_usages(assemble(wanted, workshop, observed=before.observed)))


def without_usages(assembly: Assembly) -> Assembly:
    """Return what an order composes, without what only holds the order of its end."""
    kept = {path: part for path, part in assembly.resources.items() if part["kind"] != "Usage"}
    return replace(assembly, resources=kept)


def pictures() -> dict[Path, str]:
    """Return every picture by its file."""
    plans = {ROOT / "docs" / "plan.svg": agent_plan()}
    for cloud in ("gcp", "aws", "azure"):
        plans[CLUSTERS / "docs" / f"{cloud}.svg"] = cluster_plan(cloud)
    return {path: to_svg(graph_of(plan)) for path, plan in plans.items()}


def main(arguments: list[str]) -> int:
    outdated = {
        path: text
        for path, text in pictures().items()
        if not path.is_file() or path.read_text() != text
    }
    if "--check" in arguments:
        for path in outdated:
            print(f"{path.name} is out of date: run scripts/plan_svg.py", file=sys.stderr)
        return int(bool(outdated))
    for path, text in outdated.items():
        path.write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
