"""
The rounds of the agents' pipelines that a real Crossplane core ran too.

A case is a scenario of the pack and a moment of it: nothing observed yet, or everything
settled. XR, observed and required resources are made here, the same for both.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import yaml

from compositions.composed import Composed, World, preview_uid, root_labelled, steps_of
from compositions.pipeline import compose
from compositions.python_functions import python_functions
from compositions.simulation import SimulatedWorld, lookup_in, simulate
from ground.objects.kube_objects import Manifest, is_namespaced, metadata
from kubeschema.validate import Validator
from orderkit.adapters.folders.pack_folder import read_folder
from orderkit.adapters.folders.station_process import load_stations
from orderkit.core.kit.pack import read_pack
from yamlfiles.manifests import parse_manifests

PACK = Path(__file__).parents[2] / "packs" / "agents"
STATIONS = load_stations(PACK)
CASES = (
    "datasetagent/watched-only/new",
    "datasetagent/watched-only/settled",
    "datasetagent/bucket-to-be-deleted/settled",
    "datasetagent/dataset-vanished/new",
    "datasetagent/dataset-vanished/settled",
    "datasetagent/dataset-swapped/settled",
    "datasetagent/kagent-is-silent/settled",
    "datasetagent/paused-by-its-budget/settled",
    "datasetagent/refused/new",
    "agentbudget/over-budget/new",
    "agentbudget/over-budget/settled",
    "agentbudget/over-budget-and-only-watched/settled",
    "agentbudget/prometheus-down/settled",
    "agentbudget/new-window-and-prometheus-down/settled",
    "agentbudget/agent-not-there-yet/new",
)


@dataclass(frozen=True)
class Round:
    """One run of a pipeline, and what goes in."""

    xr: Manifest
    composition: Manifest
    observed: dict[str, Manifest]
    required: tuple[Manifest, ...]

    def run(self) -> Composed:
        """Run it with the stations of the pack, in this process."""
        world = World(
            python_functions(STATIONS),
            self.observed,
            lookup=lookup_in([*self.required, *self.observed.values(), self.xr]),
            scope_of=is_namespaced,
        )
        return compose(self.xr, steps_of(self.composition["spec"]), world)


def prepared(case: str) -> Round:
    """Return a case's round."""
    name, scenario, moment = case.split("/")
    kit = read_pack(read_folder(PACK)).kit(name)
    source = "first-order" if scenario == "refused" else scenario
    found = yaml.safe_load((PACK / "tests/kits" / name / source / "scenario.yaml").read_text())
    base = found.get("xr") or _bare(name)
    header = {"apiVersion": kit.kind.api_version, "kind": kit.kind.kind}
    xr = Validator(kit.xrd).check({**header, **base}).result
    xr = root_labelled({**xr, "status": found.get("status", {})})
    xr["metadata"] = {**metadata(xr), "uid": preview_uid(xr)}
    path = f"gitops/apis/{name}/composition.yaml"
    (composition,) = parse_manifests(path, (PACK / path).read_bytes())
    required = () if scenario == "refused" else tuple(found.get("required", ()))
    around = SimulatedWorld(required, statuses=found.get("statuses", {}))
    if moment == "new":
        return Round(xr, composition, {}, required)
    world = World(python_functions(STATIONS))
    end = simulate(xr, steps_of(composition["spec"]), world, around)
    return Round({**end.xr, "status": xr["status"]}, composition, dict(end.observed), required)


def _bare(name: str) -> Manifest:
    path = PACK / "tests/kits" / name / "watched-only" / "scenario.yaml"
    found: Manifest = yaml.safe_load(path.read_text())["xr"]
    return found
