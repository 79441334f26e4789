"""Plans of stations that read a Secret of the cluster, and every shape of a plan."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from typing import Any

import pytest
from outcomes import Shop, an_xr, thing

from compositions.station import Station, StationRequest, StationResponse
from ground.names import CommitSha
from ground.objects.kube_objects import Manifest
from ground.secrets import forms_of
from orderkit.cli.views.plan_views import Screen, show
from orderkit.core.plan import Plan
from orderkit.core.plan.graph import graph_of, to_mermaid
from orderkit.core.plan.graph_svg import to_svg
from orderkit.core.plan.plan_json import plan_document
from orderkit.core.plan.plan_markdown import to_markdown
from orderkit.flows.composing.planner import OrderPlanner
from orderkit.flows.plan.fleet_orders import ObjectLookup
from orderkit.flows.plan.pull_requests import JudgedPlan, comment_text

CANARY = "Kan4rie-vogel/7"


def encoded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def secret(name: str, value: str = CANARY, **more: Any) -> Manifest:
    """Return a Secret of the cluster."""
    return thing("v1", "Secret", name, namespace="shop", data={"password": encoded(value)}, **more)


def required(use: Callable[[str, dict[str, Any], StationResponse], None]) -> Station:
    """Return a station that reads the password of a required Secret and does something with it."""

    def station(request: StationRequest) -> StationResponse:
        response = StationResponse.to(request)
        response.require("db", "v1", "Secret", match_name="db", namespace="shop")
        (found,) = request.required.get("db") or [None]
        password = base64.b64decode(found["data"]["password"]).decode() if found else ""
        use(password, request.xr["spec"], response)
        return response

    return station


def planned(station: Station, *objects: Manifest, old: Any = None, new: Any = None) -> Plan:
    """Return the plan of a change of an order on a cluster with these objects."""
    planner = OrderPlanner(ObjectLookup(objects), Shop(station).workshop)
    return planner.plan_step(an_xr(old or {"size": 1}), an_xr(new or {"size": 2}))


def views(plan: Plan, capsys: pytest.CaptureFixture[str]) -> str:
    """Return a plan in every shape that anybody gets to see."""
    for screen in (Screen(), Screen(full=True), Screen(width=60)):
        show("one", plan, None, screen)
    graph = graph_of(plan)
    judged = JudgedPlan(plan)
    shapes = [to_markdown(plan), to_mermaid(graph), to_svg(graph), judged.summary]
    shapes += [comment_text(judged, CommitSha("0" * 40)), repr(plan)]
    shapes.append(json.dumps(plan_document(plan).to_json()))
    return "\n".join([capsys.readouterr().out, *shapes])


def contained(text: str, value: str = CANARY) -> list[str]:
    """Return the forms of a value that a text contains."""
    return [form for form in sorted(forms_of(value)) if form in text]
