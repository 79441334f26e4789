"""A plan needs no seed for generated passwords, and shows none of them."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from compositions.composed import PipelineStep
from compositions.parts import Parts
from compositions.resource_builders import generated_password, manifest, secret
from compositions.station import Station, StationRequest, StationResponse
from ground.objects.kube_objects import Manifest
from kubeschema.validate import Validator
from orderkit.core.plan import Assembly, AssemblyContext, Blueprint, assemble, compare
from orderkit.core.plan.plan_json import plan_document
from orderkit.core.plan.secret_traces import with_secret_traces
from orderkit.flows.composing.cluster_questions import looked_up

GROUP = "shop.example.org"
SPEC = {"properties": {"spec": {"type": "object"}}}
VERSION = {"name": "v1", "served": True, "referenceable": True}
XRD: Manifest = {
    "apiVersion": "apiextensions.crossplane.io/v2",
    "kind": "CompositeResourceDefinition",
    "metadata": {"name": f"xshops.{GROUP}"},
    "spec": {
        "group": GROUP,
        "scope": "Namespaced",
        "names": {"kind": "XShop", "plural": "xshops"},
        "versions": [{**VERSION, "schema": {"openAPIV3Schema": {"type": "object", **SPEC}}}],
    },
}
XR: Manifest = {
    "apiVersion": f"{GROUP}/v1",
    "kind": "XShop",
    "metadata": {"name": "one", "namespace": "team-a"},
    "spec": {},
}
seen: list[str] = []


def nothing(request: StationRequest) -> StationResponse:
    return StationResponse.to(request)


def keeps_password(request: StationRequest) -> StationResponse:
    response = StationResponse.to(request)
    password = generated_password(request, response, "credentials")
    if password is not None:
        seen.append(password)
        parts = Parts(request, response)
        parts.want("credentials", secret({"password": password}))
        parts.want("url", manifest("v1", "ConfigMap", data={"url": f"db://app:{password}@host"}))
    return response


def assembled(station: Station, observed: Mapping[str, Manifest] | None = None) -> Assembly:
    steps = (PipelineStep("main", "run"),)
    workshop = AssemblyContext(
        {(GROUP, "XShop"): Blueprint(Validator(XRD), steps)},
        {"run": station},
        lookup=partial(looked_up, None),
    )
    assembly = assemble(XR, workshop, observed=observed)
    return with_secret_traces(assembly, XR, workshop, observed or {})


def test_a_new_password_is_planned_without_the_seed_and_masked_everywhere() -> None:
    plan = compare(assembled(nothing), assembled(keeps_password))

    assert plan.faults == ()
    assert {change.path for change in plan.changes} == {"credentials", "url"}
    text = str(plan_document(plan).to_json())
    assert seen
    assert not any(password in text for password in seen)


def test_a_password_that_exists_does_not_change_in_a_plan() -> None:
    before = assembled(keeps_password)

    plan = compare(before, assembled(keeps_password, observed=before.observed))

    assert plan.changes == ()
