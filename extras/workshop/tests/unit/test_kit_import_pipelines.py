"""What a pipeline from elsewhere needs of a pack: kinds, functions and their packages."""

from __future__ import annotations

from typing import Any

import pytest

from compositions.function_twins.choice import RELEASES
from ground.objects.kube_objects import Kind, Manifest
from orderkit_workshop.generate.imported_pipeline import (
    Dependency,
    dependencies_of,
    function_manifest,
    functions_to_add,
    map_keys,
    pipeline_of,
    source_packages,
    with_renamed_functions,
)

REF = {"apiVersion": "x.io/v1", "kind": "XDisk"}
POD, DISK = {"apiVersion": "v1", "kind": "Pod"}, {"apiVersion": "y.io/v1", "kind": "Disk"}


def step(function: str, name: str = "s", **data: Any) -> dict[str, Any]:
    return {"step": name, "functionRef": {"name": function}, "input": data}


def composition(*steps: dict[str, Any]) -> Manifest:
    return {
        "apiVersion": "apiextensions.crossplane.io/v1",
        "kind": "Composition",
        "metadata": {"name": "c"},
        "spec": {"compositeTypeRef": REF, "mode": "Pipeline", "pipeline": list(steps)},
    }


TEMPLATE = """\
apiVersion: v1
kind: Pod
---
apiVersion: meta.gotemplating.fn.crossplane.io/v1alpha1
kind: Context
---
apiVersion: x.io/v1
kind: XDisk
---
apiVersion: y.io/v1\r
kind: Disk\r
---
  apiVersion: z.io/v1
  kind: Inner
"""


@pytest.mark.parametrize(
    ("function", "data", "composes"),
    [
        (
            "function-patch-and-transform",
            {"resources": [{"base": POD}, {"base": REF}, {"base": "odd"}, {}]},
            ["Pod"],
        ),
        ("function-go-templating", {"inline": {"template": TEMPLATE}}, ["Pod", "Disk.y.io"]),
        ("function-go-templating", {"source": "FileSystem"}, []),
        ("function-kcl", {"inline": {"template": TEMPLATE}}, []),
        ("function-environment-configs", {"resources": [{"base": POD}]}, []),
    ],
)
def test_composed_kinds_are_read_where_a_step_names_them(
    function: str, data: dict[str, Any], composes: list[str]
) -> None:
    found = pipeline_of(composition(step(function, **data)), {})

    assert [str(kind) for kind in found.composes] == composes


@pytest.mark.parametrize(
    ("made", "requires"),
    [
        (
            step("function-environment-configs", spec={"environmentConfigs": [{}]}),
            ["EnvironmentConfig.apiextensions.crossplane.io"],
        ),
        (step("function-environment-configs", spec={}), []),
        (step("function-extra-resources", spec={"extraResources": [DISK, "odd"]}), ["Disk.y.io"]),
        (step("function-kcl", spec={"extraResources": [DISK]}), []),
        (
            {**step("function-kcl"), "requirements": {"requiredResources": [POD, {}]}},
            ["Pod"],
        ),
    ],
)
def test_required_kinds_are_read_where_a_step_names_them(
    made: dict[str, Any], requires: list[str]
) -> None:
    assert [str(kind) for kind in pipeline_of(composition(made), {}).requires] == requires


def test_steps_are_named_that_run_elsewhere() -> None:
    found = pipeline_of(
        composition(
            step("function-kcl", "k"),
            step("function-patch-and-transform", "p"),
            {**step("function-orderkit", "o"), "input": {"name": "station"}},
            step("function-orderkit", "q"),
        ),
        {},
    )

    assert found.foreign == (("k", "function-kcl"),)
    assert found.stations == ("", "station")
    assert found.functions == ("function-kcl", "function-orderkit", "function-patch-and-transform")


@pytest.mark.parametrize(
    ("patches", "keys"),
    [
        ([{"fromFieldPath": "spec.size", "transforms": [{"map": {"s": 1, "l": 2}}]}],
         {"size": ("s", "l")}),
        ([{"fromFieldPath": "spec.size", "transforms": [{"map": {"s": 1, "l": 2}}]},
          {"fromFieldPath": "spec.size", "transforms": [{"map": {"l": 1, "x": 2}}]}],
         {"size": ("l",)}),
        ([{"fromFieldPath": "spec.size", "transforms": [{"map": {"s": 1}}]},
          {"fromFieldPath": "spec.size", "transforms": [{"map": {"l": 1}}]}], {}),
        ([{"fromFieldPath": "status.size", "transforms": [{"map": {"s": 1}}]}], {}),
        ([{"fromFieldPath": "spec.size", "transforms": [{"string": {}}, {"map": {"s": 1}}]}], {}),
        ([{"fromFieldPath": "spec.size", "transforms": []}, {"fromFieldPath": "spec.x"}], {}),
    ],
)  # fmt: skip
def test_the_keys_of_maps_are_the_values_that_a_field_may_have(
    patches: list[dict[str, Any]], keys: dict[str, tuple[str, ...]]
) -> None:
    made = step("function-patch-and-transform", resources=[{"base": POD, "patches": patches}])

    assert map_keys(composition(made)) == keys


def configuration(*depends_on: Any, kind: str = "Configuration") -> Manifest:
    group = "meta.pkg.crossplane.io" if kind == "Configuration" else "meta.dev.upbound.io"
    return {
        "apiVersion": f"{group}/v1",
        "kind": kind,
        "metadata": {"name": "a"},
        "spec": {"dependsOn": list(depends_on)},
    }


@pytest.mark.parametrize(
    ("entry", "dependency"),
    [
        ({"function": "r.io/a/f", "version": ">=v1.2.3"}, ("Function", "r.io/a/f", "v1.2.3")),
        ({"provider": "r.io/a/p", "version": "1.2.3"}, ("Provider", "r.io/a/p", "1.2.3")),
        ({"kind": "Function", "package": "r.io/a/f", "version": "v1.2.3-rc.1"},
         ("Function", "r.io/a/f", "v1.2.3-rc.1")),
        ({"function": "r.io/a/f", "version": ">=v0.0.0"}, ("Function", "r.io/a/f", "")),
        ({"function": "r.io/a/f"}, ("Function", "r.io/a/f", "")),
        ({"kind": "Odd", "package": "r.io/a/f"}, None),
        ("odd", None),
    ],
)  # fmt: skip
@pytest.mark.parametrize("kind", ["Configuration", "Project"])
def test_a_dependency_names_a_package_and_perhaps_a_release(
    entry: Any, dependency: tuple[str, str, str] | None, kind: str
) -> None:
    found = [
        (one.kind, one.path, one.release)
        for one in dependencies_of([configuration(entry, kind=kind)])
    ]

    assert found == ([dependency] if dependency else [])
    assert list(dependencies_of([{**POD, "spec": {"dependsOn": [entry]}}])) == []


def test_a_package_has_its_release_behind_its_path() -> None:
    assert Dependency("Function", "r.io/f", "^v1.2.3").package == "r.io/f:v1.2.3"
    assert Dependency("Function", "r.io/f", ">=v0.0.0").package == "r.io/f"


def test_packages_come_from_functions_and_from_configurations() -> None:
    function = function_manifest("mine", "r.io/b/function-b:v2.0.0")
    local = function_manifest("local", "Development")
    needed = {"function": "r.io/org/function-a", "version": "v1.0.0"}
    provider = {"provider": "r.io/org/provider-p", "version": "v1.0.0"}
    open_ = {"function": "r.io/org/function-c", "version": ">=v0.0.0"}

    found = source_packages([configuration(needed, provider, open_), function, local, POD])

    assert found == {
        "function-a": "r.io/org/function-a:v1.0.0",
        "org-function-a": "r.io/org/function-a:v1.0.0",
        "mine": "r.io/b/function-b:v2.0.0",
    }


def test_each_function_is_delivered_renamed_added_or_unknown() -> None:
    names = ["here", "kcl", "theirs", "function-kcl", "function-orderkit", "function-zzz"]
    sources = {"kcl": "r.io/x/function-kro:v1", "theirs": "r.io/x/function-theirs:v1"}
    delivered = {"here": "r.io/x/function-here:v1", "our-kro": "r.io/y/function-kro:v2"}

    found = functions_to_add(names, sources, delivered)

    registry = "__ORDERKIT_REGISTRY__/crossplane-contrib"
    assert found.renamed == {"kcl": "our-kro"}
    assert found.packages == {
        "theirs": "r.io/x/function-theirs:v1",
        "function-kcl": f"{registry}/function-kcl:{RELEASES['function-kcl']}",
    }
    assert found.unknown == ("function-zzz",)


def test_steps_call_functions_by_the_packs_names() -> None:
    given = composition(step("kcl"), step("other"), {"step": "odd"})

    found = with_renamed_functions(given, {"kcl": "our-kcl"})

    names = [(entry.get("functionRef") or {}).get("name") for entry in found["spec"]["pipeline"]]
    assert names == ["our-kcl", "other", None]
    assert given["spec"]["pipeline"][0]["functionRef"]["name"] == "kcl"
    assert Kind.of(function_manifest("a", "b")).kind == "Function"
