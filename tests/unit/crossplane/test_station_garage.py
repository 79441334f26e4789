"""The station `garage`: first the bay, then the spec sheet, always text, always the same."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from compositions.composed import Composed, World, root_labelled, steps_of
from compositions.pipeline import compose
from compositions.python_functions import python_functions
from ground.objects.kube_objects import Manifest
from kubeschema.structural.api_messages import problems as value_problems
from kubeschema.xrd import crd_for, cuts, machinery_path, problems, xr_kind
from orderkit.adapters.folders.station_process import load_stations

PACK = Path(__file__).parents[3]
APIS = PACK / "gitops/apis/garage"


def load(name: str) -> Manifest:
    found = yaml.safe_load((APIS / name).read_text())
    assert isinstance(found, dict)
    return found


DEFINITION, COMPOSITION = load("definition.yaml"), load("composition.yaml")
FUNCTIONS = python_functions(load_stations(PACK))


def order(team: str, stage: str = "stage2") -> Manifest:
    return root_labelled(
        {
            "apiVersion": "blog.opsbogus.dev/v1alpha1",
            "kind": "XGarage",
            "metadata": {"name": f"garage-{team}", "uid": "u-1"},
            "spec": {"teamName": team, "stage": stage},
        }
    )


def assemble(xr: Manifest, observed: dict[str, Manifest] | None = None) -> Composed:
    return compose(xr, steps_of(COMPOSITION["spec"]), World(FUNCTIONS, observed or {}))


def settle(xr: Manifest) -> Composed:
    """Compose until nothing new is wanted, as if everything that is wanted came to exist."""
    observed: dict[str, Manifest] = {}
    while True:
        composed = assemble(xr, observed)
        wanted = {name: desired.manifest for name, desired in composed.resources.items()}
        if wanted.keys() == observed.keys():
            return composed
        observed = wanted


def test_the_bay_comes_alone_until_it_exists() -> None:
    first = assemble(order("ae86"))

    assert list(first.resources) == ["namespace"]
    assert first.ready_condition.message == "Unready resources: namespace"


def test_in_the_end_there_are_a_bay_and_a_spec_sheet_and_both_are_ready() -> None:
    settled = settle(order("ae86"))

    manifests = {name: desired.manifest for name, desired in settled.resources.items()}
    assert manifests["namespace"]["metadata"]["name"] == "garage-ae86"
    assert manifests["spec-sheet"]["metadata"]["namespace"] == "garage-ae86"
    assert manifests["spec-sheet"]["data"] == {"stage": "stage2", "team": "ae86"}
    assert settled.status == {"namespace": "garage-ae86", "stage": "stage2"}
    assert settled.ready_condition.reason == "Available"


@pytest.mark.parametrize("team", ["yes", "null", "off", "true", "n01", "y-1"])
def test_a_team_that_yaml_would_read_as_something_else_stays_text(team: str) -> None:
    sheet = settle(order(team)).resources["spec-sheet"].manifest

    assert sheet["data"]["team"] == team
    assert yaml.safe_load(yaml.safe_dump(sheet)) == sheet


@given(
    team=st.from_regex(re.compile(r"^[a-z][a-z0-9-]{2,28}\Z", re.ASCII)),
    stage=st.sampled_from(["stage1", "stage2", "stage3"]),
)
def test_the_same_order_is_assembled_the_same_way(team: str, stage: str) -> None:
    xr = order(team.rstrip("-") + "x", stage)

    assert settle(xr) == settle(xr)
    assert settle(xr).error == ""


def test_an_order_without_a_stage_is_refused_and_deletes_nothing() -> None:
    xr = order("ae86")
    observed = {name: d.manifest for name, d in settle(xr).resources.items()}
    del xr["spec"]["stage"]

    composed = assemble(xr, observed)

    assert "station \"garage\" failed: KeyError: 'stage'" in composed.error
    assert not composed.deletions


def test_definition_and_composition_speak_of_the_same_kind() -> None:
    kind = xr_kind(DEFINITION)

    assert COMPOSITION["spec"]["compositeTypeRef"] == {
        "apiVersion": kind.api_version,
        "kind": kind.kind,
    }
    assert DEFINITION["spec"]["enforcedCompositionRef"] == {"name": COMPOSITION["metadata"]["name"]}
    assert machinery_path(DEFINITION) == ("spec", "crossplane")


def test_the_definition_is_sound_and_nothing_of_it_is_lost() -> None:
    assert problems(DEFINITION) == ()
    assert cuts(DEFINITION) == ()


def test_printer_columns_show_team_and_stage_first() -> None:
    columns = crd_for(DEFINITION)["spec"]["versions"][0]["additionalPrinterColumns"]

    assert [column["name"] for column in columns][:5] == [
        *("TEAM", "STAGE", "BAY", "ASSEMBLED"),
        "SYNCED",
    ]


@pytest.mark.parametrize(
    ("spec", "allowed"),
    [
        ({"teamName": "ae86", "stage": "stage1"}, True),
        ({"teamName": "yes", "stage": "stage3"}, True),
        ({"teamName": "1e3", "stage": "stage1"}, False),
        ({"teamName": "AE86", "stage": "stage1"}, False),
        ({"teamName": "ae", "stage": "stage1"}, False),
        ({"teamName": "ae86", "stage": "stage4"}, False),
        ({"teamName": "ae86"}, False),
    ],
)
def test_the_definition_judges_orders(spec: dict[str, Any], allowed: bool) -> None:  # noqa: FBT001 - a case
    version = crd_for(DEFINITION)["spec"]["versions"][0]
    xr = {**order("x"), "spec": spec}

    assert (not value_problems(version["schema"]["openAPIV3Schema"], xr)) is allowed


def test_crossplane_is_granted_what_the_station_composes_beyond_its_defaults() -> None:
    role = load("rbac.yaml")

    assert role["metadata"]["labels"] == {"rbac.crossplane.io/aggregate-to-crossplane": "true"}
    needed = {"get", "list", "watch", "create", "update", "patch", "delete"}
    assert role["rules"] == [
        {"apiGroups": [""], "resources": ["namespaces"], "verbs": role["rules"][0]["verbs"]}
    ]
    assert set(role["rules"][0]["verbs"]) == needed


def test_every_function_of_the_composition_is_declared_with_a_pinned_package() -> None:
    text = (PACK / "gitops/functions/functions.yaml").read_text()
    declared = {f["metadata"]["name"]: f["spec"]["package"] for f in yaml.safe_load_all(text)}

    used = {step.function for step in steps_of(COMPOSITION["spec"])}
    assert used <= declared.keys()
    pinned = yaml.safe_load((PACK / "pack.yaml").read_text())["spec"]["versions"]
    for name, package in declared.items():
        sentinel = f"__ORDERKIT_VERSION_{name.upper().replace('-', '_')}__"
        assert package.endswith(f"/{name}:{sentinel}")
        assert re.fullmatch(r"v\d+\.\d+\.\d+", pinned[name])
