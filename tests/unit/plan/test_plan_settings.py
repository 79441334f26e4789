"""A plan shows the settings that change, and which layer decides each."""

from __future__ import annotations

from typing import Any

import pytest

from compositions.composed import PipelineStep
from compositions.layered_settings import layered_settings
from compositions.resource_builders import secret
from compositions.station import INPUT, Station, StationRequest, StationResponse
from ground.objects.kube_objects import Manifest
from kubeschema.validate import Validator
from orderkit.cli.views.plan_views import Screen, show
from orderkit.core.plan import AssemblyContext, Blueprint, Plan, assemble, compare
from orderkit.core.plan.plan_json import plan_document
from orderkit.core.plan.plan_markdown import to_markdown

GROUP = "shop.example.org"
FIELDS = {"mode": {"type": "string"}}
SPEC = {"properties": {"spec": {"type": "object", "properties": FIELDS}}}
VERSION = {"name": "v1", "served": True, "referenceable": True}
XRD = {
    "apiVersion": "apiextensions.crossplane.io/v2",
    "kind": "CompositeResourceDefinition",
    "metadata": {"name": f"xshops.{GROUP}"},
    "spec": {
        "group": GROUP,
        "scope": "Cluster",
        "names": {"kind": "XShop", "plural": "xshops"},
        "versions": [{**VERSION, "schema": {"openAPIV3Schema": {"type": "object", **SPEC}}}],
    },
}
STATION = {"apiVersion": INPUT.api_version, "kind": INPUT.kind}
LAYERS = [
    {"name": "baseline", "labels": {"layer": "baseline"}},
    {"name": "mode", "labels": {"layer": "mode"}, "labelsFrom": {"mode": "spec.mode"}},
]
SETTING = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
SCHEMA = {"type": "object", "properties": {"a": SETTING}}


def an_xr(mode: str) -> Manifest:
    meta = {"name": "one", "uid": "11111111-0000-0000-0000-000000000000"}
    return {"apiVersion": f"{GROUP}/v1", "kind": "XShop", "metadata": meta, "spec": {"mode": mode}}


def environment(data: Manifest, **labels: str) -> Manifest:
    return {
        "apiVersion": "apiextensions.crossplane.io/v1beta1",
        "kind": "EnvironmentConfig",
        "metadata": {"name": "-".join(labels.values()), "labels": labels},
        "data": {"a": data},
    }


def station(request: StationRequest) -> StationResponse:
    response = StationResponse.to(request)
    settings = layered_settings(request, response)
    if settings is not None:
        data = {key: str(value) for key, value in settings.values.get("a", {}).items()}
        meta = {"name": "map", "namespace": "shop"}
        config = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": data}
        response.want("map", config)
    return response


def a_plan(baseline: Manifest, plain: Manifest, fancy: Manifest, *, run: Station = station) -> Plan:
    """Plan the change from mode plain to mode fancy; each mode has a layer."""
    step_input = {**STATION, "layers": LAYERS, "layersSchema": SCHEMA}
    workshop = AssemblyContext(
        {(GROUP, "XShop"): Blueprint(Validator(XRD), (PipelineStep("main", "run", step_input),))},
        {"run": run},
        existing=[
            environment(baseline, layer="baseline"),
            environment(plain, layer="mode", mode="plain"),
            environment(fancy, layer="mode", mode="fancy"),
        ],
    )
    before = assemble(an_xr("plain"), workshop)
    after = assemble(an_xr("fancy"), workshop, observed=before.observed)
    return compare(before, after)


def shown(capsys: pytest.CaptureFixture[str], plan: Plan, **screen: Any) -> list[str]:
    show("one", plan, None, Screen(**screen))
    lines = capsys.readouterr().out.splitlines()
    return [line.strip() for line in lines if line.startswith("  setting ")]


def test_a_setting_that_changes_is_shown_with_its_layers(
    capsys: pytest.CaptureFixture[str],
) -> None:
    plan = a_plan({"version": "1.34", "size": 1}, {"zone": "a"}, {"version": "1.35", "zone": "b"})

    assert shown(capsys, plan) == [
        "setting     a.version 1.34 → 1.35 (layer: mode, before: baseline)",
        "setting     a.zone a → b (layer: mode)",
    ]
    assert "- a.zone a → b (layer: mode)" in to_markdown(plan).splitlines()


def test_the_full_plan_and_json_have_every_setting(capsys: pytest.CaptureFixture[str]) -> None:
    plan = a_plan({"size": 1}, {"zone": "a"}, {"zone": "b"})

    assert "setting     a.size 1 (layer: baseline)" in shown(capsys, plan, full=True)
    facts = plan_document(plan).to_json()["plan"]
    assert facts["settings"] == [
        {"path": "a.size", "value": 1, "layer": "baseline"},
        {"path": "a.zone", "value": "b", "layer": "mode"},
    ]
    assert facts["settingChanges"] == [
        {"field": "a.zone", "from": "a", "to": "b", "oldLayer": "mode", "layer": "mode"}
    ]


def test_a_setting_that_no_layer_gives_any_more_is_shown(
    capsys: pytest.CaptureFixture[str],
) -> None:
    plan = a_plan({}, {"zone": "a"}, {})

    assert shown(capsys, plan) == [
        "setting     a (not set) → {} (layer: mode)",
        "setting     a.zone a → (not set) (layer: none, before: mode)",
    ]


def test_many_and_long_settings_are_cut(capsys: pytest.CaptureFixture[str]) -> None:
    many = {f"n{number:02}": "x" * 10_000 for number in range(40)}
    plan = a_plan({}, {}, many)

    lines = shown(capsys, plan)

    assert len(lines) == 12
    assert max(map(len, lines)) < 300
    assert len(to_markdown(plan)) < 60_000


def test_a_setting_that_repeats_a_secret_is_masked(capsys: pytest.CaptureFixture[str]) -> None:
    hidden = "correct-horse-battery"
    credentials = {**secret({"password": hidden}), "metadata": {"name": "c", "namespace": "shop"}}

    def with_secret(request: StationRequest) -> StationResponse:
        response = station(request)
        response.want("credentials", credentials)
        return response

    note = {"note": f"use {hidden}"}
    plan = a_plan({}, {}, note, run=with_secret)

    assert hidden in "".join(shown(capsys, a_plan({}, {}, note)))
    assert hidden not in "".join(shown(capsys, plan))
    assert hidden not in str(plan_document(plan).to_json())
