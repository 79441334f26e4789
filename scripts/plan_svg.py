"""
Draw docs/plan.svg: what another dataset and budget do to an agent as ``make demo-agents`` has one.

The pack's own stations run here, without a cluster, so the picture is the same everywhere;
``--check`` compares.
"""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

from orderkit.adapters.folders.pack_folder import read_folder
from orderkit.adapters.folders.station_folder import load_stations
from orderkit.core.kit.pack import read_pack
from orderkit.core.objects.kube_objects import Manifest
from orderkit.core.plan import Plan, assemble, compare
from orderkit.core.plan.graph import graph_of
from orderkit.core.plan.graph_svg import to_svg
from orderkit.flows.plan.published_pack import workshop_of

ROOT = Path(__file__).parents[1]
PICTURE, PACK = ROOT / "docs" / "plan.svg", ROOT / "packs" / "agents"
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


def plan() -> Plan:
    """Return the plan that is drawn."""
    catalog = (
        dataset("california-housing", "California Housing"),
        dataset("spotify-tracks", "Tracks"),
    )
    bare = workshop_of(read_pack(read_folder(PACK)), load_stations(PACK))
    workshop = replace(bare, existing=catalog)
    wanted = agent(datasetRef={"name": "spotify-tracks"}, budgetUsd=8)
    before = assemble(agent(), workshop)
    return compare(before, assemble(wanted, workshop, observed=before.observed))


def main(arguments: list[str]) -> int:
    wanted = to_svg(graph_of(plan()))
    if "--check" in arguments:
        if PICTURE.is_file() and PICTURE.read_text() == wanted:
            return 0
        print(f"{PICTURE.name} is out of date: run scripts/plan_svg.py", file=sys.stderr)
        return 1
    PICTURE.write_text(wanted)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
