"""Objects of the installed service, judged by the CRDs of Gateway API, Prometheus and Argo CD."""

from __future__ import annotations

from pathlib import PurePosixPath

import pytest
import yaml
from lab.binaries import built

from ground.objects.kube_objects import Kind, Manifest
from kubeschema.validate import Validator
from orderkit.core.platform.service_access import ServiceInstall, ServiceRoute
from orderkit.core.platform.service_objects import (
    APPLICATION_FILE,
    ServiceParts,
    layer_files,
)

RELEASE = "3.6.1"
PARTS = ServiceParts(
    ServiceInstall(
        ("edge",), route=ServiceRoute("HTTPRoute", gateway="edge/public"), monitoring=True
    ),
    "r.example.org/o:v1",
    "platform",
    "orderkit.example.org",
)


@pytest.fixture(scope="module")
def validators() -> dict[tuple[str, str], Validator]:
    files = [
        *built("neighbourcrds").glob("*.yaml"),
        built("argocdcrds") / RELEASE / "application-crd.yaml",
    ]
    found = [Validator(yaml.load(file.read_bytes(), yaml.CSafeLoader)) for file in files]
    return {(one.group, one.kind): one for one in found}


def objects() -> list[tuple[PurePosixPath, Manifest]]:
    return [
        (path, each)
        for path, data in layer_files(PARTS).items()
        for each in yaml.safe_load_all(data)
    ]


@pytest.mark.parametrize("kind", ["HTTPRoute", "ServiceMonitor", "PrometheusRule", "Application"])
def test_an_object_is_what_its_crd_asks_for(
    validators: dict[tuple[str, str], Validator], kind: str
) -> None:
    (manifest,) = [each for _, each in objects() if each["kind"] == kind]
    validator = validators[Kind.of(manifest).group, kind]

    assert [str(finding) for finding in validator.check(manifest).findings] == []
    manifest["spec"]["nonsense"] = True
    assert any("nonsense" in str(finding) for finding in validator.check(manifest).findings)


def test_the_application_delivers_the_folder_of_the_objects() -> None:
    (application,) = [each for path, each in objects() if path == APPLICATION_FILE]
    folders = {str(path.parent) for path, _ in objects() if path != APPLICATION_FILE}

    assert folders == {application["spec"]["source"]["path"]}
