"""A Composition of mode Resources becomes a pipeline that does the same."""

from __future__ import annotations

from typing import Any

import pytest

from ground.errors import RefusedError
from orderkit_workshop.generate.converted_composition import (
    converted,
    is_legacy_mode,
    move_resources,
)

REF = {"apiVersion": "x.io/v1", "kind": "XDisk"}
BASE = {"apiVersion": "v1", "kind": "Pod"}
HEAD = {"apiVersion": "pt.fn.crossplane.io/v1beta1", "kind": "Resources"}
ENVIRONMENT_HEAD = {
    "apiVersion": "environmentconfigs.fn.crossplane.io/v1beta1",
    "kind": "Input",
}


def composition(**spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "apiextensions.crossplane.io/v1",
        "kind": "Composition",
        "metadata": {"name": "c"},
        "spec": {"compositeTypeRef": REF, **spec},
    }


def resource(**more: Any) -> dict[str, Any]:
    return {"name": "a", "base": BASE, **more}


def resources_of(**spec: Any) -> list[dict[str, Any]]:
    """Return the resources of the function's input."""
    found: list[dict[str, Any]] = converted(composition(**spec)).manifest["spec"]["pipeline"][-1][
        "input"
    ]["resources"]
    return found


@pytest.mark.parametrize(
    ("spec", "is_legacy"),
    [
        ({"resources": []}, True),
        ({"mode": "Resources"}, True),
        ({"mode": "Pipeline"}, False),
        ({"pipeline": [{}]}, False),
        ({"mode": "Resources", "pipeline": [{}]}, False),
        ({"mode": ""}, True),
    ],
)
def test_a_composition_without_a_pipeline_has_resources_of_its_own(
    spec: dict[str, Any], *, is_legacy: bool
) -> None:
    assert is_legacy_mode(composition(**spec)) is is_legacy


def test_resources_become_the_input_of_one_step() -> None:
    given = composition(
        resources=[resource()], mode="Resources", writeConnectionSecretsToNamespace="n", old=1
    )

    found = converted(given)

    assert found.manifest["spec"] == {
        "compositeTypeRef": REF,
        "writeConnectionSecretsToNamespace": "n",
        "mode": "Pipeline",
        "pipeline": [
            {
                "step": "patch-and-transform",
                "functionRef": {"name": "function-patch-and-transform"},
                "input": {**HEAD, "resources": [resource()]},
            }
        ],
    }
    assert found.notes == ("spec.old was removed: Crossplane 2 has no such field",)
    assert given["spec"]["old"] == 1
    assert found.manifest["metadata"] == {"name": "c"}


@pytest.mark.parametrize(
    ("patch", "becomes"),
    [
        ({"fromFieldPath": "a"}, {"type": "FromCompositeFieldPath", "fromFieldPath": "a"}),
        (
            {"type": "ToCompositeFieldPath", "fromFieldPath": "a"},
            {"type": "ToCompositeFieldPath", "fromFieldPath": "a"},
        ),
        (
            {"fromFieldPath": "a", "policy": {"fromFieldPath": "Required"}},
            {
                "type": "FromCompositeFieldPath",
                "fromFieldPath": "a",
                "policy": {"fromFieldPath": "Required"},
            },
        ),
        *(
            (
                {"fromFieldPath": "a", "policy": {"mergeOptions": options}},
                {
                    "type": "FromCompositeFieldPath",
                    "fromFieldPath": "a",
                    "policy": {"toFieldPath": policy},
                },
            )
            for options, policy in (
                ({}, "ForceMergeObjects"),
                ({"appendSlice": True}, "ForceMergeObjectsAppendArrays"),
                ({"keepMapValues": True}, "MergeObjects"),
                ({"keepMapValues": True, "appendSlice": True}, "MergeObjectsAppendArrays"),
            )
        ),
        (
            {"fromFieldPath": "a", "policy": {}},
            {"type": "FromCompositeFieldPath", "fromFieldPath": "a"},
        ),
    ],
)
def test_a_patch_says_what_it_left_to_defaults(
    patch: dict[str, Any], becomes: dict[str, Any]
) -> None:
    (found,) = resources_of(resources=[resource(patches=[patch])])

    assert found["patches"] == [becomes]


@pytest.mark.parametrize(
    ("transform", "becomes"),
    [
        ({"math": {"multiply": 2}}, {"type": "math", "math": {"type": "Multiply", "multiply": 2}}),
        ({"math": {"clampMin": 0}}, {"type": "math", "math": {"type": "ClampMin", "clampMin": 0}}),
        (
            {"type": "math", "math": {"clampMax": 2, "multiply": 3}},
            {"type": "math", "math": {"type": "ClampMax", "clampMax": 2, "multiply": 3}},
        ),
        (
            {"math": {"type": "ClampMin", "clampMin": 1}},
            {"type": "math", "math": {"type": "ClampMin", "clampMin": 1}},
        ),
        ({"string": {"fmt": "%s"}}, {"type": "string", "string": {"type": "Format", "fmt": "%s"}}),
        (
            {"string": {"convert": "ToUpper"}},
            {"type": "string", "string": {"type": "Convert", "convert": "ToUpper"}},
        ),
        (
            {"string": {"regexp": {"match": "a"}}},
            {"type": "string", "string": {"type": "Regexp", "regexp": {"match": "a"}}},
        ),
        ({"map": {"a": "b"}}, {"type": "map", "map": {"a": "b"}}),
        ({"convert": {"toType": "string"}}, {"type": "convert", "convert": {"toType": "string"}}),
    ],
)
def test_a_transform_says_of_which_type_it_is(
    transform: dict[str, Any], becomes: dict[str, Any]
) -> None:
    patch = {"fromFieldPath": "a", "transforms": [transform]}

    (found,) = resources_of(resources=[resource(patches=[patch])])

    assert found["patches"][0]["transforms"] == [becomes]


@pytest.mark.parametrize(
    ("detail", "becomes"),
    [
        ({"name": "n", "value": "v"}, {"name": "n", "type": "FromValue", "value": "v"}),
        (
            {"name": "n", "fromFieldPath": "a"},
            {"name": "n", "type": "FromFieldPath", "fromFieldPath": "a"},
        ),
        (
            {"fromConnectionSecretKey": "k"},
            {"name": "k", "type": "FromConnectionSecretKey", "fromConnectionSecretKey": "k"},
        ),
        (
            {"name": "n", "fromConnectionSecretKey": "k"},
            {"name": "n", "type": "FromConnectionSecretKey", "fromConnectionSecretKey": "k"},
        ),
    ],
)
def test_a_connection_detail_says_of_which_type_it_is_and_has_a_name(
    detail: dict[str, Any], becomes: dict[str, Any]
) -> None:
    (found,) = resources_of(resources=[resource(connectionDetails=[detail])])

    assert found["connectionDetails"] == [becomes]


@pytest.mark.parametrize(
    ("check", "becomes"),
    [
        (
            {"type": "MatchCondition"},
            {"type": "MatchCondition", "matchCondition": {"type": "Ready", "status": "True"}},
        ),
        (
            {"type": "MatchCondition", "matchCondition": {"type": "Synced"}},
            {"type": "MatchCondition", "matchCondition": {"type": "Synced", "status": "True"}},
        ),
        ({"type": "NonEmpty", "fieldPath": "a"}, {"type": "NonEmpty", "fieldPath": "a"}),
    ],
)
def test_a_check_of_a_condition_says_of_which(
    check: dict[str, Any], becomes: dict[str, Any]
) -> None:
    (found,) = resources_of(resources=[resource(readinessChecks=[check])])

    assert found["readinessChecks"] == [becomes]


def test_what_a_person_should_know_is_noted() -> None:
    check = {"type": "MatchInteger", "matchInteger": 1, "fieldPath": "a"}
    found = converted(
        composition(
            resources=[
                resource(readinessChecks=[check], odd=1),
                {"base": BASE},
                resource(name=""),
            ]
        )
    )

    names = [entry["name"] for entry in found.manifest["spec"]["pipeline"][0]["input"]["resources"]]
    assert names == ["a", "resource-1", "resource-2"]
    unnamed, integer, removed = found.notes
    assert unnamed.startswith("resources without a name are called resource-1, resource-2: ")
    assert integer.startswith("resource a: the function never finds an integer for a check")
    assert removed == "input.resources[0].odd was removed: the function does not know it"


def test_patch_sets_and_the_environment_go_along() -> None:
    patch = {"fromFieldPath": "a"}
    selector = [{"type": "Reference", "ref": {"name": "e"}}]

    found = converted(
        composition(
            resources=[resource()],
            patchSets=[{"name": "s", "patches": [patch]}],
            environment={
                "patches": [patch],
                "environmentConfigs": selector,
                "defaultData": {},
                "policy": {"resolution": "Optional"},
            },
        )
    )

    environment, patching = found.manifest["spec"]["pipeline"]
    made = {"type": "FromCompositeFieldPath", "fromFieldPath": "a"}
    assert patching["input"]["patchSets"] == [{"name": "s", "patches": [made]}]
    assert patching["input"]["environment"] == {"patches": [made]}
    assert environment == {
        "step": "environment-configs",
        "functionRef": {"name": "function-environment-configs"},
        "input": {
            **ENVIRONMENT_HEAD,
            "spec": {"environmentConfigs": selector, "policy": {"resolution": "Optional"}},
        },
    }
    assert found.notes == (
        "its EnvironmentConfigs are read as v1beta1 now: rewrite those of v1alpha1",
    )


@pytest.mark.parametrize(
    "environment", [{}, {"patches": []}, {"patches": [{"fromFieldPath": "a"}]}]
)
def test_patches_of_the_environment_alone_read_no_configs(environment: dict[str, Any]) -> None:
    found = converted(composition(resources=[resource()], environment=environment))

    assert [step["step"] for step in found.manifest["spec"]["pipeline"]] == ["patch-and-transform"]


@pytest.mark.parametrize(
    ("spec", "why"),
    [
        ({"functions": [{}]}, "spec.functions: container functions were removed long ago"),
        ({"resources": [resource(patches=[{"type": "Odd"}])]}, ""),
        ({"resources": [resource(readinessChecks=[{"type": "Odd"}])]}, ""),
        ({"resources": [resource(connectionDetails=[{"name": "n"}])]}, ""),
    ],
)
def test_a_composition_that_the_function_would_refuse_is_refused(
    spec: dict[str, Any], why: str
) -> None:
    with pytest.raises(RefusedError) as refused:
        converted(composition(**spec))

    assert str(refused.value).startswith(f"Composition c cannot be converted: {why}")
    assert len(str(refused.value)) > len("Composition c cannot be converted: ")


@pytest.mark.parametrize(
    ("environment", "steps"),
    [
        (None, ["patch-and-transform"]),
        ({"patches": []}, ["patch-and-transform"]),
        ({"environmentConfigs": []}, ["environment-configs", "patch-and-transform"]),
    ],
)
def test_parts_of_a_commented_document_move_to_the_steps(
    environment: dict[str, Any] | None, steps: list[str]
) -> None:
    tree = composition(resources=["r"], patchSets=["p"])
    if environment is not None:
        tree["spec"]["environment"] = environment

    move_resources(tree)

    assert [step["step"] for step in tree["spec"]["pipeline"]] == steps
    assert tree["spec"]["pipeline"][-1]["input"] == {"patchSets": ["p"], "resources": ["r"]}
    assert tree["spec"].keys() == {"compositeTypeRef", "pipeline"}
