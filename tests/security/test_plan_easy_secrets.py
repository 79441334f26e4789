"""
Secrets also have values that everybody knows: plans mask these by where they come from.

What is hard to guess is masked wherever it stands (``test_plan_secrets``).
"""

from __future__ import annotations

import base64
import json
from random import Random
from string import ascii_letters, digits
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from outcomes import GROUP, Shop, an_xr, config, thing
from secretplans import CANARY, contained, encoded, planned, required, secret, views

from compositions.station import Station, StationRequest, StationResponse
from ground.objects.kube_objects import Manifest
from ground.secrets import MASK
from orderkit.core.plan import Code, Plan
from orderkit.core.plan.composed_tree import PackRules
from orderkit.core.plan.masking import FOLLOWS
from orderkit.core.plan.plan_json import plan_document
from orderkit.core.plan.plan_markdown import to_markdown
from orderkit.flows.composing.planner import OrderPlanner
from orderkit.flows.plan.fleet_orders import ObjectLookup

POSTGRES = {"username": "postgres", "password": "postgres", "host": "orders-db", "port": "5432"}
"""A Secret as charts and operators write it."""


def connection(**values: str) -> Manifest:
    """Return a Secret of the cluster with these values."""
    data = {key: encoded(text) for key, text in values.items()}
    return thing("v1", "Secret", "db", namespace="shop", data=data)


def served(request: StationRequest) -> StationResponse:
    """Compose a database: names, keys and an image say ``postgres``, one field by a Secret."""
    response, size = StationResponse.to(request), str(request.xr["spec"]["size"])
    response.require("db", "v1", "Secret", match_name="db", namespace="shop")
    (found,) = request.required.get("db") or [{"data": {}}]
    read = {key: base64.b64decode(text).decode() for key, text in found["data"].items()}
    containers = [{"name": "postgres", "image": f"postgres:1{size}"}]
    response.want("postgres", thing("v1", "Pod", "postgres-0", spec={"containers": containers}))
    url = "postgres://{username}:{password}@{host}:{port}/app".format(**read) if read else ""
    words = {"postgres.conf": f"port = 5432 # {size}", "url": url, "user": read.get("username", "")}
    response.want("map", config("postgres", **words))
    response.merge_status({"address": f"postgres.shop.example.org:{size}", "url": url})
    return response


def test_what_everybody_knows_is_masked_only_where_it_comes_from_the_secret(
    capsys: pytest.CaptureFixture[str],
) -> None:
    plan = planned(served, connection(**POSTGRES))

    shown = views(plan, capsys)
    containers = plan.after.resources["postgres"]["spec"]["containers"]
    assert containers == [{"name": "postgres", "image": "postgres:12"}]
    assert plan.after.resources["map"]["metadata"]["name"] == "postgres"
    assert plan.after.resources["map"]["data"] == {
        "postgres.conf": "port = 5432 # 2", "url": MASK, "user": MASK,
    }  # fmt: skip
    assert plan.after.xr["status"]["address"] == "postgres.shop.example.org:2"
    assert plan.after.xr["status"]["url"] == MASK
    assert "postgres://" not in shown
    assert "postgres:11 → postgres:12" in shown
    assert not [danger for danger in plan.dangers if danger.code is Code.EXPOSED]


@pytest.mark.parametrize("password", ["postgres", "hunter2", "admin123", "7"])
def test_a_password_that_is_easy_to_guess_is_masked_in_what_is_made_of_it(
    password: str, capsys: pytest.CaptureFixture[str]
) -> None:
    plan = planned(served, connection(**{**POSTGRES, "password": password, "username": "u"}))

    assert plan.after.resources["map"]["data"]["url"] == MASK
    assert f":{password}@" not in views(plan, capsys)


@pytest.mark.parametrize(
    ("key", "value", "is_told", "reason"),
    [
        ("password", "changeme", True, "a copy of a password is told, easy to guess or not"),
        ("username", "postgres", False, "a user name is no secret"),
        ("pin", "47", False, "too short to be found in a text"),
    ],
)
def test_a_copy_of_a_value_that_is_easy_to_guess_is_a_danger(
    key: str, value: str, *, is_told: bool, reason: str
) -> None:
    def station(request: StationRequest) -> StationResponse:
        response, size = StationResponse.to(request), request.xr["spec"]["size"]
        response.require("db", "v1", "Secret", match_name="db", namespace="shop")
        (found,) = request.required.get("db") or [connection()]
        text = base64.b64decode(found["data"].get(key, "")).decode() if size == 2 else "-"
        response.want("map", config(image="changeme:1", copy=f"u:{text}@h"))
        return response

    plan = planned(station, connection(**{key: value}))

    told = [danger.message for danger in plan.dangers if danger.code is Code.EXPOSED]
    assert told == ["ConfigMap shop/map: data contains the value of a Secret"] * is_told, reason


def test_a_sentence_about_a_resource_has_no_text_of_its_masked_fields(
    capsys: pytest.CaptureFixture[str],
) -> None:
    def use(password: str, spec: dict[str, Any], response: StationResponse) -> None:
        size = {"requests": {"storage": f"{password}Gi" if spec["size"] == 1 else "1Gi"}}
        claim = thing("v1", "PersistentVolumeClaim", "c", spec={"resources": size})
        response.want("claim", claim)

    shown = views(planned(required(use), secret("db", "4711")), capsys)

    assert Code.SHRINKS in shown
    assert "4711" not in shown


def test_what_a_kit_declares_public_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    laws = PackRules(public_keys={(GROUP, "XShop"): frozenset({"username", "host", "port"})})
    secret_ = connection(**{**POSTGRES, "username": "r7nd0m-Us3r", "password": CANARY})

    def station(request: StationRequest) -> StationResponse:
        response = served(request)
        response.want("made", thing("v1", "Secret", "made", stringData={**POSTGRES, "n": "1"}))
        return response

    planner = OrderPlanner(ObjectLookup([secret_]), Shop(station, laws=laws).workshop)
    plan = planner.plan_step(an_xr({"size": 1}), an_xr({"size": 2}))

    data = plan.after.resources["map"]["data"]
    assert (data["user"], data["url"]) == ("r7nd0m-Us3r", MASK)
    assert plan.after.resources["made"]["stringData"] == {
        "username": "postgres", "password": MASK, "host": "orders-db", "port": "5432", "n": MASK,
    }  # fmt: skip
    assert contained(views(plan, capsys)) == []


@settings(max_examples=15, deadline=None)
@given(
    username=st.sampled_from(["postgres", "admin", "app", "root", "garage"]),
    seed=st.integers(),
    length=st.integers(12, 40),
)
def test_public_words_stay_and_random_values_go(username: str, seed: int, length: int) -> None:
    """Whatever the station makes of them, and whatever live objects say."""
    password = "".join(Random(seed).choices(ascii_letters + digits, k=length))  # noqa: S311 - of a test
    plan = planned(served, connection(**{**POSTGRES, "username": username, "password": password}))

    shown = "\n".join([to_markdown(plan), json.dumps(plan_document(plan).to_json()), repr(plan)])
    assert contained(shown, password) == []
    assert f"{username}:{password[:5]}" not in shown
    assert plan.after.resources["postgres"]["spec"]["containers"][0]["image"] == "postgres:12"
    assert plan.after.xr["status"]["address"] == "postgres.shop.example.org:2"


def planned_new(station: Station, *objects: Manifest) -> Plan:
    xr = an_xr({"size": 1})
    del xr["metadata"]["uid"]
    return OrderPlanner(ObjectLookup(objects), Shop(station).workshop).plan_new(xr)


def test_a_generated_name_beside_a_secret_is_said_to_follow_from_a_uid() -> None:
    def station(request: StationRequest) -> StationResponse:
        response = StationResponse.to(request)
        for path, kind in (("login", "Secret"), ("sheet", "ConfigMap")):
            response.want(path, {"apiVersion": "v1", "kind": kind, "metadata": {"namespace": "a"}})
        response.require("db", "v1", "Secret", match_name="db", namespace="shop")
        return response

    plan = planned_new(station, secret("db"))

    because = "metadata.name follows from a uid that only the cluster gives"
    assert {f"login.{because}", f"sheet.{because}"} <= {*plan.unknowns}
    assert FOLLOWS not in plan.unknowns


def test_a_field_that_follows_from_a_uid_and_is_named_by_a_secret_is_not_named() -> None:
    def station(request: StationRequest) -> StationResponse:
        response = StationResponse.to(request)
        response.require("db", "v1", "Secret", match_name="db", namespace="shop")
        (found,) = request.required.get("db") or [None]
        pin = base64.b64decode(found["data"]["password"]).decode() if found else "none"
        response.want("sheet", config("sheet", **{pin: str(request.xr["metadata"].get("uid"))}))
        return response

    plan = planned_new(station, secret("db", "pin-815"))

    assert FOLLOWS in plan.unknowns
    assert "pin-815" not in repr(plan)
