"""What managing a resource would change in the cloud: what there is, and what the order sets."""

from __future__ import annotations

from typing import Any

import pytest

from ground.objects.kube_objects import Manifest
from orderkit.core.order.observed_parts import observed_part, takeover_differences


def bucket(there: Any, order: Any, *, policies: tuple[str, ...] = ("Observe",)) -> Manifest:
    return {
        "apiVersion": "s3.aws.m.upbound.io/v1beta1",
        "kind": "Bucket",
        "metadata": {
            "name": "b",
            "namespace": "team-a",
            "annotations": {"crossplane.io/external-name": "photos"},
        },
        "spec": {"forProvider": order, "managementPolicies": list(policies)},
        "status": {"atProvider": there},
    }


@pytest.mark.parametrize(
    ("there", "order", "lines"),
    [
        pytest.param({"region": "eu"}, {"region": "eu"}, [], id="the same"),
        pytest.param({"size": 3.0}, {"size": 3}, [], id="whole numbers"),
        pytest.param({"size": True}, {"size": 1}, ["size: true → 1"], id="not a number"),
        pytest.param({"a": 1, "b": 2}, {"a": 3}, ["a: 1 → 3"], id="only what the order sets"),
        pytest.param({"id": "x"}, {"zone": "a"}, ["zone: (not set) → a"], id="not reported"),
        pytest.param(
            {"versioning": {"enabled": False}, "x": 1},
            {"versioning": {"enabled": True, "mfa": "on"}},
            ["versioning.enabled: false → true", "versioning.mfa: (not set) → on"],
            id="inside",
        ),
        pytest.param({"zones": ["b", "a"]}, {"zones": ["a", "b"]}, [], id="sets in any order"),
        pytest.param(
            {"rules": [{"port": 80, "id": "r1"}]},
            {"rules": [{"port": 443}]},
            ["rules[0].port: 80 → 443"],
            id="lists of objects",
        ),
        pytest.param(
            {"rules": [{"port": 80}]},
            {"rules": []},
            ['rules: [{"port": 80}] → []'],
            id="lists of another length",
        ),
        pytest.param(
            {"rules": [{"name": "a", "id": 1}, {"name": "b", "port": 80}]},
            {"rules": [{"name": "b", "port": 443}, {"name": "a"}]},
            ["rules[0].port: 80 → 443"],
            id="lists of objects in any order",
        ),
        pytest.param(
            {"network": "n-1"},
            {"networkRef": {"name": "n"}, "kmsKeySelector": {}, "passwordSecretRef": {}},
            [],
            id="references",
        ),
        pytest.param(
            {"tags": {"owner": "eve", "crossplane-name": "b"}},
            {"tags": {"team": "media"}},
            ["tags.owner: eve → (removed)", "tags.team: (not set) → media"],
            id="tags of others",
        ),
        pytest.param({}, {"region": "eu"}, [], id="nothing observed yet"),
        pytest.param("odd", {"region": "eu"}, [], id="not an object"),
        pytest.param({"a": "x\x1b[31m"}, {"a": "y"}, ['a: "x\\u001b[31m" → y'], id="escapes"),
    ],
)
def test_differences(there: Any, order: Any, lines: list[str]) -> None:
    found = takeover_differences(bucket(there, order))

    assert [str(difference) for difference in found] == lines


def test_a_flood_of_differences_is_cut() -> None:
    order = {f"field{number}": "x" * 10_000 for number in range(500)}

    part = observed_part(bucket({"a": 1}, order))

    assert part is not None
    assert len(part.differences) == 50
    assert len(str(part.to_json())) < 20_000


@pytest.mark.parametrize(
    "policies", [("*",), ("Observe", "Create", "Update"), ("Observe", "Update")]
)
def test_what_is_managed_is_not_observed_only(policies: tuple[str, ...]) -> None:
    assert observed_part(bucket({"a": 1}, {"a": 2}, policies=policies)) is None


def test_an_object_without_policies_is_none() -> None:
    assert (
        observed_part({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}}) is None
    )


def test_it_says_why_nothing_was_found() -> None:
    live = bucket({}, {"region": "eu"})
    message = "observe failed: external resource does not exist"
    live["status"]["conditions"] = [{"type": "Synced", "status": "False", "message": message}]

    part = observed_part(live)

    assert part is not None
    assert part.to_json() == {
        "apiVersion": "s3.aws.m.upbound.io/v1beta1",
        "kind": "Bucket",
        "name": "b",
        "namespace": "team-a",
        "externalName": "photos",
        "found": False,
        "reason": message,
        "differences": [],
    }
    assert part.masked(lambda text: text.replace("external", "***")).reason != message
