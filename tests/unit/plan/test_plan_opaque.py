"""What a plan claims of steps that cannot run here: nothing that it does not know."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from tests.unit.plan.test_plan import GROUP, STATION, an_xr, config, wanting, xrd

from compositions.composed import PipelineStep, World, steps_of
from compositions.pipeline import compose
from compositions.python_functions import STATION_FUNCTION, functions_here
from compositions.simulation import simulate
from compositions.station import OpaqueError, Station, StationRequest, StationResponse
from ground.objects.kube_objects import Manifest
from kubeschema.validate import Validator
from orderkit.core.plan import Action, AssemblyContext, Blueprint, Code, Plan, assemble, compare
from orderkit.core.plan.plan_json import plan_answer
from orderkit.core.plan.plan_markdown import to_markdown

FOREIGN = "function-go-templating"
OWN = PipelineStep("own", STATION_FUNCTION, {**STATION, "name": "xshop"})
TEMPLATES = PipelineStep("templates", FOREIGN)
BUCKET = {"apiVersion": "s3.example.org/v1", "kind": "Bucket", "metadata": {"name": "b"}}


def a_shop(
    station: Station, *steps: PipelineStep, functions: Mapping[str, Station] | None = None
) -> AssemblyContext:
    chosen = functions_here({"xshop": station}, {}, {step.function for step in steps})
    blueprint = Blueprint(Validator(xrd("XShop")), steps)
    here = {**chosen.functions, **(functions or {})}
    return AssemblyContext({(GROUP, "XShop"): blueprint}, here, notes=chosen.notes)


def a_plan(
    before: AssemblyContext,
    after: AssemblyContext,
    old: dict[str, Any],
    new: dict[str, Any],
    **existing: Manifest,
) -> Plan:
    one = assemble(an_xr(**old), before, observed=existing)
    other = assemble(an_xr(**new), after, observed=one.observed, attributed=one.made_by)
    return compare(one, other, fresh=other)


def sized(spec: Mapping[str, Any]) -> dict[str, Manifest]:
    return {f"map-{n}": config(f"map-{n}", size=str(n)) for n in range(spec["size"])}


def test_what_only_an_opaque_step_can_want_is_kept_and_never_removed() -> None:
    shop = a_shop(wanting(sized), OWN, TEMPLATES)

    plan = a_plan(shop, shop, {"size": 1}, {"size": 2}, bucket=BUCKET)

    assert [(each.path, each.action) for each in plan.changes] == [("map-1", Action.ADDED)]
    assert list(plan.kept) == ["bucket"]
    assert plan.summary == "1 added, 1 unchanged, 1 kept, not known"
    assert not plan.dangers
    assert "Bucket b (bucket) is kept: no step that can run here composes it" in plan.unknowns
    assert (
        f'step "templates": {FOREIGN} runs in the cluster only; what it adds, changes or drops is '
        "not in this plan"
    ) in plan.unknowns


def test_what_a_step_that_runs_here_drops_is_removed_beside_an_opaque_one() -> None:
    shop = a_shop(wanting(sized), OWN, TEMPLATES)

    plan = a_plan(shop, shop, {"size": 2}, {"size": 1}, bucket=BUCKET)

    assert [(each.path, each.action) for each in plan.changes] == [("map-1", Action.REMOVED)]
    assert list(plan.kept) == ["bucket"]


def test_what_moves_from_a_known_step_to_an_opaque_one_is_kept() -> None:
    def station(_: Mapping[str, Any]) -> dict[str, Manifest]:
        return {"bucket": BUCKET}

    plan = a_plan(a_shop(wanting(station), OWN), a_shop(wanting(station), TEMPLATES), {}, {})

    assert not plan.changes
    assert list(plan.kept) == ["bucket"]
    assert plan.summary == "0 unchanged, 1 kept, not known"
    assert Code.DATA_LOSS not in {danger.code for danger in plan.dangers}


def test_what_moves_from_an_opaque_step_to_a_known_one_is_not_added() -> None:
    def station(_: Mapping[str, Any]) -> dict[str, Manifest]:
        return {"bucket": BUCKET}

    before = a_shop(wanting(station), TEMPLATES)
    plan = a_plan(before, a_shop(wanting(station), OWN), {}, {}, bucket=BUCKET)

    assert not plan.changes
    assert "Bucket b (bucket) already exists; its changes are unknown" in (plan.unknowns)


def test_readiness_behind_an_opaque_step_is_not_known() -> None:
    shop = a_shop(wanting(lambda _: {}), OWN, TEMPLATES)
    plan = a_plan(a_shop(wanting(lambda _: {}), OWN), shop, {}, {})

    assert (plan.before.readiness, plan.after.readiness) == ("Ready", "not known")
    assert not plan.dangers
    assert plan_answer(plan).to_json()["ready"] is None
    assert "Whether the order is Ready in the end is not known." in to_markdown(plan)


def test_what_is_kept_is_told_as_data_and_as_text() -> None:
    shop = a_shop(wanting(sized), OWN, TEMPLATES)
    plan = a_plan(shop, shop, {"size": 1}, {"size": 1}, bucket=BUCKET)

    kept = {"path": "bucket", "apiVersion": "s3.example.org/v1", "kind": "Bucket", "name": "b"}
    assert plan_answer(plan).to_json()["kept"] == [kept]
    assert "Bucket b (bucket) is kept" in to_markdown(plan)


def test_status_that_an_opaque_step_wrote_stays() -> None:
    def station(request: StationRequest) -> StationResponse:
        response = StationResponse.to(request)
        response.merge_status({"own": 1})
        return response

    xr = {**an_xr(), "status": {"theirs": 2, "own": 0}}
    found = simulate(xr, [PipelineStep("own", "f"), TEMPLATES], World({"f": station}, passing=True))

    shown = {key: found.xr["status"][key] for key in ("theirs", "own")}
    assert shown == {"theirs": 2, "own": 1}
    assert "Ready" not in {each["type"] for each in found.xr["status"]["conditions"]}


def test_a_failure_behind_an_opaque_step_may_be_none() -> None:
    def station(request: StationRequest) -> StationResponse:
        response = StationResponse.to(request)
        if "from-templates" not in request.desired.resources:
            response.fatal("where is it?")
        return response

    found = assemble(an_xr(), a_shop(station, TEMPLATES, OWN))

    assert not found.faults
    assert any(
        'step "own": without what "templates" does it fails' in told and "where is it?" in told
        for told in found.unknowns
    )


def test_a_failure_before_an_opaque_step_is_one() -> None:
    def station(request: StationRequest) -> StationResponse:
        response = StationResponse.to(request)
        response.fatal("never")
        return response

    found = assemble(an_xr(), a_shop(station, OWN, TEMPLATES))
    assert [fault.code for fault in found.faults] == ["pipeline"]


def test_a_twin_that_refuses_makes_its_own_step_opaque_and_no_other() -> None:
    def patches(fmt: str) -> dict[str, Any]:
        transforms = [{"type": "string", "string": {"type": "Format", "fmt": fmt}}]
        patch = {"fromFieldPath": "spec.name", "toFieldPath": "data.a", "transforms": transforms}
        base = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x"}}
        resource = {"name": f"map {fmt}", "base": base, "patches": [patch]}
        header = {"apiVersion": "pt.fn.crossplane.io/v1beta1", "kind": "Resources"}
        return {**header, "resources": [resource]}

    name = "function-patch-and-transform"
    steps = (PipelineStep("good", name, patches("%s")), PipelineStep("odd", name, patches("%#v")))
    found = assemble(an_xr(name="a"), a_shop(wanting(lambda _: {}), *steps))

    assert list(found.resources) == ["map %s"]
    assert found.resources["map %s"]["data"] == {"a": "a"}
    assert any(told.startswith("step \"odd\": fmt '%#v'") for told in found.unknowns)
    assert f"{name} is taken for what its name says: its package is not known" in found.unknowns


@pytest.mark.parametrize("passing", [True, False])
def test_only_plans_pass_a_step_by(passing: bool) -> None:  # noqa: FBT001 - a parameter of the test
    def odd(_: StationRequest) -> StationResponse:
        raise OpaqueError("it needs a moon")

    xr = {**an_xr(), "metadata": {"name": "one", "labels": {"crossplane.io/composite": "one"}}}
    found = compose(xr, [PipelineStep("s", "f")], World({"f": odd}, passing=passing))

    if passing:
        assert (found.error, found.opaque) == ("", {"s": "it needs a moon"})
    else:
        assert found.error == (
            'cannot run Composition pipeline step "s": cannot run Function "f": it needs a moon'
        )


def test_a_process_is_not_called_without_its_credentials() -> None:
    credentials = {
        "name": "cloud",
        "source": "Secret",
        "secretRef": {"name": "a", "namespace": "b"},
    }
    step = {"step": "s", "functionRef": {"name": "f"}, "credentials": [credentials]}
    xr = {**an_xr(), "metadata": {"name": "one", "labels": {"crossplane.io/composite": "one"}}}
    world = World({"f": StationResponse.to}, remote={"f"}, passing=True)

    found = compose(xr, steps_of({"pipeline": [step]}), world)

    assert found.opaque == {"s": 'it needs the credential "cloud", and the Secret b/a is not there'}


def test_a_nested_xr_that_is_kept_keeps_what_is_below_it() -> None:
    shop = a_shop(wanting(lambda _: {}), OWN, TEMPLATES)
    nested = {**an_xr(), "metadata": {"name": "inner"}}
    existing = {"inner": nested, "inner/bucket": BUCKET}

    found = assemble(an_xr(), shop, observed=existing)

    assert set(found.kept) == set(found.observed) == {"inner", "inner/bucket"}
    assert not found.resources
