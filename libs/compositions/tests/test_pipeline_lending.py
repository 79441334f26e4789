"""What one function of a pipeline does to what it was given never reaches the next one."""

from __future__ import annotations

import copy
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compositions.composed import PipelineStep, World
from compositions.pipeline import Lender, compose
from compositions.station import Reader, State, Station, StationRequest, StationResponse
from ground.objects.kube_objects import Manifest
from ground.objects.values import NotPlainError

XR: Manifest = {
    "apiVersion": "example.org/v1",
    "kind": "XThing",
    "metadata": {"name": "one", "uid": "u-1", "labels": {"crossplane.io/composite": "one"}},
    "spec": {"size": 3},
}


def config(**data: str) -> Manifest:
    meta = {"name": "config", "namespace": "home"}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": data}


def wants(request: StationRequest) -> StationResponse:
    response = StationResponse.to(request)
    response.want("config", config(a="1"))
    return response


def spoils_observed(request: StationRequest) -> StationResponse:
    request.xr["spec"]["size"] = 99
    request.observed.resources["config"].resource["data"].clear()
    return StationResponse.to(request)


def spoils_desired_and_forgets_it(request: StationRequest) -> StationResponse:
    response = StationResponse.to(copy.deepcopy(request))
    request.desired.resources["config"].resource["data"]["a"] = "spoilt"
    return response


def changes_desired(request: StationRequest) -> StationResponse:
    request.desired.resources["config"].resource["data"]["b"] = "2"
    return StationResponse.to(request)


def reports(request: StationRequest) -> StationResponse:
    response = StationResponse.to(request)
    response.merge_status(
        {
            "size": request.xr["spec"]["size"],
            "observed": request.observed.resources["config"].resource["data"],
            "desired": request.desired.resources["config"].resource["data"],
        }
    )
    return response


@pytest.mark.parametrize(
    ("between", "desired"),
    [
        (spoils_observed, {"a": "1"}),
        (spoils_desired_and_forgets_it, {"a": "1"}),
        (changes_desired, {"a": "1", "b": "2"}),
    ],
)
def test_only_what_a_function_returns_reaches_the_next_one(
    between: Callable[[StationRequest], StationResponse], desired: dict[str, str]
) -> None:
    observed = {"config": config(a="0")}
    functions = {"wants": wants, "between": between, "reports": reports}
    steps = [PipelineStep(name, name) for name in functions]

    done = compose(XR, steps, World(functions, observed))

    assert not done.error
    assert done.status == {"size": 3, "observed": {"a": "0"}, "desired": desired}
    assert done.resources["config"].manifest["data"] == desired
    assert observed == {"config": config(a="0")}
    assert XR["spec"] == {"size": 3}


def test_readers_are_lent_one_state_that_no_other_function_holds() -> None:
    """What cannot be sent as it is, such as 3.0, they see as it is sent."""
    seen: list[tuple[State, Manifest]] = []

    def reads(request: StationRequest) -> StationResponse:
        seen.append((request.observed, copy.deepcopy(request.xr)))
        return StationResponse.to(request)

    functions: dict[str, Station] = {
        "reads": Reader(reads),
        "spoils": spoils_observed,
        "again": Reader(reads),
    }
    steps = [PipelineStep(name, name) for name in functions]

    done = compose(
        {**XR, "spec": {"size": 3.0}}, steps, World(functions, {"config": config(a="0")})
    )

    assert not done.error
    assert [repr(xr["spec"]["size"]) for _, xr in seen] == ["3", "3"]
    assert seen[0][0] is seen[1][0]


def test_what_a_reader_leaves_alone_is_not_copied() -> None:
    lender = Lender[str]().kept({"config": config(a="1")}, names={})
    original = lender.original("config")

    assert lender.kept({"config": original}, names={}).original("config") is original
    assert lender.kept({"other": original}, names={}).original("other") is not original


def test_what_is_left_alone_is_not_copied_again() -> None:
    first = Lender[str]().kept({"config": config(a="1")}, names={})
    lent = first.lend(["config"])
    second = first.kept(lent, names={})

    assert second.original("config") is first.original("config")
    assert second.lend(["config"])["config"] is lent["config"]


def test_what_cannot_be_sent_is_refused_by_its_name() -> None:
    with pytest.raises(NotPlainError, match=r"the XR\.spec"):
        Lender[None]().kept({None: {"spec": {1, 2}}}, names={None: "the XR"})


plain = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=8,
)


@given(st.dictionaries(st.text(max_size=3), plain, min_size=1), st.data())
def test_a_borrower_gets_the_original_whatever_the_one_before_did(
    manifest: Manifest, data: st.DataObject
) -> None:
    lender = Lender[str]().kept({"it": manifest}, names={})
    borrowed = lender.lend(["it"])["it"]
    borrowed[data.draw(st.sampled_from(sorted(manifest)))] = data.draw(plain)

    assert lender.lend(["it"])["it"] == manifest
    assert lender.original("it") == manifest
