"""The connection Secret of a legacy XR: Crossplane refers to it before it calls a function."""

from __future__ import annotations

from typing import Any

import pytest

from compositions.composed import PipelineStep, World
from compositions.composition_choice import choose, connection_namespace
from compositions.simulation import SimulatedWorld, simulate
from compositions.station import Selector, StationRequest, StationResponse
from ground.objects.kube_objects import Manifest

UID = "11111111-0000-0000-0000-000000000000"
COMPOSITION: Manifest = {
    "apiVersion": "apiextensions.crossplane.io/v1",
    "kind": "Composition",
    "metadata": {"name": "lab", "uid": "of-lab"},
    "spec": {
        "compositeTypeRef": {"apiVersion": "lab.example.org/v1", "kind": "XLab"},
        "writeConnectionSecretsToNamespace": "secrets",
    },
}


def xrd(version: str) -> Manifest:
    return {
        "apiVersion": f"apiextensions.crossplane.io/{version}",
        "kind": "CompositeResourceDefinition",
        "spec": {"group": "lab.example.org", "names": {"kind": "XLab"}},
    }


def xr(**spec: Any) -> Manifest:
    head = {"apiVersion": "lab.example.org/v1", "kind": "XLab"}
    return {**head, "metadata": {"name": "one", "uid": UID}, "spec": spec}


def lookup(selector: Selector) -> list[Manifest]:
    owner = {"kind": "Composition", "name": "lab", "uid": "of-lab", "controller": True}
    revision = {
        "metadata": {"name": "lab-1", "ownerReferences": [owner]},
        "spec": {**COMPOSITION["spec"], "revision": 1},
    }
    return [COMPOSITION if selector.kind == "Composition" else revision]


OWN = {"name": "mine", "namespace": "home"}


@pytest.mark.parametrize(
    ("order", "version", "written"),
    [
        (xr(), "v1", {"name": UID, "namespace": "secrets"}),
        (xr(writeConnectionSecretToRef=OWN), "v1", None),
        (xr(), "v2", None),
    ],
    ids=["a legacy XR", "one that names its own", "a modern XR"],
)
def test_the_choice_refers_a_legacy_xr_to_its_connection_secret(
    order: Manifest, version: str, written: object
) -> None:
    chosen = choose(order, xrd(version), lookup, lambda names: names[0])

    assert chosen.error == ""
    assert chosen.machinery.get("writeConnectionSecretToRef") == written


def test_functions_see_the_reference_in_a_simulation() -> None:
    seen = []

    def function(request: StationRequest) -> StationResponse:
        seen.append(request.xr["spec"].get("writeConnectionSecretToRef"))
        return StationResponse.to(request)

    around = SimulatedWorld(connection=connection_namespace(xrd("v1"), COMPOSITION))
    simulate(xr(), [PipelineStep("one", "lab")], World({"lab": function}), around)

    assert seen[0] == {"name": UID, "namespace": "secrets"}
