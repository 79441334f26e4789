"""What a change does, down to composed resources: assembled before and after, and compared."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from compositions.composed import PipelineStep
from compositions.python_functions import AUTO_READY_FUNCTION, STATION_FUNCTION, python_functions
from compositions.station import INPUT, Station, StationRequest, StationResponse
from ground.objects.kube_objects import Manifest
from kubeschema.validate import Validator
from orderkit.core.plan import (
    Action,
    Assembly,
    AssemblyContext,
    Blueprint,
    Code,
    Plan,
    assemble,
    compare,
)
from orderkit.core.plan.plan_json import exit_code, plan_document
from orderkit.core.plan.plan_markdown import MAX_CHARACTERS, to_markdown

Wants = Mapping[str, Manifest]
GROUP = "shop.example.org"
STATION = {"apiVersion": INPUT.api_version, "kind": INPUT.kind}


def xrd(kind: str, scope: str = "Cluster") -> Manifest:
    fields = {
        "size": {"type": "integer", "maximum": 9},
        "mode": {"type": "string", "default": "plain"},
        "name": {"type": "string"},
    }
    return {
        "apiVersion": "apiextensions.crossplane.io/v2",
        "kind": "CompositeResourceDefinition",
        "metadata": {"name": f"{kind.lower()}s.{GROUP}"},
        "spec": {
            "group": GROUP,
            "scope": scope,
            "names": {"kind": kind, "plural": f"{kind.lower()}s"},
            "versions": [
                {
                    "name": "v1",
                    "served": True,
                    "referenceable": True,
                    "schema": {
                        "openAPIV3Schema": {
                            "type": "object",
                            "properties": {
                                "spec": {"type": "object", "properties": fields},
                                "status": {
                                    "type": "object",
                                    "properties": {
                                        "count": {"type": "integer"},
                                        "first": {"type": "integer"},
                                    },
                                },
                            },
                        }
                    },
                }
            ],
        },
    }


def an_xr(**spec: Any) -> Manifest:
    meta = {"name": "one", "uid": "11111111-0000-0000-0000-000000000000"}
    return {"apiVersion": f"{GROUP}/v1", "kind": "XShop", "metadata": meta, "spec": spec}


def wanting(wants: Callable[[dict[str, Any]], Wants]) -> Station:
    """Return a station that wants what a function of the spec says."""

    def station(request: StationRequest) -> StationResponse:
        response = StationResponse.to(request)
        for name, manifest in wants(request.xr["spec"]).items():
            response.want(name, copy.deepcopy(manifest))
        return response

    return station


def a_workshop(station: Station, **nested: Station) -> AssemblyContext:
    """Return what assembles XShops by `station`, and each nested kind by its own."""
    stations = {"xshop": station, **nested}
    functions = python_functions(stations)
    kinds = {"xshop": "XShop"} | {name: f"X{name.title()}" for name in nested}
    return AssemblyContext(
        {
            (GROUP, kind): Blueprint(
                Validator(xrd(kind)),
                (
                    PipelineStep("main", STATION_FUNCTION, {**STATION, "name": name}),
                    PipelineStep("ready", AUTO_READY_FUNCTION),
                ),
            )
            for name, kind in kinds.items()
        },
        functions,
    )


def a_plan(station: Station, old: dict[str, Any], new: dict[str, Any], **nested: Station) -> Plan:
    workshop = a_workshop(station, **nested)
    before = assemble(an_xr(**old), workshop)
    after = assemble(an_xr(**new), workshop, observed=before.observed)
    return compare(before, after, fresh=assemble(an_xr(**new), workshop))


def config(name: str, **data: str) -> Manifest:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": "shop"},
        "data": data,
    }


def of_kind(kind: str, api: str = "example.org/v1", **spec: Any) -> Manifest:
    return {"apiVersion": api, "kind": kind, "metadata": {"name": kind.lower()}, "spec": spec}


def actions(plan: Plan) -> dict[str, Action]:
    return {each.path: each.action for each in plan.changes}


def codes(plan: Plan) -> set[tuple[str, Code]]:
    return {(each.path, each.code) for each in plan.dangers}


def sized(spec: dict[str, Any]) -> Wants:
    return {f"map-{n}": config(f"map-{n}", mode=spec["mode"]) for n in range(spec["size"])}


def test_what_comes_goes_and_changes_is_told_by_resource_and_field() -> None:
    plan = a_plan(wanting(sized), {"size": 2}, {"size": 3, "mode": "fancy"})

    assert actions(plan) == {
        "map-0": Action.CHANGED, "map-1": Action.CHANGED, "map-2": Action.ADDED,
    }  # fmt: skip
    assert [str(field) for field in plan.changes[0].fields] == ["data.mode plain → fancy"]
    assert [field.path for field in plan.fields] == ["size", "mode"]
    assert plan.summary == "1 added, 2 changed, 0 unchanged"
    assert plan.after.ready
    assert exit_code(plan) == 10


def test_what_goes_is_told() -> None:
    plan = a_plan(wanting(sized), {"size": 3}, {"size": 1})

    assert actions(plan) == {"map-1": Action.REMOVED, "map-2": Action.REMOVED}
    assert plan.unchanged == 1


def test_the_same_order_changes_nothing() -> None:
    plan = a_plan(wanting(sized), {"size": 2}, {"size": 2, "mode": "plain"})

    assert (plan.changes, plan.status, plan.faults) == ((), (), ())
    assert exit_code(plan) == 0
    assert plan.summary == "2 unchanged"


def test_a_list_of_the_same_length_is_compared_element_by_element() -> None:
    def wants(spec: dict[str, Any]) -> Wants:
        ports = [{"name": "web", "port": 80}, {"name": "api", "port": 8000 + spec["size"]}]
        return {"service": of_kind("Thing", ports=ports)}

    plan = a_plan(wanting(wants), {"size": 1}, {"size": 2})

    assert [str(field) for field in plan.changes[0].fields] == ["spec.ports[1].port 8001 → 8002"]


def test_gated_resources_appear_and_in_their_order() -> None:
    def station(request: StationRequest) -> StationResponse:
        response = StationResponse.to(request)
        if request.xr["spec"]["size"]:
            response.want("first", config("first"))
        if request.observed_resource("first") is not None:
            response.want("second", config("second"))
        return response

    plan = a_plan(station, {"size": 0}, {"size": 1})

    assert plan.waves == (("first",), ("second",))
    assert "In this order: `first`; then `second`." in to_markdown(plan)


def test_nested_xrs_are_expanded_and_their_status_is_given_back() -> None:
    def outer(request: StationRequest) -> StationResponse:
        response = StationResponse.to(request)
        inner = {"size": request.xr["spec"]["size"]}
        response.want("part", {**of_kind("XPart", f"{GROUP}/v1"), "spec": inner})
        part = request.observed_resource("part") or {}
        seen = (part.get("status") or {}).get("count")
        if seen is not None:
            response.want("told", config("told", count=str(seen)))
        return response

    def inner(request: StationRequest) -> StationResponse:
        response = StationResponse.to(request)
        for name, manifest in sized({"mode": "inner", **request.xr["spec"]}).items():
            response.want(name, manifest)
        response.merge_status({"count": request.xr["spec"]["size"]})
        return response

    plan = a_plan(outer, {"size": 1}, {"size": 2}, part=inner)

    assert actions(plan) == {
        "part": Action.CHANGED, "part/map-1": Action.ADDED, "told": Action.CHANGED,
    }  # fmt: skip
    assert [str(f) for f in plan.changes[-1].fields] == ["data.count 1 → 2"]
    assert plan.after.ready


def following(next_size: Callable[[int | None], int]) -> Station:
    """Return a station whose nested XR gets a size by the count that it shows."""

    def station(request: StationRequest) -> StationResponse:
        response = StationResponse.to(request)
        shown = (request.observed_resource("part") or {}).get("status") or {}
        spec = {"size": next_size(shown.get("count"))}
        response.want("part", {**of_kind("XPart", f"{GROUP}/v1"), "spec": spec})
        return response

    return station


def counting(calls: list[int]) -> Station:
    """Return a station that shows its size, and notes each call; only of size 1 it shows more."""

    def station(request: StationRequest) -> StationResponse:
        response = StationResponse.to(request)
        size = request.xr["spec"]["size"]
        calls.append(size)
        response.merge_status({"count": size, **({"first": 1} if size == 1 else {})})
        return response

    return station


def test_a_nested_xr_is_assembled_once_for_all_rounds_that_want_it_the_same() -> None:
    calls: list[int] = []

    found = assemble(an_xr(), a_workshop(following(lambda _: 3), part=counting(calls)))

    assert found.ready
    assert calls == [3, 3], "once to show it, once to see that nothing moves"


def test_what_a_nested_xr_shows_is_of_what_it_was_given_last() -> None:
    nested = counting([])

    found = assemble(
        an_xr(), a_workshop(following(lambda shown: min(3, (shown or 0) + 1)), part=nested)
    )

    shown = found.observed["part"]["status"]
    assert (shown["count"], shown.get("first")) == (3, None), "the rounds before left nothing"
    assert found.ready


def test_xrs_that_never_let_each_other_settle_are_told() -> None:
    found = assemble(
        an_xr(), a_workshop(following(lambda shown: (shown or 0) % 2 + 1), part=counting([]))
    )

    assert found.unknowns == ("the pipeline did not settle within 20 rounds",)
    assert found.readiness == "not Ready"


def test_a_nested_xr_remembers_what_its_status_held() -> None:
    """A station may live on from what it wrote before, in a nested XR as in the order itself."""

    def outer(spec: dict[str, Any]) -> Wants:
        return {"part": {**of_kind("XPart", f"{GROUP}/v1"), "spec": {"size": spec["size"]}}}

    def inner(request: StationRequest) -> StationResponse:
        response = StationResponse.to(request)
        known = request.xr.get("status") or {}
        response.merge_status({"first": known.get("first", request.xr["spec"]["size"])})
        return response

    plan = a_plan(wanting(outer), {"size": 1}, {"size": 2}, part=inner)

    assert plan.after.observed["part"]["spec"]["size"] == 2
    assert plan.after.observed["part"]["status"]["first"] == 1


@pytest.mark.parametrize(
    ("status", "field", "reason"),
    [
        ({"second": 2}, "status.second", "Crossplane applies the status: an unknown field fails"),
        ({"first": "2"}, "status.first", "so does another type"),
    ],
)
def test_a_status_that_the_xrd_does_not_have_is_a_fault(
    status: dict[str, Any], field: str, reason: str
) -> None:
    def station(request: StationRequest) -> StationResponse:
        response = StationResponse.to(request)
        response.merge_status(status)
        return response

    found = assemble(an_xr(size=1), a_workshop(station))

    assert [fault.field for fault in found.faults] == [field], reason


def test_a_nested_xr_that_the_api_server_would_refuse_is_a_fault() -> None:
    def outer(spec: dict[str, Any]) -> Wants:
        return {"part": {**of_kind("XPart", f"{GROUP}/v1"), "spec": {"size": spec["size"] * 5}}}

    plan = a_plan(wanting(outer), {"size": 1}, {"size": 2}, part=wanting(lambda _: {}))

    assert [(fault.path, fault.field) for fault in plan.faults] == [("part", "spec.size")]
    assert exit_code(plan) == 4
    assert plan_document(plan).to_json()["errors"][0]["validationFailures"][0]["kind"] == "XPart"


def test_a_step_that_does_not_run_here_is_told_and_passed_by() -> None:
    workshop = a_workshop(wanting(sized))
    blueprint = workshop.blueprints[GROUP, "XShop"]
    steps = (PipelineStep("templates", "function-go-templating"), *blueprint.steps)
    opaque = AssemblyContext(
        {(GROUP, "XShop"): Blueprint(blueprint.validator, steps)}, workshop.functions
    )

    found = assemble(an_xr(size=1), opaque)

    assert set(found.resources) == {"map-0"}
    assert any("function-go-templating runs in the cluster only" in t for t in found.unknowns)


def test_a_required_resource_that_is_not_there_is_told() -> None:
    def station(request: StationRequest) -> StationResponse:
        response = StationResponse.to(request)
        response.require("facts", "v1", "ConfigMap", match_name="facts", namespace="shop")
        return response

    found = assemble(an_xr(size=1), a_workshop(station))

    assert found.unknowns == ("ConfigMap shop/facts is required and does not exist",)
    assert [each.name for each in found.requirements] == ["facts"]


def test_a_station_that_fails_is_a_fault_in_its_words() -> None:
    def station(request: StationRequest) -> StationResponse:
        response = StationResponse.to(request)
        if request.xr["spec"]["size"] > 1:
            response.fatal("no stock for this size")
        else:
            response.want("map", config("map"))
        return response

    plan = a_plan(station, {"size": 1}, {"size": 2})

    assert "no stock for this size" in plan.faults[0].message
    assert not plan.changes, "a fatal result deletes nothing"
    assert not plan.dangers
    assert not plan.after.ready
    assert exit_code(plan) == 4


@pytest.mark.parametrize(
    ("old", "new", "code", "reason"),
    [
        (of_kind("Bucket", "storage.gcp.m.upbound.io/v1beta1"), None, Code.DATA_LOSS, "a bucket"),
        (of_kind("PersistentVolumeClaim", "v1"), None, Code.DATA_LOSS, "a claim's volume"),
        (of_kind("Namespace", "v1"), None, Code.DATA_LOSS, "everything in it"),
        (of_kind("Instance", "rds.aws.m.upbound.io/v1beta1"), None, Code.DATA_LOSS, "a database"),
        (
            of_kind("Bucket", managementPolicies=["Observe", "Create", "Update"]),
            None, Code.ABANDONED, "its policies never delete it",
        ),
        (of_kind("Bucket", deletionPolicy="Orphan"), None, Code.ABANDONED, "it is orphaned"),
        (
            of_kind("Object", "kubernetes.m.crossplane.io/v1alpha1",
                    forProvider={"manifest": of_kind("PersistentVolumeClaim", "v1")}),
            None, Code.DATA_LOSS, "it wraps a claim",
        ),
        (of_kind("Role", "example.org/v1"), of_kind("Grant"), Code.ABANDONED, "another kind"),
        (
            of_kind("Deployment", "apps/v1", selector={"matchLabels": {"a": "1"}}),
            of_kind("Deployment", "apps/v1", selector={"matchLabels": {"a": "2"}}),
            Code.IMMUTABLE, "a Deployment's selector",
        ),
        (
            {**config("sealed", a="1"), "immutable": True},
            {**config("sealed", a="2"), "immutable": True},
            Code.IMMUTABLE, "a sealed ConfigMap",
        ),
        (config("one"), config("other"), Code.KEEPS_NAME, "a name counts once"),
    ],
)  # fmt: skip
def test_a_danger_is_named(old: Manifest, new: Manifest | None, code: Code, reason: str) -> None:
    def wants(spec: dict[str, Any]) -> Wants:
        found = old if spec["size"] == 1 else new
        return {"it": found} if found else {}

    plan = a_plan(wanting(wants), {"size": 1}, {"size": 2})

    assert ("it", code) in codes(plan), reason


@pytest.mark.parametrize(
    "kind", ["BucketIAMMember", "DatabaseUser", "InstanceProfile", "NamespaceQuota", "Role"]
)
def test_what_only_sounds_like_data_is_no_danger(kind: str) -> None:
    plan = a_plan(
        wanting(lambda spec: {"it": of_kind(kind)} if spec["size"] == 1 else {}),
        {"size": 1},
        {"size": 2},
    )

    assert actions(plan) == {"it": Action.REMOVED}
    assert not plan.dangers


def test_the_same_object_under_another_logical_name_is_deleted_and_made_again() -> None:
    plan = a_plan(
        wanting(lambda spec: {f"name-{spec['size']}": config("same")}), {"size": 1}, {"size": 2}
    )

    assert ("name-1", Code.MADE_AGAIN) in codes(plan)


def test_an_order_that_is_ready_no_more_is_a_danger() -> None:
    def wants(spec: dict[str, Any]) -> Wants:
        stopped = of_kind("Deployment", "apps/v1", replicas=0)
        return {"it": stopped} if spec["size"] == 2 else {"it": config("x")}

    plan = a_plan(wanting(wants), {"size": 1}, {"size": 2})

    assert ("", Code.NOT_READY) in codes(plan)


def test_the_structured_shape_is_the_one_that_scripts_know() -> None:
    plan = a_plan(wanting(sized), {"size": 2}, {"size": 1, "mode": "fancy"})
    told = plan_document(plan).to_json()

    assert told["summary"] == {"added": 0, "modified": 1, "removed": 1}
    assert [entry["type"] for entry in told["changes"]] == ["modified", "removed"]
    modified, removed = told["changes"]
    assert (modified["kind"], modified["name"], modified["namespace"]) == (
        "ConfigMap", "map-0", "shop",
    )  # fmt: skip
    assert modified["diff"]["old"]["data"] == {"mode": "plain"}
    assert modified["diff"]["new"]["data"] == {"mode": "fancy"}
    assert removed["diff"]["spec"]["kind"] == "ConfigMap"
    (xr,) = told["xrs"]
    assert (xr["status"], xr["xr"]["name"]) == ("changed", "one")
    assert "errors" not in told


def test_markdown_keeps_foreign_text_in_its_place() -> None:
    evil = "```\n</details><script>@everyone"
    plan = a_plan(
        wanting(lambda spec: {"m": config("m", text=evil)} if spec["size"] == 2 else {}),
        {"size": 1},
        {"size": 2},
    )

    text = to_markdown(plan)

    fence = next(line for line in text.splitlines() if line.startswith("```") and "yaml" in line)
    assert fence.startswith("````")
    assert text.count("</details>") == 2, "ours, and the one inside the fence"


def test_markdown_is_bounded() -> None:
    def many(spec: dict[str, Any]) -> Wants:
        return {f"m{n:03}": config(f"m{n}", text="x" * 900) for n in range(200 * spec["size"])}

    text = to_markdown(a_plan(wanting(many), {"size": 0}, {"size": 1}))

    assert len(text) < MAX_CHARACTERS + 2_000
    assert "more resources are not shown here" in text


def test_a_plan_of_the_same_change_is_the_same_twice() -> None:
    def made() -> Any:
        plan = a_plan(wanting(sized), {"size": 2}, {"size": 3, "mode": "fancy"})
        return plan_document(plan).to_json()

    assert made() == made()


def test_an_assembly_says_nothing_is_wrong_when_nothing_is() -> None:
    found: Assembly = assemble(an_xr(size=2), a_workshop(wanting(sized)))

    assert (found.faults, found.unknowns, found.ready) == ((), (), True)
