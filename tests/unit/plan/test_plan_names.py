"""A new order's names are worked out only where they could be others, and nothing is missed."""

from __future__ import annotations

from typing import Any

import pytest
from outcomes import GROUP, definition

from compositions.composed import PipelineStep
from compositions.python_functions import STATION_FUNCTION, python_functions
from compositions.station import INPUT, StationRequest, StationResponse
from ground.objects.kube_objects import Manifest
from kubeschema.validate import Validator
from orderkit.core.plan import AssemblyContext, Blueprint, Code, assemble, compare

XRD = definition("XShop")


def station(request: StationRequest) -> StationResponse:
    """Want one ConfigMap with the metadata that the spec gives."""
    response = StationResponse.to(request)
    response.want(
        "map", {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {**request.xr["spec"]["meta"]}}
    )
    return response


def workshop() -> AssemblyContext:
    called = {"apiVersion": INPUT.api_version, "kind": INPUT.kind, "name": "shop"}
    steps = (PipelineStep("main", STATION_FUNCTION, called),)
    blueprint = Blueprint(Validator(XRD), steps)
    return AssemblyContext({(GROUP, "XShop"): blueprint}, python_functions({"shop": station}))


def an_xr(meta: dict[str, Any]) -> Manifest:
    xr = {"apiVersion": f"{GROUP}/v1", "kind": "XShop", "metadata": {"name": "one"}}
    return {**xr, "spec": {"meta": meta}}


HOME = {"namespace": "shop"}


@pytest.mark.parametrize(
    ("old", "new", "renamed"),
    [
        ({"name": "a"}, {"name": "a"}, False),
        ({"name": "a"}, {"name": "b"}, True),
        ({"name": "a", **HOME}, {"name": "a", "namespace": "other"}, True),
        ({"name": "a", **HOME}, {"name": "a"}, True),
        ({}, {}, False),
        ({"name": "a"}, {}, True),
        ({"generateName": "a-"}, {"generateName": "a-"}, False),
        ({"generateName": "a-"}, {"generateName": "b-"}, True),
        ({"generateName": "a-"}, {"name": "a"}, True),
    ],
)
def test_where_names_could_differ_a_new_order_is_worked_out(
    old: dict[str, Any], new: dict[str, Any], *, renamed: bool
) -> None:
    shop = workshop()
    before = assemble(an_xr(old), shop)
    after = assemble(an_xr(new), shop, observed=before.observed)
    fresh = assemble(an_xr(new), shop)

    always = compare(before, after, fresh=fresh).dangers
    seldom = compare(before, after, fresh=fresh if after.renamed else after).dangers

    assert after.renamed is renamed
    assert always == seldom
    assert renamed is (Code.KEEPS_NAME in {danger.code for danger in always})
