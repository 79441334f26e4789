"""A pack's ``schemas/``: compact CRDs of managed resources, and what they do not say."""

from __future__ import annotations

import copy
from pathlib import PurePosixPath
from typing import Any

import pytest
import yaml

from ground.errors import InvalidInputError
from ground.objects.kube_objects import Manifest
from kubeschema.known import Reference, completed_crd, read_behaviours, read_crds, read_layer

SUBNETS = b"""
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: subnets.net.example.m.upbound.io}
spec:
  group: net.example.m.upbound.io
  scope: Namespaced
  names: {kind: Subnet, plural: subnets}
  versions:
    - name: v1beta1
      schema:
        openAPIV3Schema:
          properties:
            spec:
              x-orderkit-parameters: [cidr]
              properties:
                forProvider:
                  type: object
                  required: [region]
                  properties:
                    region: {type: string}
                    cidr: {type: string}
                    networkId: {type: string}
                    networkIdRef: {type: object}
                    networkIdSelector: {type: object}
                    groupIdRefs: {type: array}
                    keySecretRef: {type: object}
"""
PATH = PurePosixPath("schemas/net.example.m.upbound.io_subnets.yaml")
BEHAVIOUR = PurePosixPath("schemas/behaviour.yaml")


def subnet(**spec: Any) -> Manifest:
    for_provider = {"region": "eu-1", "cidr": "10.0.0.0/24", **spec.pop("forProvider", {})}
    return {
        "apiVersion": "net.example.m.upbound.io/v1beta1",
        "kind": "Subnet",
        "metadata": {"name": "a"},
        "spec": {"forProvider": for_provider, **spec},
    }


def problems(manifest: Manifest) -> list[str]:
    known_kind = read_layer({PATH: SUBNETS})["net.example.m.upbound.io", "Subnet"]
    report = known_kind.validator.check(manifest)
    return [f"{finding.path}: {finding.message}" for finding in report.findings]


@pytest.mark.parametrize(
    "spec",
    [
        {"managementPolicies": ["Observe"], "writeConnectionSecretToRef": {"name": "a"}},
        {"providerConfigRef": {"kind": "ProviderConfig", "name": "a"}},
        {"forProvider": {"networkIdRef": {"name": "a", "policy": {"resolve": "Always"}}}},
        {"forProvider": {"networkIdSelector": {"matchControllerRef": True}}},
        {"forProvider": {"groupIdRefs": [{"name": "a", "namespace": "b"}]}},
        {"forProvider": {"keySecretRef": {"name": "a", "key": "b"}}},
        {"initProvider": {"cidr": "10.0.0.0/8"}},
    ],
)
def test_a_compact_crd_has_the_fields_of_every_managed_resource(spec: dict[str, Any]) -> None:
    assert problems(subnet(**spec)) == []


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ({"managementPolicies": ["Watch"]}, "Unsupported value"),
        ({"deletionPolicy": "Orphan"}, "unknown field"),
        ({"providerConfigRef": {"name": "a"}}, "providerConfigRef.kind: Required"),
        ({"forProvider": {"vlan": 3}}, 'unknown field "spec.forProvider.vlan"'),
        ({"forProvider": {"networkIdRef": {}}}, "networkIdRef.name: Required"),
        ({"forProvider": {"networkIdSelector": {"labels": {}}}}, "unknown field"),
        ({"forProvider": {"groupIdRefs": [{"namespace": "b"}]}}, "Required"),
        ({"forProvider": {"keySecretRef": {"name": "a"}}}, "keySecretRef.key: Required"),
        ({"initProvider": {"vlan": 3}}, "unknown field"),
    ],
)
def test_what_the_provider_does_not_know_is_refused(spec: dict[str, Any], message: str) -> None:
    assert message in "\n".join(problems(subnet(**spec)))


def test_a_parameter_may_be_missing_only_where_nothing_is_made() -> None:
    made, observed = subnet(), subnet(managementPolicies=["Observe"])
    for manifest in (made, observed):
        del manifest["spec"]["forProvider"]["cidr"]

    cidr = "spec.forProvider.cidr"
    assert problems(made) == [f"{cidr}: Invalid value: {cidr} is a required parameter"]
    assert problems(observed) == []


def test_a_parameter_with_a_name_that_cel_reserves_is_escaped_in_its_rule() -> None:
    compact = yaml.safe_load(SUBNETS)
    spec = compact["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]
    spec["x-orderkit-parameters"] = ["namespace"]

    version = completed_crd(compact)["spec"]["versions"][0]

    (rule,) = version["schema"]["openAPIV3Schema"]["properties"]["spec"]["x-kubernetes-validations"]
    assert "has(self.forProvider.__namespace__)" in rule["rule"]
    assert rule["message"] == "spec.forProvider.namespace is a required parameter"


def test_a_completed_crd_is_one_of_a_cluster_and_stays_as_it_is() -> None:
    compact = yaml.safe_load(SUBNETS)
    before = copy.deepcopy(compact)

    crd = completed_crd(compact)

    assert compact == before
    assert completed_crd(crd) == crd == read_crds({PATH: SUBNETS, BEHAVIOUR: b"{}"})[0]
    version = crd["spec"]["versions"][0]
    assert version["served"]
    assert version["storage"]
    assert version["subresources"] == {"status": {}}
    schema = version["schema"]["openAPIV3Schema"]["properties"]
    assert {"atProvider", "conditions"} <= schema["status"]["properties"].keys()


def test_the_cluster_scoped_family_has_its_own_fields() -> None:
    text = SUBNETS.replace(b".m.", b".").replace(b"Namespaced", b"Cluster")
    legacy = subnet(
        deletionPolicy="Orphan",
        providerConfigRef={"name": "a"},
        writeConnectionSecretToRef={"name": "a", "namespace": "b"},
    )
    legacy["apiVersion"] = "net.example.upbound.io/v1beta1"

    known_kind = read_layer({PATH: text})["net.example.upbound.io", "Subnet"]

    assert not known_kind.validator.check(legacy).findings


def test_other_definitions_are_left_alone() -> None:
    text = SUBNETS.replace(b"forProvider:", b"size:")
    crd = yaml.safe_load(text)

    assert completed_crd(crd) is crd


def test_behaviour_says_what_a_crd_does_not() -> None:
    text = b"""
    Subnet.net.example.m.upbound.io:
      externalName: assigned
      identifier: "subnet-0{hex16}"
      replaces: [cidr, placement.zone]
      references: {networkId: {kind: Network.net.example.m.upbound.io, field: arn}}
      observed: {id: "{externalName}", state: available}
      connection: {endpoint: "{name}.{region}.example.org", password: "{password}"}
      delay: 0.5s
    """

    behaviour = read_behaviours({BEHAVIOUR: text})["net.example.m.upbound.io", "Subnet"]

    assert behaviour.assigned
    assert behaviour.identifier == "subnet-0{hex16}"
    assert behaviour.replaces == ("cidr", "placement.zone")
    reference = behaviour.references["networkId"]
    assert reference == Reference("Network.net.example.m.upbound.io", "arn")
    assert reference.group_kind == ("net.example.m.upbound.io", "Network")
    assert behaviour.delay_s == 0.5
    assert read_behaviours({}) == {}


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ("{replace: [cidr]}", "behaviour.yaml:1: S.a.example.org: 'replace' is not a known key"),
        ("{externalName: cloud}", "is not one of"),
        ("{replaces: ['a b']}", "does not match"),
        ("{delay: soon}", "does not match"),
        ("{identifier: 'i-{hexx}'}", "'{hexx}' is not a placeholder"),
        ("{observed: {a: [{b: '{nmae}'}]}}", "observed.a.0.b: '{nmae}' is not a placeholder"),
    ],
)
def test_a_wrong_behaviour_is_named_with_its_line(entry: str, message: str) -> None:
    with pytest.raises(InvalidInputError) as refusal:
        read_behaviours({BEHAVIOUR: f"S.a.example.org: {entry}".encode()})

    assert message in str(refusal.value)
