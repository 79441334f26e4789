"""A plan refuses what a server or a provider will refuse: place, rule and way out."""

from __future__ import annotations

from typing import Any

import pytest
from outcomes import Shop, an_xr, thing

from compositions.composed import RESOURCE_NAME_ANNOTATION
from compositions.station import StationRequest, StationResponse
from ground.objects.kube_objects import Manifest
from kubeschema.known import Behaviour, refused_updates
from orderkit.core.plan import Code, Plan
from orderkit.core.plan.composed_tree import PackRules
from orderkit.core.plan.judging import OutcomeRule
from orderkit.core.plan.plan_markdown import to_markdown
from orderkit.flows.composing.planner import OrderPlanner
from orderkit.flows.plan.fleet_orders import ObjectLookup

TABLES = "dynamodb.aws.upbound.io"
LAWS = PackRules(behaviours={(TABLES, "Table"): Behaviour(replaces=("hashKey",))})


def stateful(service: str, replicas: int) -> Manifest:
    template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": []}}
    spec = {"serviceName": service, "replicas": replicas, "template": template}
    spec |= {"selector": {"matchLabels": {"a": "b"}}}
    return thing("apps/v1", "StatefulSet", "it", namespace="shop", spec=spec)


def table(key: str, replicas: int) -> Manifest:
    given = {"hashKey": key, "readCapacity": replicas}
    return thing(f"{TABLES}/v1beta1", "Table", "it", spec={"forProvider": given})


def planned(make: Any, old: str, new: str, *, delivered: bool = True) -> Plan:
    def station(request: StationRequest) -> StationResponse:
        response, spec = StationResponse.to(request), request.xr["spec"]
        response.want("it", make(spec["name"], spec["size"]))
        return response

    live = make(old, 1)
    live["metadata"]["annotations"] = {RESOURCE_NAME_ANNOTATION: "it"}
    home = {key: live["metadata"][key] for key in ("name", "namespace") if key in live["metadata"]}
    reference = {"apiVersion": live["apiVersion"], "kind": live["kind"], **home}
    spec = {"name": old, "size": 1}
    root = an_xr({**spec, "crossplane": {"resourceRefs": [reference]}})
    planner = OrderPlanner(
        ObjectLookup([root, live] if delivered else []), Shop(station, laws=LAWS).workshop
    )
    return planner.plan_step(an_xr(spec), an_xr({"name": new, "size": 2}))


def refusals(plan: Plan) -> list[tuple[str, str]]:
    codes = {OutcomeRule.IMMUTABLE, OutcomeRule.REPLACES}
    return [(fault.code, fault.where) for fault in plan.faults if fault.code in codes]


@pytest.mark.parametrize(
    ("make", "place", "words"),
    [
        (
            stateful,
            ("immutable", "it.spec.serviceName"),
            "serviceName cannot change",
        ),
        (table, ("needs-replacement", "it.spec.forProvider.hashKey"), "a provider never replaces"),
    ],
)
def test_what_will_be_refused_is_refused(make: Any, place: tuple[str, str], words: str) -> None:
    plan = planned(make, "a", "b")

    assert refusals(plan) == [place]
    [fault] = [fault for fault in plan.faults if fault.code == place[0]]
    assert (words in fault.message, "put the old value back" in fault.hint) == (True, True)
    assert not [d for d in plan.dangers if d.code in (Code.IMMUTABLE, Code.REPLACES)], "said once"
    assert f"({place[0]})" in to_markdown(plan)
    assert "Ready in the end" not in to_markdown(plan)


@pytest.mark.parametrize("make", [stateful, table])
def test_other_fields_change(make: Any) -> None:
    assert refusals(planned(make, "a", "a")) == []


@pytest.mark.parametrize("make", [stateful, table])
def test_what_is_not_there_yet_is_made_with_the_new_value(make: Any) -> None:
    assert refusals(planned(make, "a", "b", delivered=False)) == []


@pytest.mark.parametrize(
    ("was", "now", "refused"),
    [
        ("10.0.0.1", "10.0.0.1", []),
        ("", "10.0.0.1", []),
        ("10.0.0.1", "", []),
        ("10.0.0.1", "10.0.0.2", ["spec.clusterIP"]),
    ],
)
def test_a_service_keeps_the_address_that_it_has(was: str, now: str, refused: list[str]) -> None:
    old, new = (
        thing("v1", "Service", "it", namespace="shop", spec={"clusterIP": address})
        for address in (was, now)
    )

    assert [update.field for update in refused_updates(old, new)] == refused
