"""A pipeline of other people's functions: the embedded platform runs it, a plan foretells it."""

from __future__ import annotations

from typing import Any

import pytest
import yaml
from extras.standins.tests.component.assembly.conftest import APP, Lab, config_map

from compositions.composed import steps_of
from compositions.python_functions import functions_here
from ground.objects.kube_objects import CONFIG_MAP, FUNCTION, Kind, Manifest, condition
from kubeschema.validate import Validator
from orderkit.core.plan import AssemblyContext, Blueprint, assemble

SECRET = Kind("", "v1", "Secret")
PACKAGES = {
    "environments": "registry.example.org/contrib/function-environment-configs:v0.7.1",
    "patches": "registry.example.org/contrib/function-patch-and-transform:v0.10.8",
    "function-auto-ready": "registry.example.org/contrib/function-auto-ready:v0.7.0",
}
PIPELINE: list[dict[str, Any]] = yaml.safe_load("""
- step: environment
  functionRef: {name: environments}
  input:
    apiVersion: environmentconfigs.fn.crossplane.io/v1beta1
    kind: Input
    spec:
      environmentConfigs:
      - type: Selector
        selector:
          mode: Multiple
          matchLabels: [{key: region, valueFromFieldPath: spec.region}]
- step: render
  functionRef: {name: patches}
  input:
    apiVersion: pt.fn.crossplane.io/v1beta1
    kind: Resources
    patchSets:
    - name: home
      patches: [{type: FromEnvironmentFieldPath, fromFieldPath: zone, toFieldPath: data.zone}]
    resources:
    - name: first
      base: {apiVersion: v1, kind: ConfigMap, metadata: {namespace: team-a}}
      connectionDetails: [{name: zone, type: FromFieldPath, fromFieldPath: data.zone}]
      readinessChecks: [{type: NonEmpty, fieldPath: data.zone}]
      patches:
      - {type: PatchSet, patchSetName: home}
      - {type: ToCompositeFieldPath, fromFieldPath: data.zone, toFieldPath: status.note}
      - fromFieldPath: spec.size
        toFieldPath: data.size
        transforms:
        - {type: math, math: {type: Multiply, multiply: 1024}}
        - {type: string, string: {type: Format, fmt: "%vMi"}}
    - name: second
      base: {apiVersion: v1, kind: ConfigMap, metadata: {namespace: team-a}}
      readinessChecks: [{type: None}]
      patches:
      - {fromFieldPath: status.note, toFieldPath: data.after, policy: {fromFieldPath: Required}}
    writeConnectionSecretToRef: {name: zones, namespace: team-a}
- {step: ready, functionRef: {name: function-auto-ready}}
""")


@pytest.fixture(scope="module")
def furnished(lab: Lab) -> Lab:
    for name in ("environments", "patches"):
        spec = {"package": PACKAGES[name]}
        lab.apply({**lab.function_object(name), "spec": spec})
    lab.apply(environment())
    made = lab.composition("twinned", APP)
    lab.apply({**made, "spec": {**made["spec"], "pipeline": PIPELINE}})
    return lab


def environment() -> Manifest:
    return {
        "apiVersion": "apiextensions.crossplane.io/v1beta1",
        "kind": "EnvironmentConfig",
        "metadata": {"name": "eu", "labels": {"region": "eu"}},
        "data": {"zone": "eu-west"},
    }


def an_app(name: str) -> Manifest:
    spec = {"size": 2, "region": "eu", "crossplane": {"compositionRef": {"name": "twinned"}}}
    meta = {"name": name}
    return {"apiVersion": APP.api_version, "kind": APP.kind, "metadata": meta, "spec": spec}


def test_functions_of_others_are_healthy_by_their_package(furnished: Lab) -> None:
    def healthy() -> bool:
        found = furnished.get(FUNCTION, "patches") or {}
        return (condition(found, "Healthy") or {}).get("status") == "True"

    assert furnished.wait("patches healthy", healthy)


def test_what_a_plan_foretells_is_what_is_assembled(furnished: Lab) -> None:
    furnished.apply(an_app("twinned"))
    xr = furnished.wait_ready("twinned")
    made = furnished.cluster.list(CONFIG_MAP, namespace="team-a").items
    ours = {each["metadata"]["name"]: each for each in made if "data" in each}

    plan = assemble({**an_app("twinned"), "metadata": xr["metadata"]}, a_workshop())

    assert plan.readiness == "Ready"
    assert not plan.unknowns
    assert plan.waves == (("first",), ("twinned-connection-secret",), ("second",))
    for name in ("first", "second"):
        wanted = plan.resources[name]
        assert ours[wanted["metadata"]["name"]]["data"] == wanted["data"]
    assert plan.resources["first"]["data"] == {"zone": "eu-west", "size": "2048Mi"}
    assert plan.xr["status"]["note"] == xr["status"]["note"] == "eu-west"
    secret = furnished.get(SECRET, "zones", "team-a") or {}
    assert secret["data"] == plan.resources["twinned-connection-secret"]["data"]


def a_workshop() -> AssemblyContext:
    blueprint = Blueprint(
        Validator(Lab.xrd(APP, "apps")), steps_of({"pipeline": PIPELINE}), "twinned"
    )
    chosen = functions_here({}, PACKAGES, [])
    shop = {(APP.group, APP.kind): blueprint}
    return AssemblyContext(shop, chosen.functions, existing=[environment()], notes=chosen.notes)


def test_what_a_twin_refuses_fails_in_words(furnished: Lab) -> None:
    made = furnished.composition("odd", APP)
    template = {
        "name": "a",
        "base": config_map("a"),
        "patches": [
            {
                "fromFieldPath": "spec.region",
                "toFieldPath": "data.a",
                "transforms": [{"type": "string", "string": {"type": "Format", "fmt": "%#v"}}],
            }
        ],
    }
    given = {
        "apiVersion": "pt.fn.crossplane.io/v1beta1",
        "kind": "Resources",
        "resources": [template],
    }
    pipeline = [{"step": "odd", "functionRef": {"name": "patches"}, "input": given}]
    furnished.apply({**made, "spec": {**made["spec"], "pipeline": pipeline}})
    app = an_app("odd")
    app["spec"]["crossplane"] = {"compositionRef": {"name": "odd"}}
    furnished.apply(app)

    told = "cannot run Function \"patches\": fmt '%#v'"
    furnished.wait(told, lambda: told in furnished.status("odd", "Synced"))
