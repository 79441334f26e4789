"""No field's name gets in the way of a policy's own variables."""

from __future__ import annotations

import pytest
import yaml

from kubeschema.cel.expressions import Expression, bound
from orderkit.core.kit.pack import kit_of
from orderkit_workshop.generate.admission_policy import policy

OWN = ("team", "order", "before", "labelled", "tracked_by", "tracking_id", "order_before")


@pytest.mark.parametrize("name_from", [(), ("order",), ("team", "order")])
def test_fields_named_like_the_variables_of_rules_leave_policies_sound(
    name_from: tuple[str, ...],
) -> None:
    spec = {
        "type": "object",
        "required": list(OWN),
        "properties": {key: {"type": "string"} for key in OWN},
    }
    version = {
        "name": "v1",
        "served": True,
        "referenceable": True,
        "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}},
    }
    xrd = {
        "apiVersion": "apiextensions.crossplane.io/v2",
        "kind": "CompositeResourceDefinition",
        "metadata": {"name": "xthings.example.org"},
        "spec": {
            "scope": "Cluster",
            "group": "example.org",
            "names": {"kind": "XThing", "plural": "xthings"},
            "versions": [version],
        },
    }
    named = {"nameFrom": list(name_from)} if name_from else {}
    changes = [{"name": "never", "fields": list(OWN), "direction": "never"}]
    kit = kit_of("thing", {**named, "teamFrom": "team", "changes": changes}, xrd)
    (data,) = policy(kit).values()

    checked = 0
    for document in yaml.safe_load_all(data):
        variables = {
            one["name"]: one["expression"] for one in document["spec"].get("variables", ())
        }
        for rule in document["spec"].get("validations", ()):
            for text in (rule["expression"], rule["messageExpression"]):
                assert "cannot read" not in Expression(text, variables).evaluate(bound()).gap, text
                checked += 1
    assert checked > len(OWN)
