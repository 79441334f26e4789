"""A pipeline run to its fixed point: gates open, requirements resolve, readiness follows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from compositions.composed import PipelineStep, World
from compositions.parts import _CHECKS, auto_ready, is_ready
from compositions.simulated_objects import made_ready
from compositions.simulation import SimulatedWorld, Simulation, lookup_in, simulate
from compositions.station import Selector, StationRequest, StationResponse
from ground.objects.kube_objects import Kind, Manifest, is_namespaced

XR: Manifest = {
    "apiVersion": "lab.example.org/v1",
    "kind": "App",
    "metadata": {"name": "demo"},
    "spec": {"size": 1},
}
Say = Callable[[StationRequest, StationResponse], None]


def run(say: Say, around: SimulatedWorld | None = None, **options: Any) -> Simulation:
    def function(request: StationRequest) -> StationResponse:
        response = StationResponse.to(request)
        say(request, response)
        return response

    functions = {"function-lab": function, "function-auto-ready": auto_ready}
    steps = [PipelineStep("lab", "function-lab"), PipelineStep("ready", "function-auto-ready")]
    return simulate(
        XR, steps, World(functions, foreign={"function-kcl": "it is away"}), around, **options
    )


def thing(kind: str, name: str, api_version: str = "v1", **fields: Any) -> Manifest:
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": name}, **fields}


def inside(home: str, kind: str, name: str, api_version: str = "v1", **fields: Any) -> Manifest:
    found = thing(kind, name, api_version, **fields)
    found["metadata"]["namespace"] = home
    return found


def gated(request: StationRequest, response: StationResponse) -> None:
    response.want("bay", thing("Namespace", "bay"))
    if request.observed_resource("bay") is None:
        return
    response.want("database", inside("bay", "Database", "db", "sql.example.org/v1"))
    seen = request.observed_resource("database") or {}
    if seen.get("status", {}).get("host"):
        host = seen["status"]["host"]
        response.want("config", inside("bay", "ConfigMap", "c", data={"host": host}))
        response.merge_status({"host": host})


def test_what_is_gated_appears_round_after_round_until_the_xr_is_ready() -> None:
    around = SimulatedWorld(statuses={"database": {"host": "db.example.org"}})

    done = run(gated, around)

    assert done.settled
    assert done.ready
    assert done.appearance == (("bay",), ("database",), ("config",))
    assert done.observed["config"]["data"] == {"host": "db.example.org"}
    assert done.xr["status"]["host"] == "db.example.org"
    assert {str(kind) for kind in done.kinds} == {
        "Namespace",
        "Database.sql.example.org",
        "ConfigMap",
    }


def test_a_gate_that_never_opens_leaves_out_what_stands_behind_it() -> None:
    done = run(gated)

    assert done.settled
    assert done.appearance == (("bay",), ("database",))


def test_a_second_run_gives_the_same_to_the_last_byte() -> None:
    assert run(gated) == run(gated)


def test_what_exists_already_keeps_its_name_and_what_its_status_says() -> None:
    live = inside("bay", "Database", "db-old", "sql.example.org/v1", status={"host": "live"})

    done = run(gated, SimulatedWorld(observed={"bay": thing("Namespace", "bay"), "database": live}))

    assert done.observed["database"]["metadata"]["name"] == "db-old"
    assert done.xr["status"]["host"] == "live"


def test_a_service_gets_the_address_that_a_step_waits_for() -> None:
    """It differs for another uid, so plans know that it is a guess. A live one stays."""

    def wait(request: StationRequest, response: StationResponse) -> None:
        response.want("web", inside("bay", "Service", "web", spec={"ports": [{"port": 80}]}))
        outside = {"type": "ExternalName", "externalName": "example.org"}
        response.want("outside", inside("bay", "Service", "outside", spec=outside))
        seen = request.observed_resource("web") or {"spec": {}}
        response.merge_status({"address": seen["spec"].get("clusterIP", "")})

    live = {"web": inside("bay", "Service", "web", spec={"clusterIP": "10.0.0.7"})}
    worlds = (SimulatedWorld(), SimulatedWorld(salt="another"), SimulatedWorld(observed=live))

    runs = [run(wait, world) for world in worlds]

    given, other, kept = (done.xr["status"]["address"] for done in runs)
    assert all(done.settled for done in runs)
    assert given.startswith("10.96.")
    assert given != other
    assert kept == "10.0.0.7"
    assert "clusterIP" not in runs[0].observed["outside"]["spec"]


def test_what_existed_and_is_no_longer_wanted_is_gone_in_the_end() -> None:
    first = run(gated)
    old = {**first.observed, "old": {**first.observed["bay"], "kind": "Old"}}

    done = run(gated, SimulatedWorld(observed=old))

    assert done.rounds[0].deletions.keys() == {"old"}
    assert done.observed.keys() == {"bay", "database"}


def test_a_cluster_scoped_object_exists_without_the_namespace_that_a_function_gave_it() -> None:
    def say(_: StationRequest, response: StationResponse) -> None:
        response.want("child", inside("<no value>", "Child", "one", "lab.example.org/v1"))

    around = SimulatedWorld(scopes={Kind("lab.example.org", "v1", "Child"): False})

    done = run(say, around)

    assert done.observed["child"]["metadata"].keys() >= {"name", "uid"}
    assert "namespace" not in done.observed["child"]["metadata"]


def test_requirements_find_given_objects_and_composed_ones() -> None:
    def say(request: StationRequest, response: StationResponse) -> None:
        response.require("limits", "v1", "ConfigMap", match_name="limits", namespace="platform")
        response.require("own", "v1", "Namespace", match_name="bay")
        response.want("bay", thing("Namespace", "bay"))
        limits, own = request.required_resource("limits"), request.required_resource("own")
        response.merge_status({"limit": (limits or {}).get("data"), "own": own is not None})

    limits = inside("platform", "ConfigMap", "limits", data={"max": "3"})
    done = run(say, SimulatedWorld(existing=[limits]))

    assert done.xr["status"]["limit"] == {"max": "3"}
    assert done.xr["status"]["own"] is True
    assert {str(kind) for kind in done.requirements} == {"ConfigMap", "Namespace"}


def test_a_status_that_changes_at_every_call_never_settles() -> None:
    calls: list[int] = []

    def say(_: StationRequest, response: StationResponse) -> None:
        calls.append(1)
        response.merge_status({"calls": len(calls)})

    done = run(say, rounds_max=5)

    assert not done.settled
    assert not done.ready
    assert len(done.rounds) == 5
    assert done.error == ""


def test_a_resource_that_comes_and_goes_never_settles() -> None:
    def say(request: StationRequest, response: StationResponse) -> None:
        if request.observed_resource("blink") is None:
            response.want("blink", inside("bay", "ConfigMap", "blink"))

    assert not run(say).settled


def test_a_fatal_result_ends_the_run_and_keeps_what_existed() -> None:
    def say(request: StationRequest, response: StationResponse) -> None:
        gated(request, response)
        if request.observed_resource("database"):
            response.fatal("no more room")

    done = run(say)

    assert not done.settled
    assert done.error == 'pipeline step "lab" returned a fatal result: no more room'
    assert done.observed.keys() == {"bay", "database"}


def test_a_foreign_step_is_refused_by_its_name() -> None:
    steps = [PipelineStep("template", "function-kcl")]

    done = simulate(
        XR, steps, World({"function-lab": auto_ready}, foreign={"function-kcl": "it is away"})
    )

    assert 'pipeline step "template"' in done.error
    assert '"function-kcl": it is away' in done.error


@pytest.mark.parametrize(
    ("kind", "api_version", "reason"),
    [
        ("NetworkPolicy", "networking.k8s.io/v1", "it has no status"),
        ("RoleBinding", "rbac.authorization.k8s.io/v1", "it has no status"),
        ("ResourceQuota", "v1", "its status has no condition"),
        ("Application", "argoproj.io/v1alpha1", "it has health, not Ready"),
    ],
)
def test_kinds_that_auto_ready_never_marks_keep_the_xr_unready(
    kind: str, api_version: str, reason: str
) -> None:
    def say(_: StationRequest, response: StationResponse) -> None:
        response.want("x", inside("bay", kind, "x", api_version))

    done = run(say)

    assert done.settled, reason
    assert not done.ready, reason


def test_a_deployment_scaled_to_zero_is_never_ready_as_on_a_real_cluster() -> None:
    def say(_: StationRequest, response: StationResponse) -> None:
        response.want("x", inside("bay", "Deployment", "x", "apps/v1", spec={"replicas": 0}))

    assert not run(say).ready


@pytest.mark.parametrize("known", _CHECKS, ids=lambda known: known[1])
def test_every_kind_that_auto_ready_knows_becomes_ready(known: tuple[str, str]) -> None:
    plain = thing(known[1], "x", known[0])
    balanced = thing(known[1], "x", known[0], spec={"type": "LoadBalancer"})
    once = thing(known[1], "x", known[0], spec={"restartPolicy": "Never"})

    for manifest in (plain, balanced, once):
        assert is_ready(made_ready(manifest))


def test_an_object_that_reports_a_failure_is_ready_in_the_end_and_keeps_its_facts() -> None:
    broken = [{"type": "Ready", "status": "False"}, {"type": "Own", "status": "True"}]
    seen = thing("Bucket", "b", "s3.example.org/v1", status={"arn": "a", "conditions": broken})

    after = made_ready(seen)

    assert is_ready(after)
    assert after["status"]["arn"] == "a"
    assert [entry["type"] for entry in after["status"]["conditions"]] == ["Own", "Ready", "Synced"]


def test_the_manifest_of_a_wrapped_object_is_shown_as_it_is_in_the_cluster() -> None:
    wrapped = thing("Namespace", "bay")
    seen = made_ready(
        thing("Object", "o", "kubernetes.m.crossplane.io/v1alpha1")
        | {"spec": {"forProvider": {"manifest": wrapped}}}
    )

    assert seen["status"]["atProvider"]["manifest"] == wrapped


def test_look_ups_by_label_are_sorted_and_keep_to_their_namespace() -> None:
    objects = [inside(home, "ConfigMap", name) for home, name in ("bz", "ba", "ab")]
    for manifest in objects:
        manifest["metadata"]["labels"] = {"app": "x"}
    objects.append(inside("b", "ConfigMap", "other"))
    find = lookup_in(objects)

    everywhere = find(Selector("v1", "ConfigMap", labels={"app": "x"}))
    there = find(Selector("v1", "ConfigMap", labels={"app": "x"}, namespace="b"))

    assert [m["metadata"]["name"] for m in everywhere] == ["b", "a", "z"]
    assert [m["metadata"]["name"] for m in there] == ["a", "z"]


def test_kinds_are_namespaced_unless_known_otherwise() -> None:
    assert not is_namespaced(Kind("", "v1", "Namespace"))
    assert not is_namespaced(Kind("rbac.authorization.k8s.io", "v1", "ClusterRole"))
    assert is_namespaced(Kind("example.org", "v1", "ClusterRole"))


def test_a_namespaced_xr_cannot_compose_a_cluster_scoped_kind() -> None:
    def say(_: StationRequest, response: StationResponse) -> None:
        response.want("bay", thing("Namespace", "bay"))

    def function(request: StationRequest) -> StationResponse:
        response = StationResponse.to(request)
        say(request, response)
        return response

    xr = {**XR, "metadata": {"name": "demo", "namespace": "team-a"}}
    done = simulate(xr, [PipelineStep("lab", "f")], World({"f": function}))

    assert "cannot apply cluster scoped composed resource" in done.error
