"""What kit.yaml may say of fields that are picked, referred to or asked for later; and of ends."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

import pytest
import yaml

from ground.errors import RefusedError
from orderkit.core.kit.change_forms import change_named, form_data
from orderkit.core.kit.checked_kits import checked_kit, refusals
from orderkit.core.kit.form_values import names_alone, pattern_with
from orderkit.core.kit.kit_file import Survivor
from orderkit.core.kit.model import Kit
from orderkit.core.order.change import (
    FieldDifference,
    FieldEdit,
    judge_rules,
    refuse_unchanged,
    resolve,
)
from orderkit.core.order.change.change_fields import entered_edits
from orderkit_workshop.generate.kit_files import generate

SPEC: dict[str, Any] = {
    "type": "object",
    "required": ["name", "source"],
    "properties": {
        "name": {"type": "string", "pattern": "^[a-z]{1,20}$"},
        "source": {
            "type": "object",
            "required": ["ref"],
            "properties": {"ref": {"type": "string", "pattern": "^[a-z-]{1,20}$", "maxLength": 20}},
        },
        "mode": {"type": "string", "enum": ["on", "off"], "default": "on"},
        "keep": {"type": "boolean", "default": True},
    },
}
PICKED = {"picker": {"kind": "entity", "value": "name", "filter": {"kind": "Resource"}}}
GOOD: dict[str, Any] = {
    "nameFrom": "name",
    "fields": {
        "source.ref": {**PICKED, "refers": {"apiVersion": "x.org/v1", "kind": "Source"}},
        "mode": {"ask": "later"},
    },
    "changes": [
        {"name": "swap", "fields": ["source.ref"], "differs": True},
        {"name": "mode", "fields": ["mode", "keep"]},
    ],
    "end": {
        "first": {"set": {"mode": "off"}, "until": {"idle": True}, "why": "it lets go"},
        "survives": ["a log", {"text": "the disk", "unless": {"keep": False}}],
    },
}


def files(spec: dict[str, Any], *, scope: str = "Cluster") -> dict[PurePosixPath, bytes]:
    version = {
        "name": "v1",
        "served": True,
        "referenceable": True,
        "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": SPEC}}},
    }
    xrd = {
        "apiVersion": "apiextensions.crossplane.io/v2",
        "kind": "CompositeResourceDefinition",
        "metadata": {"name": "xlabs.x.org"},
        "spec": {
            "scope": scope,
            "group": "x.org",
            "names": {"kind": "XLab", "plural": "xlabs"},
            "versions": [version],
        },
    }
    kit = {
        "apiVersion": "orderkit.dev/v1alpha1",
        "kind": "Kit",
        "metadata": {"name": "lab"},
        "spec": spec,
    }
    return {
        PurePosixPath("gitops/apis/lab/definition.yaml"): yaml.safe_dump(xrd).encode(),
        PurePosixPath("templates/lab/kit.yaml"): yaml.safe_dump(kit).encode(),
    }


@pytest.fixture(scope="module")
def kit() -> Kit:
    return checked_kit("lab", files(GOOD))


@dataclass(frozen=True)
class Wrong:
    reason: str
    change: dict[str, Any]
    told: str
    scope: str = "Cluster"


WRONG = [
    Wrong(
        "a name of any kind says nothing",
        {"fields": {"source.ref": {"picker": {"kind": "entity", "value": "name"}}}},
        "more than one kind",
    ),
    Wrong("an order is named by no entity", {"fields": {"name": PICKED}}, "names the order"),
    Wrong(
        "only texts refer to objects",
        {"fields": {"keep": {"refers": {"apiVersion": "v1", "kind": "X"}}}},
        "cannot refer to an object",
    ),
    Wrong(
        "what the XRD requires is asked for", {"fields": {"source": {"ask": "later"}}}, "must be"
    ),
    Wrong(
        "an end sets values that there are",
        {"end": {"first": {"set": {"mode": "asleep"}}}},
        "is not a value of 'mode'",
    ),
    Wrong(
        "an end cannot wait for a review",
        {
            "changes": [{"name": "mode", "fields": ["mode"], "how": "review"}],
            "end": {"first": {"set": {"mode": "off"}}},
        },
        "committed directly",
    ),
    Wrong(
        "an end sets fields that there are",
        {"end": {"first": {"set": {"mood": "off"}}}},
        "is not a field of the XRD",
    ),
    Wrong(
        "survivors depend on fields that there are",
        {"end": {"survives": [{"text": "x", "unless": {"kept": True}}]}},
        "is not a field of the XRD",
    ),
    Wrong(
        "cluster-scoped XRs have no namespace",
        {"xrNamespace": "lab-{name}"},
        "live in a namespace",
    ),
    Wrong(
        "a namespace does not change",
        {"xrNamespace": "lab-{mode}"},
        "can change, a namespace not",
        "Namespaced",
    ),
]


@pytest.mark.parametrize("case", WRONG, ids=lambda case: case.reason)
def test_what_cannot_work_is_told(case: Wrong) -> None:
    found = tuple(refusals("lab", files({"nameFrom": "name", **case.change}, scope=case.scope)))

    assert any(case.told in str(each) for each in found), [str(each) for each in found]


def test_what_works_is_no_problem() -> None:
    assert tuple(refusals("lab", files(GOOD))) == ()
    named = files({**GOOD, "xrNamespace": "l-{name}"}, scope="Namespaced")
    assert tuple(refusals("lab", named)) == ()


def test_a_form_takes_a_reference_and_the_xr_gets_the_name(kit: Kit) -> None:
    made = generate(files(GOOD), kit)
    form = yaml.safe_load(made[PurePosixPath("templates/lab/template.yaml")])
    shown = form["spec"]["parameters"][0]["properties"]["source"]["properties"]["ref"]

    assert shown["pattern"] == "^(resource:default/)?[a-z-]{1,20}$"
    assert shown["maxLength"] == 20 + len("resource:default/")
    assert names_alone(kit, {"source": {"ref": "resource:default/a"}}) == {"source": {"ref": "a"}}
    assert names_alone(kit, {"source": {"ref": "a"}, "mode": "on"}) == {
        "source": {"ref": "a"},
        "mode": "on",
    }


@pytest.mark.parametrize("pattern", ["^a|b$", "a$", "^a"])
def test_a_pattern_that_cannot_be_widened_exactly_is_left_to_the_server(pattern: str) -> None:
    assert pattern_with("resource:default/", pattern) is None


def test_a_change_form_opens_with_the_reference_and_sends_no_edit_for_it(kit: Kit) -> None:
    held = {"name": "x", "source": {"ref": "a"}}
    change = change_named(kit, "swap")

    data = form_data(kit, change, order="lab-x", base="0" * 40, spec=held)

    assert data["source"] == {"ref": "resource:default/a"}
    assert entered_edits(kit, {"source": data["source"]}, shown_spec=held) == ()
    (edit,) = entered_edits(kit, {"source": {"ref": "resource:default/b"}}, shown_spec=held)
    assert edit == FieldEdit("source.ref", "set", "b")
    assert (
        resolve(kit, FieldEdit("source.ref", "set", "resource:default/b", typed=True)).value == "b"
    )


def test_what_is_asked_for_later_is_in_forms_of_changes_alone(kit: Kit) -> None:
    made = generate(files(GOOD), kit)
    order = made[PurePosixPath("templates/lab/template.yaml")].decode()
    xr = made[PurePosixPath("templates/lab/skeleton/manifests/xlab.yaml")].decode()
    change = made[PurePosixPath("day2/lab/mode.yaml")].decode()

    assert "mode" not in order
    assert "mode" not in xr
    assert "mode" in change


def test_asking_for_what_holds_is_refused_where_it_must_differ(kit: Kit) -> None:
    held = {"source": {"ref": "a"}, "mode": "on"}

    refuse_unchanged(kit, held, paths=["mode"])
    refuse_unchanged(kit, held, paths=[], change="mode")
    with pytest.raises(RefusedError, match=r"source\.ref is already a"):
        refuse_unchanged(kit, held, paths=["source.ref"])
    with pytest.raises(RefusedError, match=r"source\.ref is already a"):
        refuse_unchanged(kit, held, paths=[], change="swap")
    judge_rules(kit, [FieldDifference(("source", "ref"), "a", "b")], change="swap")


def test_a_kit_without_such_changes_refuses_nothing() -> None:
    plain = checked_kit("lab", files({"nameFrom": "name"}))

    refuse_unchanged(plain, {}, paths=["source.ref"])


@pytest.mark.parametrize(
    ("unless", "spec", "holds"),
    [
        ({}, {}, True),
        ({"keep": False}, {}, True),
        ({"keep": False}, {"keep": False}, False),
        ({"keep": False, "mode": "off"}, {"keep": False, "mode": "on"}, True),
    ],
)
def test_what_outlives_an_order_may_depend_on_its_fields(
    unless: dict[str, Any], spec: dict[str, Any], *, holds: bool
) -> None:
    assert Survivor("the disk", unless).holds(spec) is holds


def test_the_page_and_the_end_form_tell_what_comes_first_and_what_stays(kit: Kit) -> None:
    made = generate(files(GOOD), kit)
    page = made[PurePosixPath("docs/kits/lab.md")].decode()
    form = yaml.safe_load(made[PurePosixPath("day2/lab/end.yaml")])

    assert "Before that, `mode` becomes `off` (it lets go), and that is waited for." in page
    assert "- the disk. Not if `keep` is `false`." in page
    assert "(unless keep is false): the disk" in form["spec"]["parameters"][0]["description"]


def test_a_namespaced_xr_is_written_where_its_fields_say() -> None:
    spec = {**GOOD, "xrNamespace": "lab-{name}"}
    kit = checked_kit("lab", files(spec, scope="Namespaced"))
    made = generate(files(spec, scope="Namespaced"), kit)

    xr = made[PurePosixPath("templates/lab/skeleton/manifests/xlab.yaml")].decode()
    policy = made[PurePosixPath("gitops/apis/lab/policy.yaml")].decode()

    assert 'namespace: ${{ ("lab-" ~ values.spec.name) | dump }}' in xr
    assert kit.namespace_of({"name": "x"}) == "lab-x"
    assert "object.metadata.namespace == 'lab-' + string(variables.spec_name)" in " ".join(
        policy.split()
    )
