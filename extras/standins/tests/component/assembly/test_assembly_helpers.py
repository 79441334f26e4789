"""The stations' helpers on the embedded platform: passwords that stay, layers that go missing."""

from __future__ import annotations

from typing import Any

import pytest
from extras.standins.tests.component.assembly.conftest import APP, Lab

from compositions.resource_builders import SEED_NAMESPACE, seed_secret
from compositions.station import INPUT
from ground.objects.kube_objects import CONFIG_MAP, Kind, Manifest, ObjectKey
from orderkit.stations import (
    Parts,
    StationRequest,
    StationResponse,
    generated_password,
    layered_settings,
    manifest,
    secret,
)

SECRET = Kind("", "v1", "Secret")
ENVIRONMENT = Kind("apiextensions.crossplane.io", "v1beta1", "EnvironmentConfig")
SCHEMA = {"type": "object", "required": ["a"], "properties": {"a": {"type": "string"}}}
LAYERS = [
    {"name": "baseline", "labels": {"layer": "baseline"}},
    {"name": "region", "labels": {"layer": "region"}, "labelsFrom": {"region": "spec.region"}},
]


def keep_password(request: StationRequest, response: StationResponse) -> None:
    password = generated_password(request, response, "credentials")
    if password is not None:
        parts = Parts(request, response, namespace="team-a")
        parts.want("credentials", secret({"password": password}))


def copy_setting(request: StationRequest, response: StationResponse) -> None:
    settings = layered_settings(request, response)
    if settings is not None:
        parts = Parts(request, response, namespace="team-a")
        parts.want("copy", manifest("v1", "ConfigMap", data={"a": settings.get("a", str)}))


@pytest.fixture(scope="module")
def furnished(lab: Lab) -> Lab:
    lab.apply(lab.namespace(SEED_NAMESPACE), seed_secret("the seed of this platform, all of it"))
    made = lab.composition("layered", APP)
    step_input = {"apiVersion": INPUT.api_version, "kind": INPUT.kind, "name": "lab"}
    made["spec"]["pipeline"][0]["input"] = {**step_input, "layers": LAYERS, "layersSchema": SCHEMA}
    lab.apply(made)
    for name, labels in (("base", {"layer": "baseline"}), ("eu", {"layer": "region"})):
        region = {"region": "eu"} if name == "eu" else {}
        meta: Manifest = {"name": name, "labels": {**labels, **region}}
        kind = {"apiVersion": ENVIRONMENT.api_version, "kind": ENVIRONMENT.kind}
        lab.apply({**kind, "metadata": meta, "data": {"a": name}})
    return lab


def password_of(lab: Lab) -> str:
    found = lab.get(SECRET, "credentials", "team-a") or {}
    return str((found.get("data") or {}).get("password") or "")


def test_a_password_stays_whatever_happens_to_seed_and_secret(furnished: Lab) -> None:
    furnished.app("secretive", keep_password)
    furnished.wait_ready("secretive")
    first = password_of(furnished)
    assert first

    furnished.cluster.delete(ObjectKey(SECRET, "credentials", "team-a"))
    assert furnished.wait("the Secret is back", lambda: password_of(furnished)) == first

    calls = furnished.calls.count("secretive")
    furnished.apply(seed_secret("another seed of this platform, later"))
    furnished.app("secretive", keep_password, size=2)
    furnished.wait("called", lambda: furnished.calls.count("secretive") > calls)
    furnished.wait_ready("secretive")
    assert password_of(furnished) == first


def test_a_layer_that_vanishes_drops_nothing_and_is_named(furnished: Lab) -> None:
    spec: dict[str, Any] = {"region": "eu", "crossplane": {"compositionRef": {"name": "layered"}}}
    furnished.app("layered", copy_setting, **spec)
    furnished.wait_ready("layered")
    assert (furnished.get(CONFIG_MAP, "copy", "team-a") or {})["data"] == {"a": "eu"}

    furnished.cluster.delete(ObjectKey(ENVIRONMENT, "eu"))
    furnished.app("layered", copy_setting, size=2, **spec)

    message = 'layer "region" is missing: no EnvironmentConfig has the labels layer=region'
    furnished.wait(message, lambda: message in furnished.status("layered", "Synced"))
    assert (furnished.get(CONFIG_MAP, "copy", "team-a") or {})["data"] == {"a": "eu"}
