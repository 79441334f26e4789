"""The compose algorithm: steps, requirements, results, readiness, deletions."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from compositions.composed import Composed, PipelineStep, World, XrEvent, steps_of
from compositions.pipeline import compose
from compositions.station import (
    Ready,
    Selector,
    Station,
    StationRequest,
    StationResponse,
    station_runner,
)
from ground.errors import RemoteError
from ground.objects.kube_objects import Manifest, metadata

XR: Manifest = {
    "apiVersion": "lab.example.org/v1",
    "kind": "App",
    "metadata": {"name": "demo", "uid": "u-1", "labels": {"crossplane.io/composite": "demo"}},
    "spec": {"size": 1},
}
Say = Callable[[StationRequest, StationResponse], None]


def function(say: Say) -> Station:
    def run(request: StationRequest) -> StationResponse:
        response = StationResponse.to(request)
        say(request, response)
        return response

    return run


def config_map(name: str, **data: str) -> Manifest:
    meta = {"name": name, "namespace": "team-a"}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": data}


def existing(logical: str, **data: str) -> Manifest:
    """A composed resource as the cluster holds it, controlled by XR."""
    manifest = config_map(logical, **data)
    manifest["metadata"] |= {
        "annotations": {"crossplane.io/composition-resource-name": logical},
        "ownerReferences": [{"kind": "App", "name": "demo", "uid": "u-1", "controller": True}],
    }
    return manifest


def run(*says: Say, observed: Mapping[str, Manifest] | None = None, **world: Any) -> Composed:
    functions = {f"f{index}": function(say) for index, say in enumerate(says)}
    steps = [PipelineStep(f"step{index}", name) for index, name in enumerate(functions)]
    return compose(XR, steps, World(functions, observed or {}, **world))


def want(*names: str, ready: Ready = Ready.UNSPECIFIED) -> Say:
    def say(_: StationRequest, response: StationResponse) -> None:
        for name in names:
            response.want(name, config_map(name), ready=ready)

    return say


def test_an_empty_pipeline_wants_nothing_and_is_ready() -> None:
    composed = compose(XR, [], World({}))

    assert (composed.error, dict(composed.resources), composed.references) == ("", {}, ())
    assert composed.ready_condition.reason == "Available"


def test_each_step_goes_on_from_what_the_step_before_wanted() -> None:
    def change(_: StationRequest, response: StationResponse) -> None:
        response.desired.resources["a"].resource["data"] = {"changed": "yes"}
        response.merge_status({"map": {"b": 2}})

    def first(_: StationRequest, response: StationResponse) -> None:
        response.want("a", config_map("a"))
        response.merge_status({"map": {"a": 1}})
        response.context["seen"] = 1

    composed = run(first, change)

    assert composed.resources["a"].manifest["data"] == {"changed": "yes"}
    assert composed.status == {"map": {"a": 1, "b": 2}}
    assert composed.context == {"seen": 1}


def test_every_step_sees_the_same_observed_state() -> None:
    seen: list[object] = []

    def look(request: StationRequest, _: StationResponse) -> None:
        seen.append(request.observed_resource("a"))
        request.observed.resources.clear()
        request.xr.clear()

    run(look, look, observed={"a": existing("a")})

    assert seen == [existing("a"), existing("a")]
    assert XR["spec"] == {"size": 1}


def test_a_fatal_result_keeps_events_and_conditions_said_so_far_and_nothing_else() -> None:
    def warn(_: StationRequest, response: StationResponse) -> None:
        response.want("a", config_map("a"))
        response.warning("look here")
        response.add_condition("Own", "True", "Fine")

    def refuse(_: StationRequest, response: StationResponse) -> None:
        response.fatal("no more room")

    composed = run(warn, refuse, want("b"), observed={"old": existing("old")})

    assert composed.error == 'pipeline step "step1" returned a fatal result: no more room'
    assert (dict(composed.resources), dict(composed.deletions)) == ({}, {})
    assert composed.events == (
        XrEvent("Warning", "ComposeResources", 'Pipeline step "step0": look here'),
    )
    assert [condition.type for condition in composed.conditions] == ["Own"]


def test_results_become_events_in_their_order() -> None:
    def talk(_: StationRequest, response: StationResponse) -> None:
        response.normal("one")
        response.warning("two", reason="Because")

    assert run(talk).events == (
        XrEvent("Normal", "ComposeResources", 'Pipeline step "step0": one'),
        XrEvent("Warning", "Because", 'Pipeline step "step0": two'),
    )


def test_system_conditions_of_functions_are_ignored() -> None:
    def claim(_: StationRequest, response: StationResponse) -> None:
        for type_ in ("Ready", "Synced", "Healthy", "UpToDate", "Responsive", "Own"):
            response.add_condition(type_, "True", "Mine")
        response.merge_status({"conditions": [{"type": "Ready"}], "kept": 1})

    composed = run(claim)

    assert [condition.type for condition in composed.conditions] == ["Own"]
    assert composed.status == {"kept": 1}


def test_a_function_that_nobody_has_is_told_in_crossplanes_words() -> None:
    composed = compose(XR, [PipelineStep("x", "function-nope")], World({}))

    assert composed.error == (
        'cannot run Composition pipeline step "x": cannot get gRPC client connection for '
        'Function "function-nope": cannot find an active FunctionRevision '
        "(a FunctionRevision with spec.desiredState: Active)"
    )


def test_a_foreign_function_is_refused_by_the_name_of_its_step() -> None:
    world = World(
        {"function-auto-ready": function(want())}, foreign={"function-go-templating": "it is away"}
    )

    composed = compose(XR, [PipelineStep("render", "function-go-templating")], world)

    assert 'pipeline step "render"' in composed.error
    assert composed.error.endswith('cannot run Function "function-go-templating": it is away')


def test_an_exception_in_a_function_names_step_function_and_cause() -> None:
    def fail(_: StationRequest, __: StationResponse) -> None:
        raise LookupError("no such stage")

    composed = run(fail)

    assert composed.error == (
        'cannot run Composition pipeline step "step0": Function "f0" failed: '
        "LookupError: no such stage"
    )


def test_an_exception_in_a_station_is_a_fatal_result_that_names_the_station() -> None:
    def broken(_: StationRequest) -> StationResponse:
        raise KeyError("teamName")

    chosen = {"apiVersion": "stations.orderkit.dev/v1alpha1", "kind": "Station", "name": "garage"}
    world = World({"function-orderkit": station_runner({"garage": broken})})

    composed = compose(XR, [PipelineStep("garage", "function-orderkit", input=chosen)], world)

    assert composed.error == (
        'pipeline step "garage" returned a fatal result: station "garage" failed: '
        "KeyError: 'teamName'"
    )


@pytest.mark.parametrize(
    ("chosen", "text"),
    [
        ({}, "the step's input is not a Station of stations.orderkit.dev/v1alpha1 with a name"),
        (
            {"apiVersion": "stations.orderkit.dev/v1alpha1", "kind": "Station", "name": "nope"},
            'no station "nope" in this pack; it has: garage',
        ),
    ],
    ids=["no input", "unknown station"],
)
def test_an_input_that_names_no_station_is_a_fatal_result(
    chosen: dict[str, str], text: str
) -> None:
    world = World({"f": station_runner({"garage": function(want())})})

    assert compose(XR, [PipelineStep("s", "f", input=chosen)], world).error.endswith(text)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (dt.date(2026, 1, 1), "a.data.x is a date"),
        ({1: "a"}, "a.data.x has the key 1, which is not text"),
        (2**60, "beyond 2^53"),
        (float("nan"), "which JSON cannot write"),
        ({"a", "b"}, "is a set"),
    ],
    ids=["date", "number as key", "big number", "nan", "set"],
)
def test_data_that_no_object_can_hold_is_refused_with_its_path(value: object, text: str) -> None:
    def say(_: StationRequest, response: StationResponse) -> None:
        manifest = config_map("a")
        manifest["data"]["x"] = value
        response.want("a", manifest)

    assert text in run(say).error


def test_numbers_travel_as_doubles_and_come_back_as_integers() -> None:
    def say(_: StationRequest, response: StationResponse) -> None:
        response.merge_status({"whole": 3.0, "half": 0.5, "flag": True})

    assert repr(dict(run(say).status)) == "{'whole': 3, 'half': 0.5, 'flag': True}"


def test_resources_no_longer_wanted_are_deleted_only_if_this_xr_controls_them() -> None:
    foreign = existing("foreign")
    foreign["metadata"]["ownerReferences"][0]["uid"] = "u-2"
    orphan = config_map("orphan")
    observed = {"kept": existing("kept"), "old": existing("old"), "f": foreign, "o": orphan}

    composed = run(want("kept"), observed=observed)

    assert list(composed.deletions) == ["old"]


def test_an_early_return_deletes_everything_and_is_ready() -> None:
    composed = run(lambda *_: None, observed={"a": existing("a"), "b": existing("b")})

    assert list(composed.deletions) == ["a", "b"]
    assert (composed.ready_condition.status, dict(composed.status)) == ("True", {})


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (["a"], "Unready resources: a"),
        (["b", "a"], "Unready resources: a, b"),
        (["widget", "cm-b", "cm-a"], "Unready resources: cm-a, cm-b, and widget"),
        (["a", "b", "c", "d"], "Unready resources: a, b, c, and 1 more"),
    ],
)
def test_unready_resources_are_named(names: list[str], message: str) -> None:
    condition = run(want(*names)).ready_condition

    assert (condition.status, condition.reason) == ("False", "Creating")
    assert condition.message == message


@pytest.mark.parametrize(
    ("decided", "status", "message"),
    [(Ready.TRUE, "True", ""), (Ready.FALSE, "False", "")],
    ids=["ready though a resource is not", "not ready though all resources are"],
)
def test_a_function_may_decide_the_readiness_of_the_xr(
    decided: Ready, status: str, message: str
) -> None:
    def decide(_: StationRequest, response: StationResponse) -> None:
        response.desired.composite.ready = decided

    condition = run(want("a", ready=Ready.FALSE), decide).ready_condition

    assert (condition.status, condition.message) == (status, message)


def test_ready_false_of_a_resource_counts_as_not_ready() -> None:
    def unready(_: StationRequest, response: StationResponse) -> None:
        response.set_ready("a", ready=False)

    assert run(want("a", ready=Ready.TRUE), unready).unready == ("a",)


def test_the_time_to_live_is_the_smallest_that_is_not_zero() -> None:
    def live(seconds: float) -> Say:
        def say(_: StationRequest, response: StationResponse) -> None:
            response.ttl_s = seconds

        return say

    assert run(live(60), live(0), live(5)).ttl_s == 5
    assert run(live(0)).ttl_s == 0
    assert run(lambda *_: None).ttl_s == 60


def test_references_and_dressed_resources_agree() -> None:
    composed = run(want("b", "a"))

    assert [r["name"] for r in composed.references] == ["a", "b"]
    assert {metadata(d.manifest)["name"] for d in composed.resources.values()} == {"a", "b"}


# Requirements: how often a function is called, and with what.


class Asking:
    """A function that records its calls and asks as it is told to."""

    def __init__(self, ask: Callable[[int, StationRequest, StationResponse], None]) -> None:
        self.given: list[dict[str, list[str]]] = []
        self._ask = ask

    def __call__(self, request: StationRequest) -> StationResponse:
        self.given.append(
            {name: [metadata(m)["name"] for m in items] for name, items in request.required.items()}
        )
        response = StationResponse.to(request)
        self._ask(len(self.given), request, response)
        return response


def fetch(selector: Selector) -> list[Manifest]:
    shelf = {"one": config_map("one", next="two"), "two": config_map("two")}
    if selector.name:
        return [shelf[selector.name]] if selector.name in shelf else []
    return list(shelf.values())


def ask_with(asking: Asking, **step: Any) -> Composed:
    return compose(XR, [PipelineStep("s", "f", **step)], World({"f": asking}, lookup=fetch))


def need(response: StationResponse, name: str, match_name: str = "") -> None:
    response.require(name, "v1", "ConfigMap", match_name=match_name, namespace="team-a")


def test_a_function_without_requirements_is_called_once() -> None:
    asking = Asking(lambda *_: None)

    assert ask_with(asking).error == ""
    assert asking.given == [{}]


@pytest.mark.parametrize(("name", "found"), [("one", ["one"]), ("nope", [])], ids=["there", "not"])
def test_a_requirement_is_answered_in_a_second_call_even_if_nothing_is_found(
    name: str, found: list[str]
) -> None:
    asking = Asking(lambda _, __, response: need(response, "x", name))

    assert ask_with(asking).error == ""
    assert asking.given == [{}, {"x": found}]


def test_a_requirement_that_follows_from_another_takes_three_calls() -> None:
    def chain(_: int, request: StationRequest, response: StationResponse) -> None:
        need(response, "first", "one")
        first = request.required_resource("first")
        if first:
            need(response, "second", first["data"]["next"])

    asking = Asking(chain)

    assert ask_with(asking).error == ""
    assert asking.given[-1] == {"first": ["one"], "second": ["two"]}
    assert len(asking.given) == 3


@pytest.mark.parametrize(
    "ask",
    [
        lambda call, _, response: need(response, "x", f"n{call}"),
        lambda _, request, response: None if request.required else need(response, "x", "one"),
    ],
    ids=["another selector on each call", "stops asking once it got it"],
)
def test_requirements_that_never_settle_end_after_six_calls(ask: Any) -> None:
    asking = Asking(ask)

    assert ask_with(asking).error == (
        'cannot run Composition pipeline step "s": requirements didn\'t stabilize after the '
        "maximum number of iterations (5)"
    )
    assert len(asking.given) == 6


def test_context_is_carried_between_the_calls_of_a_step_but_desired_state_is_not() -> None:
    seen: list[tuple[int, list[str]]] = []

    def ask(_: int, request: StationRequest, response: StationResponse) -> None:
        seen.append((request.context.get("n", 0), sorted(request.desired.resources)))
        response.context["n"] = 1
        response.want("a", config_map("a"))
        need(response, "x", "one")

    ask_with(Asking(ask))

    assert seen == [(0, []), (1, [])]


def test_requirements_of_the_composition_are_there_in_the_first_call() -> None:
    asking = Asking(lambda *_: None)
    selector = Selector("v1", "ConfigMap", name="one", namespace="team-a")

    composed = ask_with(asking, required={"x": selector})

    assert asking.given == [{"x": ["one"]}]
    assert composed.requirements == (selector,)


def test_asking_for_what_the_composition_already_gave_needs_no_second_call() -> None:
    asking = Asking(lambda _, __, response: need(response, "x", "one"))

    ask_with(asking, required={"x": Selector("v1", "ConfigMap", name="one", namespace="team-a")})

    assert len(asking.given) == 1


def test_a_fatal_result_ends_the_iteration_at_once() -> None:
    def refuse(_: int, __: StationRequest, response: StationResponse) -> None:
        need(response, "x", "one")
        response.fatal("no")

    asking = Asking(refuse)

    assert ask_with(asking).error.endswith("returned a fatal result: no")
    assert len(asking.given) == 1


def test_a_failing_look_up_stops_the_pipeline() -> None:
    def unreachable(_: Selector) -> list[Manifest]:
        raise RemoteError("the cluster is down")

    asking = Asking(lambda _, __, response: need(response, "x", "one"))

    composed = compose(XR, [PipelineStep("s", "f")], World({"f": asking}, lookup=unreachable))

    assert composed.error.endswith(
        "cannot fetch required resources (ConfigMap of v1): the cluster is down"
    )


def test_steps_are_read_from_a_composition() -> None:
    spec = {
        "pipeline": [
            {
                "step": "render",
                "functionRef": {"name": "function-x"},
                "input": {"kind": "Input"},
                "requirements": {
                    "requiredResources": [
                        {
                            "requirementName": "team",
                            "apiVersion": "v1",
                            "kind": "ConfigMap",
                            "matchLabels": {"team": "ae86"},
                        }
                    ]
                },
            },
            {"step": "ready", "functionRef": {"name": "function-auto-ready"}},
        ]
    }

    assert steps_of(spec) == (
        PipelineStep(
            "render",
            "function-x",
            {"kind": "Input"},
            {"team": Selector("v1", "ConfigMap", labels={"team": "ae86"})},
        ),
        PipelineStep("ready", "function-auto-ready"),
    )


@pytest.mark.parametrize("passing", [True, False], ids=["a plan", "Crossplane"])
def test_a_plan_says_what_a_failed_step_looked_for(*, passing: bool) -> None:
    """Crossplane has the function's own words only, and so has the embedded one."""
    wanted = Selector("example.org/v1", "Network", labels={"zone": "west", "env": "prod"})

    def say(_: StationRequest, response: StationResponse) -> None:
        response.requirements["net"] = wanted
        response.fatal("no network")

    def after(request: StationRequest, response: StationResponse) -> None:
        response.requirements["net"] = wanted
        if request.is_answered("net"):
            response.fatal("no network")

    at_once = run(say, passing=passing)
    found = run(after, passing=passing)

    fatal = 'pipeline step "step0" returned a fatal result: no network'
    told = "; there is no Network with the labels env=prod, zone=west" if passing else ""
    assert (at_once.error, found.error) == (fatal, fatal + told)
