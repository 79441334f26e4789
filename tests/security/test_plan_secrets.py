"""
Somebody who may only read plans wants the values of Secrets.

Each attack is a station that brings a required, a live or a rendered Secret into some other field;
the plan is made as the service makes it, and written in every shape.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Callable, Sequence
from typing import Any
from urllib.parse import quote

import pytest
from outcomes import Shop, an_xr, config, thing, wrapping
from secretplans import CANARY, contained, encoded, planned, required, secret, views

from compositions.composed import RESOURCE_NAME_ANNOTATION
from compositions.station import StationRequest, StationResponse
from ground.objects.kube_objects import Manifest
from ground.secrets import MASK
from orderkit.core.plan import Code
from orderkit.core.plan.masking import AFTER, BEFORE
from orderkit.core.plan.plan_json import plan_document
from orderkit.flows.composing.planner import OrderPlanner
from orderkit.flows.plan.fleet_orders import ObjectLookup

HASH = hashlib.sha256(CANARY.encode()).hexdigest()


def copied(text: str, **more: str) -> Callable[[str, dict[str, Any], StationResponse], None]:
    """Return what brings the password into a ConfigMap: ``{}`` stands for it."""

    def use(password: str, spec: dict[str, Any], response: StationResponse) -> None:
        data = {"text": text.replace("{}", password), "size": str(spec["size"])}
        response.want("map", config(**data, **more))

    return use


def hashed(password: str) -> str:
    return hashlib.sha256(password.encode()).hexdigest()


def in_data(make: Callable[[str], Any]) -> Callable[[str, dict[str, Any], StationResponse], None]:
    """Return what writes something made of the password into a ConfigMap."""

    def use(password: str, spec: dict[str, Any], response: StationResponse) -> None:
        response.want("map", config(text=make(password), size=str(spec["size"])))

    return use


USES: dict[str, tuple[Callable[[str, dict[str, Any], StationResponse], None], str]] = {
    "a copy": (copied("{}"), CANARY),
    "in a URL": (in_data(lambda p: f"postgres://u:{quote(p, safe='')}@h/db"), CANARY),
    "in a config file": (copied("[db]\nuser = u\npassword = {}\n"), CANARY),
    "in base64": (in_data(encoded), CANARY),
    "inside longer base64": (in_data(lambda p: encoded(f"u:{p}")), CANARY),
    "in base64 of base64": (in_data(lambda p: encoded(encoded(p))), encoded(encoded(CANARY))),
    "in JSON": (in_data(lambda p: json.dumps({"a": p, "b": "ü"})), CANARY),
    "a hash": (in_data(hashed), HASH),
    "backwards": (in_data(lambda p: p[::-1]), CANARY[::-1]),
    "a part": (in_data(lambda p: p[:7]), CANARY[:7]),
    "its length": (in_data(lambda p: f"{len(p)} characters"), f"{len(CANARY)} characters"),
}


@pytest.mark.parametrize(("use", "leak"), USES.values(), ids=USES)
def test_what_follows_from_a_required_secret_is_masked(
    use: Callable[[str, dict[str, Any], StationResponse], None],
    leak: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    plan = planned(required(use), secret("db"))

    assert contained(views(plan, capsys), leak) == []
    assert plan.after.resources["map"]["data"] == {"text": MASK, "size": "2"}
    assert [(f.path, f.old, f.new) for f in plan.changes[0].fields] == [("data.size", "1", "2")]


def test_a_masked_field_still_says_that_it_changes(capsys: pytest.CaptureFixture[str]) -> None:
    use = in_data(lambda password: password)
    station = required(lambda p, spec, response: use(f"{p}{spec['size']}", spec, response))

    plan = planned(station, secret("db"))

    text = next(field for field in plan.changes[0].fields if field.path == "data.text")
    assert (text.old, text.new) == (BEFORE, AFTER)
    diff = plan_document(plan).to_json()["changes"][0]["diff"]
    assert diff["old"]["data"]["text"] != diff["new"]["data"]["text"]
    assert contained(views(plan, capsys)) == []


def spelt(password: str, _: dict[str, Any], response: StationResponse) -> None:
    """Compose one ConfigMap for each character."""
    for number, letter in enumerate(password):
        response.want(f"m{number}", config(f"m{number}", of=letter))


PLACES: dict[str, Callable[[str, dict[str, Any], StationResponse], None]] = {
    "a status": lambda p, s, r: r.merge_status({"db": {"url": f"u:{p}@h/{s['size']}"}}),
    "a condition": lambda p, _, r: r.add_condition("Db", "False", "No", f"cannot use {p}"),
    "a warning": lambda p, s, r: r.warning(f"{p} is too weak for {s['size']}"),
    "a refusal": lambda p, _, r: r.fatal(f"{p} is too weak"),
    "a refusal with a hash": lambda p, _, r: r.fatal(f"{hashed(p)} is too weak"),
    "a resource's name": lambda p, s, r: r.want(
        "map", config(f"of-{p.lower()}".replace("/", "-"), size=str(s["size"]))
    ),
    "a logical name": lambda p, s, r: r.want(
        f"map-{p}".replace("/", "-"), config(size=str(s["size"]))
    ),
    "the name of a key": lambda p, s, r: r.want("map", config(**{p: "x", "size": str(s["size"])})),
    "an annotation": lambda p, s, r: r.want(
        "map",
        thing("v1", "ConfigMap", namespace="shop", annotations={"checksum": hashed(p)}, data=s),
    ),
    "an image": lambda p, _, r: r.want(
        "pod",
        thing(
            "v1", "Pod", namespace="shop", spec={"containers": [{"name": "c", "image": f"r/{p}"}]}
        ),
    ),
    "a label": lambda p, _, r: r.want(
        "map", thing("v1", "ConfigMap", namespace="shop", labels={"p": p + "!" * 80})
    ),
    "a name that is asked for": lambda p, _, r: r.require(
        "more", "v1", "ConfigMap", match_name=f"of-{p}", namespace="shop"
    ),
    "a Secret": lambda p, s, r: r.want(
        "made",
        thing("v1", "Secret", namespace="shop", stringData={"url": f"u:{p}"}, type=f"t{s['size']}"),
    ),
    "a wrapped Secret": lambda p, s, r: r.want(
        "made", wrapping(thing("v1", "Secret", "in", stringData={"u": p, "size": str(s["size"])}))
    ),
    "a misspelt Secret": lambda p, _, r: r.want(
        "made", thing("v1", "Secret", namespace="shop", stringdata={"u": hashed(p)})
    ),
    "an existence": spelt,
}


@pytest.mark.parametrize("use", PLACES.values(), ids=PLACES)
def test_no_place_of_a_plan_shows_a_required_secret(
    use: Callable[[str, dict[str, Any], StationResponse], None],
    capsys: pytest.CaptureFixture[str],
) -> None:
    shown = views(planned(required(use), secret("db")), capsys)

    assert contained(shown) == []
    assert contained(shown, CANARY.lower().replace("/", "-")) == []
    assert contained(shown, CANARY.replace("/", "-")) == []
    assert HASH not in shown


@pytest.mark.parametrize("value", ["7", "on", "k7q"])
def test_a_short_secret_is_masked_where_it_was_used_and_nowhere_else(value: str) -> None:
    plan = planned(required(copied(f"pin {value}: {{}}", other=value)), secret("db", value))

    assert plan.after.resources["map"]["data"] == {"text": MASK, "size": "2", "other": value}


def live(name: str, manifest: Manifest) -> Manifest:
    """Return a composed object as the cluster has it."""
    meta = {**manifest["metadata"], "annotations": {RESOURCE_NAME_ANNOTATION: name}}
    return {**manifest, "metadata": {**manifest["metadata"], **meta}}


def living(*objects: Manifest, status: Any = None) -> Manifest:
    """Return the XR of the cluster, with references to what it composes."""
    references = [{"apiVersion": o["apiVersion"], "kind": o["kind"], **_home(o)} for o in objects]
    spec = {"size": 1, "crossplane": {"resourceRefs": references}}
    return {**an_xr(spec), "status": status or {}}


def _home(manifest: Manifest) -> dict[str, str]:
    return {key: manifest["metadata"][key] for key in ("name", "namespace")}


def test_what_a_station_copies_from_its_live_secret_is_masked(
    capsys: pytest.CaptureFixture[str],
) -> None:
    made = live("made", secret("made"))

    def station(request: StationRequest) -> StationResponse:
        response = StationResponse.to(request)
        observed = request.observed_resource("made")
        data = observed["data"] if observed else {"password": encoded("new")}
        response.want("made", thing("v1", "Secret", "made", namespace="shop", data=data))
        words = {"hash": hashed(data["password"]), "size": str(request.xr["spec"]["size"])}
        response.want("map", config(**words))
        response.merge_status({"password": data["password"]})
        return response

    plan = planned(station, living(made), made)

    shown = views(plan, capsys)
    assert contained(shown) == []
    assert hashed(encoded(CANARY)) not in shown
    assert plan.after.resources["map"]["data"] == {"hash": MASK, "size": "2"}


def test_the_name_that_a_new_object_would_get_is_masked(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """What exists keeps its name, so only a danger names the new one."""

    def use(password: str, spec: dict[str, Any], response: StationResponse) -> None:
        response.want("map", config(f"of-{hashed(password)}", size=str(spec["size"])))

    map_ = live("map", config("old", size="1"))

    plan = planned(required(use), secret("db"), living(map_), map_)

    assert Code.KEEPS_NAME in {danger.code for danger in plan.dangers}
    assert HASH not in views(plan, capsys)


def test_what_the_live_objects_say_is_masked(capsys: pytest.CaptureFixture[str]) -> None:
    """Nobody here composed these fields: they are found by the value itself."""
    applied = json.dumps(
        {"kind": "Secret", "apiVersion": "v1", "data": {"p": encoded("0lderKan4")}}
    )
    note = {"kubectl.kubernetes.io/last-applied-configuration": applied}
    made = secret("made")
    made = live("made", made)
    made["metadata"]["annotations"] |= note
    map_ = live("map", config("gone", url=f"u:{CANARY}@h", was="0lderKan4"))

    def station(request: StationRequest) -> StationResponse:
        response = StationResponse.to(request)
        for name in ("made", "map"):
            observed = request.observed_resource(name)
            if observed and request.xr["spec"]["size"] == 1:
                response.want(name, observed)
        response.merge_status({"seen": (request.xr.get("status") or {}).get("seen")})
        return response

    plan = planned(station, living(made, map_, status={"seen": f"u:{CANARY}"}), made, map_)

    shown = views(plan, capsys)
    assert contained(shown) == []
    assert contained(shown, "0lderKan4") == []
    assert [change.action for change in plan.changes] == ["removed", "removed"]


def test_a_rendered_secret_says_which_keys_change_and_no_value(
    capsys: pytest.CaptureFixture[str],
) -> None:
    def station(request: StationRequest) -> StationResponse:
        response, size = StationResponse.to(request), request.xr["spec"]["size"]
        values = {"same": f"{CANARY}-same", "other": f"{CANARY}-{size}"}
        sealed = {"immutable": True, "stringData": values, "data": {"d": encoded(values["other"])}}
        response.want("made", thing("v1", "Secret", "made", namespace="shop", **sealed))
        response.want("map", config(copy=values["other"]))
        return response

    plan = planned(station)

    shown = views(plan, capsys)
    assert contained(shown) == []
    fields = {f.path: (f.old, f.new) for f in plan.changes[0].fields}
    assert fields == {"stringData.other": (BEFORE, AFTER), "data.d": (BEFORE, AFTER)}
    codes = {danger.code for danger in plan.dangers}
    assert Code.IMMUTABLE in codes
    assert "stringData cannot change" in shown


def test_dangers_are_those_of_the_real_values() -> None:
    def station(request: StationRequest) -> StationResponse:
        response, size = StationResponse.to(request), request.xr["spec"]["size"]
        password = CANARY if size == 2 else "no"
        response.want("made", thing("v1", "Secret", "made", stringData={"p": CANARY}))
        response.want("map", config(copy=password))
        return response

    plan = planned(station)

    assert [danger.code for danger in plan.dangers] == [Code.EXPOSED]


def test_a_station_that_knows_its_secret_shows_no_field(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """It refuses every other value, so what follows from the Secret cannot be found out."""

    def use(password: str, spec: dict[str, Any], response: StationResponse) -> None:
        if password and not password.startswith(CANARY):
            response.fatal("wrong password")
        response.want("map", config(hash=hashed(password), size=str(spec["size"])))

    plan = planned(required(use), secret("db"))

    shown = views(plan, capsys)
    assert (contained(shown), HASH in shown) == ([], False)
    assert plan.after.resources["map"]["data"] == {"hash": MASK, "size": MASK}
    assert [f.path for f in plan.changes[0].fields] == ["data.size"]


@pytest.mark.parametrize(
    "value",
    [
        json.dumps({"user": "u", "password": CANARY, "port": 5432}),
        f"user: u\npassword: {CANARY}\n",
        f"USER=u\nPASSWORD={CANARY}\n",
        f"postgres://u:{quote(CANARY, safe='')}@h:5432/db",
    ],
)
def test_a_part_of_a_structured_secret_is_masked(
    value: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """The station reads the value, so the other values it is tried with have the same form."""

    def use(text: str, spec: dict[str, Any], response: StationResponse) -> None:
        words = text and (
            json.loads(text)["password"]
            if text.startswith("{")
            else re.split(r"password: |PASSWORD=|postgres://[^:]*:", text)[1]
        )
        response.want("map", config(hash=hashed(words), copy=words, size=str(spec["size"])))

    plan = planned(required(use), secret("db", value))

    assert contained(views(plan, capsys)) == []
    assert plan.after.resources["map"]["data"] == {"hash": MASK, "copy": MASK, "size": "2"}


@pytest.mark.parametrize(
    "value",
    [
        "=" * 50_000 + " " * 50_000,
        "\n" * 50_000 + "a: " + " " * 50_000 + "x",
        "a" * 100_000,
        json.dumps({f"key{number}": f"some value {number}" for number in range(5_000)}),
    ],
    ids=["separators", "blanks", "a word", "many parts"],
)
@pytest.mark.timeout(60)
def test_a_secret_that_was_made_to_be_slow_is_not(value: str) -> None:
    plan = planned(required(copied("{}")), secret("db", value))

    assert plan.after.resources["map"]["data"] == {"text": MASK, "size": "2"}


def test_a_nested_order_and_bytes_that_are_no_text_are_masked(
    capsys: pytest.CaptureFixture[str],
) -> None:
    raw = bytes(range(128, 160))

    def outer(request: StationRequest) -> StationResponse:
        response = StationResponse.to(request)
        response.require("db", "v1", "Secret", match_name="db", namespace="shop")
        (found,) = request.required.get("db") or [{"data": {"password": ""}}]
        text, size = found["data"]["password"], request.xr["spec"]["size"]
        part = {"apiVersion": "shop.example.org/v1", "kind": "XPart", "metadata": {"name": "p"}}
        hex_text = base64.b64decode(text).hex()
        response.want("part", {**part, "spec": {"hex": hex_text, "size": size}})
        return response

    def inner(request: StationRequest) -> StationResponse:
        response, spec = StationResponse.to(request), request.xr["spec"]
        response.want("map", config(hex=spec["hex"], size=str(spec["size"])))
        response.merge_status({"hash": hashed(spec["hex"])})
        return response

    made = secret("db")
    made["data"] = {"password": base64.b64encode(raw).decode()}
    shop = Shop(outer, nested={"part": inner}).workshop
    planner = OrderPlanner(ObjectLookup([made]), shop)
    plan = planner.plan_step(an_xr({"size": 1}), an_xr({"size": 2}))

    shown = views(plan, capsys)
    assert [leak for leak in (raw.hex(), hashed(raw.hex())) if leak in shown] == []
    assert plan.after.resources["part/map"]["data"] == {"hex": MASK, "size": "2"}


def test_without_secrets_nothing_is_masked() -> None:
    def station(request: StationRequest) -> StationResponse:
        response = StationResponse.to(request)
        response.want("map", config(size=str(request.xr["spec"]["size"])))
        return response

    assert MASK not in repr(planned(station))


OLD = "0ud-wachtwoord/3"
DRIFTED: dict[str, tuple[Sequence[Manifest], Manifest]] = {
    "a copy of a value that the Secret no longer has": (
        [secret("db")], config(text=OLD, size="1")
    ),
    "a copy of a Secret that is gone": ([], config(text=OLD, size="1")),
    "a checksum in an annotation": (
        [secret("db")], config(text=CANARY, size="1", annotations={"sum": hashed(OLD)})
    ),
}  # fmt: skip


@pytest.mark.parametrize(("secrets", "edited"), DRIFTED.values(), ids=DRIFTED)
def test_drift_shows_nothing_that_may_follow_from_a_secret(
    secrets: Sequence[Manifest], edited: Manifest, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nobody knows any more what the live value follows from."""

    def use(password: str, _spec: dict[str, Any], response: StationResponse) -> None:
        response.want("map", config(text=password, size="1", annotations={"sum": "x"}))

    found = live("map", edited)

    plan = planned(required(use), *secrets, living(found), found)

    text = views(plan, capsys)
    assert [drift.path for drift in plan.drift] == ["map"]
    assert contained(text, OLD) == []
    assert hashed(OLD) not in text


def test_a_live_part_that_goes_shows_nothing_that_may_follow_from_a_secret(
    capsys: pytest.CaptureFixture[str],
) -> None:
    gone = live("gone", config("gone", text=OLD))

    plan = planned(required(copied("{}")), secret("db"), living(gone), gone)

    assert {drift.path for drift in plan.drift} == {"gone", "map"}
    assert contained(views(plan, capsys), OLD) == []


def test_the_live_value_of_a_composed_secret_is_masked(capsys: pytest.CaptureFixture[str]) -> None:
    def station(request: StationRequest) -> StationResponse:
        response = StationResponse.to(request)
        text = {"stringData": {"password": "n3w-wachtwoord"}}
        response.want("made", thing("v1", "Secret", "made", namespace="shop", **text))
        return response

    made = live("made", secret("made", OLD))

    plan = planned(station, living(made), made)

    text = views(plan, capsys)
    assert [(field.path, field.old) for field in plan.drift[0].fields] == [
        ("stringData.password", BEFORE)
    ]
    assert contained(text, OLD) == []
    assert contained(text, "n3w-wachtwoord") == []
