"""What providers make of managed resources, as simulations and twins show it."""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compositions.composed import PipelineStep, World
from compositions.managed_state import (
    ManagedKinds,
    ManagedValues,
    assigned_name,
    at_provider,
    password_of,
    replacement_refusal,
    replacements,
)
from compositions.simulation import SimulatedWorld, Simulation, simulate
from compositions.station import StationRequest, StationResponse
from ground.objects.kube_objects import EXTERNAL_NAME, Manifest, condition, dig
from ground.objects.values import ABSENT
from kubeschema.known import Behaviour

GROUP = "net.aws.m.upbound.io"
SCHEMA = b"""
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: machines.net.aws.m.upbound.io}
spec:
  group: net.aws.m.upbound.io
  scope: Namespaced
  names: {kind: Machine, plural: machines}
  versions:
    - name: v1beta1
      schema:
        openAPIV3Schema:
          properties:
            spec:
              properties:
                forProvider:
                  type: object
                  properties: {region: {type: string}, size: {type: string}}
            status:
              properties:
                atProvider:
                  type: object
                  properties: {id: {type: string}, arn: {type: string}, region: {type: string},
                               host: {type: string}, size: {type: string}}
"""
BEHAVIOUR = b"""
Machine.net.aws.m.upbound.io:
  externalName: assigned
  identifier: "i-0{hex16}"
  observed: {host: "{name}.{region}.example.org", secret: "{password}"}
"""
PACK = {
    PurePosixPath("pack.yaml"): b"",
    PurePosixPath("schemas/machines.yaml"): SCHEMA,
    PurePosixPath("schemas/behaviour.yaml"): BEHAVIOUR,
}


def machine(**for_provider: Any) -> Manifest:
    return {
        "apiVersion": f"{GROUP}/v1beta1",
        "kind": "Machine",
        "metadata": {"name": "one", "uid": "u-1"},
        "spec": {"forProvider": for_provider},
    }


def test_a_known_kind_shows_what_its_schema_declares() -> None:
    made = ManagedKinds.of_pack(PACK).made(machine(region="eu-1"))

    name = made["metadata"]["annotations"][EXTERNAL_NAME]
    assert name.startswith("i-0")
    assert made["status"]["atProvider"] == {
        "id": name,
        "arn": f"arn:aws:net:eu-1:123456789012:machine/{name}",
        "region": "eu-1",
        "host": "one.eu-1.example.org",
    }


@pytest.mark.parametrize(
    ("group", "identifiers"),
    [
        ("iam.aws.upbound.io", {"arn": "arn:aws:iam:eu-1:123456789012:role/one"}),
        ("things.example.org", {}),
    ],
)
def test_a_kind_without_a_schema_shows_the_identifiers_of_its_cloud(
    group: str, identifiers: dict[str, str]
) -> None:
    role = {"apiVersion": f"{group}/v1", "kind": "Role", "metadata": {"name": "one"}}
    values = ManagedValues(role, "one", for_provider={"region": "eu-1"})

    shown = at_provider({}, Behaviour(), values)

    assert shown == {"region": "eu-1", "id": "one", **identifiers}


def test_an_unknown_kind_is_left_as_it_is() -> None:
    other = {**machine(), "kind": "Other"}

    assert ManagedKinds.of_pack(PACK).made(other) is other


@given(st.text(max_size=20), st.text(max_size=20))
def test_assigned_names_follow_from_the_seed_alone(seed: str, other: str) -> None:
    behaviour = Behaviour(external_name="assigned", identifier="a-{hex8}-{digits4}")
    values = machine()

    names = [assigned_name(behaviour, ManagedValues(values), text) for text in (seed, seed, other)]

    assert names[0] == names[1]
    assert (names[0] == names[2]) is (seed == other)
    assert len(names[0]) == len("a-") + 8 + 1 + 4


def test_a_password_is_the_same_in_every_process_and_another_for_everybody() -> None:
    other = {**machine(), "metadata": {"name": "one", "uid": "u-2"}}

    assert password_of(machine()) == "twin-1f5a1f54a7d2b37ca65c5102"
    assert password_of(machine()) != password_of(other)


@pytest.mark.parametrize(
    ("old", "new", "changed"),
    [
        ({"image": "a"}, {"image": "b"}, [("image", "a", "b")]),
        ({"image": "a"}, {"image": "a", "size": "b"}, []),
        ({"image": "a"}, {}, []),
        ({}, {"image": "b"}, [("image", ABSENT, "b")]),
        ({"disk": [{"key": "a"}]}, {"disk": [{"key": "b"}]}, [("disk.key", ["a"], ["b"])]),
        ({"disk": [{"size": 1}]}, {"disk": [{"size": 2}]}, []),
        ({"disk": "text"}, {"disk": {"key": "b"}}, [("disk.key", ABSENT, "b")]),
    ],
)
def test_what_only_a_replacement_changes(old: Any, new: Any, changed: list[Any]) -> None:
    assert list(replacements(("image", "disk.key"), old, new)) == changed


def test_a_refusal_is_the_providers_own_and_bounded() -> None:
    refusal = replacement_refusal("rootDisk.kmsKeyId", "a" * 10_000, ["b"])

    assert 'the argument "root_disk.kms_key_id" from "aaa' in refusal
    assert len(refusal) < 2_000


def station(request: StationRequest) -> StationResponse:
    """Compose a machine; show its identifier, as a kit does."""
    response = StationResponse.to(request)
    response.want("machine", machine(region="eu-1"))
    shown = dig(request.observed_resource("machine") or {}, "status", "atProvider", "id")
    if shown:
        response.merge_status({"id": shown})
    return response


def simulated(**around: Any) -> Simulation:
    xr = {"apiVersion": "example.org/v1", "kind": "XDesk", "metadata": {"name": "desk"}, "spec": {}}
    steps = [PipelineStep("make", "function-make", {})]
    return simulate(xr, steps, World({"function-make": station}), SimulatedWorld(**around))


def test_a_simulation_gives_what_a_twin_would_give() -> None:
    result = simulated(managed=ManagedKinds.of_pack(PACK))

    assert result.final.status["id"].startswith("i-0")
    assert simulated().final.status == {}


@pytest.mark.parametrize(
    ("failure", "synced", "text"), [("quota", "False", "QuotaExceeded"), ("slow", "True", "")]
)
def test_a_simulation_fails_as_asked(failure: str, synced: str, text: str) -> None:
    result = simulated(failures={"machine": failure}, managed=ManagedKinds.of_pack(PACK))

    seen = condition(result.observed["machine"], "Synced") or {}
    assert (seen["status"], text in seen["message"]) == (synced, True)
    assert (condition(result.observed["machine"], "Ready") or {})["status"] == "False"
    assert "id" not in result.final.status
