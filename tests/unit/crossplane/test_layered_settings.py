"""Layers merge in their order, every value knows its layer, and a broken layer drops nothing."""

from __future__ import annotations

from typing import Any

import pytest

from orderkit.stations import (
    Manifest,
    Resource,
    SettingError,
    Settings,
    Severity,
    State,
    StationRequest,
    StationResponse,
    layered_settings,
)

SCHEMA: Manifest = {
    "type": "object",
    "required": ["kubernetes"],
    "properties": {
        "kubernetes": {
            "type": "object",
            "required": ["version"],
            "properties": {
                "version": {"type": "string", "pattern": r"^1\.[0-9]+$"},
                "private": {"type": "boolean"},
                "pods": {"type": "integer", "default": 110},
            },
        },
        "zones": {"type": "array", "items": {"type": "string"}},
        "weight": {"type": "number"},
    },
}
LAYERS: list[Manifest] = [
    {"name": "baseline", "labels": {"layer": "baseline"}},
    {"name": "cloud", "labels": {"layer": "cloud"}, "labelsFrom": {"cloud": "spec.cloud"}},
]
BASELINE: Manifest = {"kubernetes": {"version": "1.34", "private": True}, "zones": ["a", "b"]}
GCP: Manifest = {"kubernetes": {"version": "1.35"}, "zones": ["c"], "weight": 2}
EXISTING = {"network": Resource({"kind": "Network"})}


def config(name: str, data: Any) -> Manifest:
    return {"metadata": {"name": name}, "data": data}


def ask(
    *configs: tuple[Manifest, ...] | None, cloud: Any = "gcp", **step_input: Any
) -> tuple[StationResponse, Settings | None]:
    """Run a station that reads its settings; each argument answers one layer."""
    request = StationRequest(
        State(Resource({"metadata": {"name": "one"}, "spec": {"cloud": cloud}}), EXISTING),
        State(resources=dict(EXISTING)),
        input={"layers": LAYERS, "layersSchema": SCHEMA, **step_input},
        required={f"orderkit-layer-{n}": c for n, c in enumerate(configs) if c is not None},
    )
    response = StationResponse.to(request)
    return response, layered_settings(request, response)


def test_the_layers_are_looked_up_by_their_labels_first() -> None:
    response, settings = ask()

    assert settings is None
    assert [dict(selector.labels) for selector in response.requirements.values()] == [
        {"layer": "baseline"},
        {"layer": "cloud", "cloud": "gcp"},
    ]
    assert {s.kind for s in response.requirements.values()} == {"EnvironmentConfig"}
    assert not response.results


def test_later_layers_win_and_every_value_knows_its_layer() -> None:
    _, settings = ask((config("base", BASELINE),), (config("gcp", GCP),))

    assert settings is not None
    assert settings.values == {
        "kubernetes": {"version": "1.35", "private": True, "pods": 110},
        "zones": ["c"],
        "weight": 2,
    }
    assert settings.layers == {
        "kubernetes.version": "cloud",
        "kubernetes.private": "baseline",
        "kubernetes.pods": "default of the schema",
        "zones": "cloud",
        "weight": "cloud",
    }


def test_a_key_with_a_dot_knows_its_layer() -> None:
    labels = {"type": "object", "additionalProperties": {"type": "string"}}
    schema = {"type": "object", "properties": {"labels": labels}}

    _, settings = ask(
        (config("b", {"labels": {"a.b": "1"}}),), (config("g", {}),), layersSchema=schema
    )

    assert settings is not None
    assert settings.layers == {"labels.a.b": "baseline"}


def test_values_are_read_with_their_types() -> None:
    _, settings = ask((config("base", BASELINE),), (config("gcp", GCP),))

    assert settings is not None
    assert settings.get("kubernetes.version", str) == "1.35"
    assert settings.get("kubernetes.private", bool) is True
    assert settings.get("weight", float) == 2
    assert settings.get("zones", list) == ["c"]
    assert settings.has("kubernetes")
    assert not settings.has("kubernetes.nothing")
    with pytest.raises(SettingError, match='no layer gives the setting "kubernetes'):
        settings.get("kubernetes.pool", str)
    with pytest.raises(SettingError, match='private" is a bool, not a int'):
        settings.get("kubernetes.private", int)


BROKEN = {
    "a layer is missing": (
        ((config("base", BASELINE),), ()),
        'layer "cloud" is missing: no EnvironmentConfig has the labels cloud=gcp, layer=cloud',
    ),
    "a layer is doubled": (
        ((config("base", BASELINE),), (config("z", GCP), config("y", GCP))),
        "2 EnvironmentConfigs have the labels cloud=gcp, layer=cloud: y, z; exactly one may",
    ),
    "a layer is there six times": (
        ((config("base", BASELINE),), tuple(config(name, GCP) for name in "fedcba")),
        "6 EnvironmentConfigs have the labels cloud=gcp, layer=cloud: a, b, c, d, e; exactly one",
    ),
    "a value breaks the schema": (
        ((config("base", BASELINE),), (config("g", {"kubernetes": {"version": "latest"}}),)),
        "(layer: cloud)",
    ),
    "a value is missing": (
        ((config("base", {"kubernetes": {}}),), (config("g", {}),)),
        "kubernetes.version: Required value (layer: none gives it)",
    ),
    "a setting is misspelt": (
        ((config("base", BASELINE),), (config("g", {"kubernets": {}}),)),
        "kubernets: unknown setting (layer: cloud)",
    ),
    "data is no map": (((config("base", BASELINE),), (config("g", ["x"]),)), "data is not a map"),
}


@pytest.mark.parametrize(("configs", "message"), BROKEN.values(), ids=BROKEN)
def test_a_broken_layer_is_refused_and_drops_nothing(
    configs: tuple[tuple[Manifest, ...], ...], message: str
) -> None:
    response, settings = ask(*configs)

    assert settings is None
    assert [result.severity for result in response.results] == [Severity.FATAL]
    assert message in response.results[0].message
    assert set(response.desired.resources) == {"network"}


@pytest.mark.parametrize("cloud", [None, 5, "", "a,b", "x" * 64, "-a", "<b>" * 4000])
def test_a_field_that_is_no_label_is_refused_shortly(cloud: Any) -> None:
    response, _ = ask((config("base", BASELINE),), (), cloud=cloud)

    assert "spec.cloud is" in response.results[0].message
    assert len(response.results[0].message) < 200


@pytest.mark.parametrize(
    ("step_input", "message"),
    [
        ({"layersSchema": None}, "needs both"),
        ({"layers": [{"name": "all"}]}, "has no labels and would match everything"),
        ({"layers": [{"name": 5}]}, "is not a layer"),
    ],
)
def test_a_wrong_declaration_is_refused(step_input: Any, message: str) -> None:
    response, _ = ask(**step_input)

    assert message in response.results[0].message


def test_a_huge_value_makes_no_huge_message() -> None:
    response, _ = ask(
        (config("base", BASELINE),), (config("g", {"kubernetes": {"version": "x" * 10_000_000}}),)
    )

    assert len(response.results[0].message) < 500


def test_a_later_step_reads_the_settings_of_an_earlier_one() -> None:
    first, settings = ask((config("base", BASELINE),), (config("gcp", GCP),))
    request = StationRequest(State(Resource({})), context=first.context)

    assert layered_settings(request, StationResponse.to(request)) == settings


def test_without_any_layers_the_station_is_refused() -> None:
    request = StationRequest(State(Resource({})))
    response = StationResponse.to(request)

    assert layered_settings(request, response) is None
    assert "neither this step nor an earlier one" in response.results[0].message
