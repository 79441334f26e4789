"""A part that is not ready until its provider writes its status is no danger: that passes."""

from __future__ import annotations

import pytest
from outcomes import Shop, an_xr, config, thing

from compositions.station import Ready, StationRequest, StationResponse
from orderkit.core.plan import Code, Plan
from orderkit.flows.composing.planner import OrderPlanner
from orderkit.flows.plan.fleet_orders import ObjectLookup


def adding(part: str, *, needs: str) -> Plan:
    """Return the plan of a change that adds a part that is ready once its status has a field."""
    given = {"forProvider": {"location": "EU"}}
    bucket = thing("storage.gcp.upbound.io/v1beta1", "Bucket", "bucket", spec=given)

    def station(request: StationRequest) -> StationResponse:
        response = StationResponse.to(request)
        response.want("map", config())
        if request.xr["spec"]["size"] > 1:
            observed = request.observed_resource(part) or {}
            is_ready = (observed.get("status") or {}).get(needs)
            made = bucket if part == "bucket" else config("other")
            response.want(part, made, ready=Ready.TRUE if is_ready else Ready.FALSE)
        return response

    planner = OrderPlanner(ObjectLookup([]), Shop(station).workshop)
    return planner.plan_step(an_xr({"size": 1}), an_xr({"size": 2}))


def test_a_part_that_waits_for_its_provider_is_not_known() -> None:
    plan = adding("bucket", needs="atProvider")

    assert plan.readiness == "not known"
    assert Code.NOT_READY not in {danger.code for danger in plan.dangers}
    [told] = [text for text in plan.unknowns if "its provider decides" in text]
    assert "(bucket)" in told


@pytest.mark.parametrize(("part", "needs"), [("map2", "atProvider"), ("map2", "never")])
def test_a_part_that_never_gets_ready_is_a_danger(part: str, needs: str) -> None:
    plan = adding(part, needs=needs)

    assert plan.readiness == "not Ready"
    assert Code.NOT_READY in {danger.code for danger in plan.dangers}
