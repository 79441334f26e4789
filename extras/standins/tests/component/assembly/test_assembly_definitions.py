"""XRDs: established, broken, changed and deleted."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest

from ground.objects.kube_objects import CONFIG_MAP, CRD, XRD, Kind, ObjectKey, condition, metadata
from kubeschema.xrd import XRD_KIND

if TYPE_CHECKING:
    from extras.standins.tests.component.assembly.conftest import Lab

APP = Kind("lab.example.org", "v1", "App")


def kind(name: str) -> Kind:
    return Kind("defs.example.org", "v1", name)


def established(lab: Lab, name: str) -> bool:
    xrd = lab.get(XRD, name) or {}
    found = condition(xrd, "Established") or {}
    return (
        found.get("status") == "True" and found["observedGeneration"] == metadata(xrd)["generation"]
    )


def test_an_established_xrd_says_so_at_its_generation_and_names_its_kind(lab: Lab) -> None:
    lab.wait("apps", lambda: established(lab, "apps.lab.example.org"))

    xrd = lab.get(XRD, "apps.lab.example.org") or {}
    assert (condition(xrd, "Established") or {})["reason"] == "WatchingCompositeResource"
    assert xrd["status"]["controllers"]["compositeResourceType"] == {
        "apiVersion": "lab.example.org/v1",
        "kind": "App",
    }


def test_an_xrd_is_served_in_both_versions(lab: Lab) -> None:
    for version in (XRD, XRD_KIND):
        found = lab.get(version, "apps.lab.example.org") or {}
        assert found["apiVersion"] == version.api_version
        assert found["spec"]["scope"] == "Cluster"


def test_a_v1_definition_without_scope_makes_a_legacy_kind_that_works(lab: Lab) -> None:
    legacy = kind("Legacy")
    definition = lab.xrd(legacy, "legacies")
    definition["apiVersion"] = XRD_KIND.api_version
    del definition["spec"]["scope"]
    lab.apply(lab.composition("legacies", legacy))
    lab.says["old"] = lambda _, r: r.want("cm", lab.config_map("legacy"))

    lab.apply(definition)
    lab.wait("kind Legacy", lambda: lab.cluster.serves(legacy))
    lab.apply(
        {
            "apiVersion": legacy.api_version,
            "kind": "Legacy",
            "metadata": {"name": "old"},
            "spec": {"size": 1},
        }
    )

    xr = lab.wait_ready("old", kind=legacy)
    assert xr["spec"]["compositionRef"] == {"name": "legacies"}
    assert xr["spec"]["resourceRefs"][0]["name"] == "legacy"


@dataclass(frozen=True)
class Broken:
    reason: str
    name: str
    text: str
    spec: dict[str, Any] = field(default_factory=dict)
    referenceable: bool = True
    schema: dict[str, Any] = field(default_factory=dict)


BROKEN = [
    Broken(
        "the name is not plural.group",
        "foo.defs.example.org",
        'metadata.name: Invalid value: "foo.defs.example.org": '
        'must be spec.names.plural+"."+spec.group',
    ),
    Broken(
        "no version is referenceable",
        "nones.defs.example.org",
        "must have exactly one version marked as storage version",
        spec={"names": {"kind": "None", "plural": "nones"}},
        referenceable=False,
    ),
    Broken(
        "the schema is not structural",
        "loose.defs.example.org",
        "properties[spec].properties[a].type: Required value: must not be empty",
        spec={"names": {"kind": "Loose", "plural": "loose"}},
        schema={"properties": {"spec": {"properties": {"a": {"description": "?"}}}}},
    ),
]


@pytest.mark.parametrize("case", BROKEN, ids=lambda case: case.reason)
def test_a_broken_definition_is_accepted_and_only_an_event_tells(lab: Lab, case: Broken) -> None:
    definition = lab.xrd(kind("Broken"), "brokens", **case.spec)
    definition["metadata"]["name"] = case.name
    definition["spec"]["versions"][0]["referenceable"] = case.referenceable
    if case.schema:
        definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"] = case.schema

    lab.apply(definition)

    lab.wait_event(case.name, case.text)
    told = lab.events(case.name, "Warning")
    prefix = "cannot apply rendered composite resource CustomResourceDefinition: "
    assert told[0].startswith(f'{prefix}CustomResourceDefinition.apiextensions.k8s.io "{case.name}')
    assert condition(lab.get(XRD, case.name) or {}, "Established") is None
    assert lab.get(CRD, case.name) is None


def test_a_mended_definition_is_established(lab: Lab) -> None:
    definition = lab.xrd(kind("Mended"), "mendeds")
    definition["spec"]["versions"][0]["referenceable"] = False
    lab.apply(definition)
    lab.wait_event("mendeds.defs.example.org", "exactly one version")

    definition["spec"]["versions"][0]["referenceable"] = True
    lab.apply(definition)

    lab.wait("Established", lambda: established(lab, "mendeds.defs.example.org"))
    assert lab.cluster.serves(kind("Mended"))


def test_a_definition_broken_later_keeps_its_old_kind_and_its_old_word(lab: Lab) -> None:
    name = "laters.defs.example.org"
    definition = lab.xrd(kind("Later"), "laters")
    lab.apply(definition)
    lab.wait("Established", lambda: established(lab, name))

    properties = definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]
    properties["spec"]["properties"]["bad"] = {"description": "no type"}
    lab.apply(definition)

    lab.wait_event(name, "properties[bad].type: Required value")
    xrd = lab.get(XRD, name) or {}
    last = condition(xrd, "Established") or {}
    assert last["status"] == "True"
    assert last["observedGeneration"] < metadata(xrd)["generation"]
    assert lab.cluster.serves(kind("Later"))


def test_a_new_field_of_a_definition_can_be_ordered(lab: Lab) -> None:
    car, name = kind("Car"), "cars.defs.example.org"
    definition = lab.xrd(car, "cars")
    lab.apply(definition, lab.composition("cars", car))
    lab.wait("Established", lambda: established(lab, name))
    lab.says["ae86"] = lambda request, response: response.merge_status(
        {"note": request.xr["spec"].get("colour", "none")}
    )
    order = {
        "apiVersion": car.api_version,
        "kind": "Car",
        "metadata": {"name": "ae86"},
        "spec": {"size": 1},
    }
    lab.apply(order)
    assert lab.wait_ready("ae86", kind=car)["status"]["note"] == "none"

    properties = definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]
    properties["spec"]["properties"]["colour"] = {"type": "string"}
    lab.apply(definition)
    lab.wait("Established anew", lambda: established(lab, name))
    lab.apply({**order, "spec": {"size": 1, "colour": "panda"}})

    lab.wait(
        "the colour",
        lambda: (lab.get(car, "ae86") or {})["status"].get("note") == "panda",
    )
    lab.wait_event(name, "XRD specification changed; restarting controller")


def test_deleting_a_definition_deletes_its_orders_first_then_its_kind(lab: Lab) -> None:
    boat, name = kind("Boat"), "boats.defs.example.org"
    lab.apply(lab.xrd(boat, "boats"), lab.composition("boats", boat))
    lab.wait("Established", lambda: established(lab, name))
    for number in range(3):
        lab.says[f"boat-{number}"] = lambda request, response: response.want(
            "cm", lab.config_map(request.xr["metadata"]["name"])
        )
        lab.apply(
            {
                "apiVersion": boat.api_version,
                "kind": "Boat",
                "metadata": {"name": f"boat-{number}"},
                "spec": {"size": 1},
            }
        )
        lab.wait_ready(f"boat-{number}", kind=boat)

    lab.cluster.delete(ObjectKey(XRD, name))

    lab.wait("the definition's end", lambda: lab.get(XRD, name) is None)
    assert lab.get(CRD, name) is None
    assert not lab.cluster.serves(boat)
    lab.wait(
        "the children's end",
        lambda: not any(lab.get(CONFIG_MAP, f"boat-{n}", "team-a") for n in range(3)),
    )


def test_a_broken_definition_can_be_deleted(lab: Lab) -> None:
    definition = lab.xrd(kind("Gone"), "gones")
    definition["metadata"]["name"] = "wrong.defs.example.org"
    lab.apply(definition)
    lab.wait_event("wrong.defs.example.org", "must be spec.names.plural")

    lab.cluster.delete(ObjectKey(XRD, "wrong.defs.example.org"))

    lab.wait("its end", lambda: lab.get(XRD, "wrong.defs.example.org") is None)
