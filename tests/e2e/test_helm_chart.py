"""The Helm chart, by a real Helm: it makes the objects of the layer, and refuses values by name."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path, PurePosixPath
from typing import Any

import pytest
import yaml
from lab.binaries import built
from ociregistry import real_registry, real_registry_program

from ground.objects.kube_objects import Manifest
from ground.shapes import changed, plain
from orderkit.core.platform import settings
from orderkit.core.platform.service_access import ServiceInstall, ServiceRoute, ServiceTraces
from orderkit.core.platform.service_objects import ServiceParts, service_objects, service_parts

CHART = Path(__file__).parents[2] / "charts" / "orderkit-service"
VALUES = (CHART / "values.yaml").read_text()
RULES = [{"apiGroups": ["blog.opsbogus.dev"], "resources": ["xgarages"], "verbs": ["get", "list"]}]
PLATFORM = """apiVersion: orderkit.dev/v1alpha1
kind: Platform
metadata: {name: production}
spec:
  forge: {url: "https://git.example.org", tokenFile: f}
  cluster: {kubeconfig: k}
  notifications: {channels: {chat: {type: apprise, urlFile: "chat's"}}}
  service: {url: "https://orderkit.example.org", tokenFile: s}
"""
INSTALLS = {
    "an Ingress": ServiceInstall(("ingress-nginx",), image="r.example.org/o:v1"),
    "everything": ServiceInstall(
        ("ingress-nginx", "backstage"),
        image=f"r.example.org/o@sha256:{'a' * 64}",
        pull_secret="pull",
        replicas=5,
        route=ServiceRoute("Ingress", "nginx", "tls"),
        monitoring=True,
        metrics_secret="other",
        traces=ServiceTraces("https://collector.example.org/otlp", "tracing", "otlp"),
    ),
    "a Gateway": ServiceInstall(
        ("edge",),
        image="r.example.org/o:v1",
        route=ServiceRoute("HTTPRoute", gateway="edge/public"),
    ),
    "no route": ServiceInstall(("backstage",), image="r:1", route=ServiceRoute("none")),
}
Helm = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="module")
def helm(tmp_path_factory: pytest.TempPathFactory) -> Helm:
    home = tmp_path_factory.mktemp("helm")
    program = str(built("helm") / "helm")

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [program, *arguments],
            capture_output=True,
            text=True,
            check=False,
            env={"HOME": str(home), "PATH": "/usr/bin:/bin"},
        )

    return run


def parts_of(install: ServiceInstall, *, notifies: bool = True) -> ServiceParts:
    text = PLATFORM if notifies else PLATFORM.replace("channels: {chat", "digest: {}} #")
    found = settings.parse(text, folder=PurePosixPath("/p"))
    service = changed(found.service, install=install)
    parts = service_parts(changed(found, service=service), RULES)
    assert parts is not None
    return parts


def values_of(parts: ServiceParts) -> dict[str, Any]:
    """Return the chart's values for what platform.yaml says."""
    return {
        **plain(parts.install),
        "image": parts.image,
        "host": parts.host,
        "platformYaml": parts.platform_yaml,
        "rules": list(parts.rules),
        "notificationsNamespace": parts.notifications_namespace,
    }


def sorted_objects(objects: list[Manifest]) -> list[Manifest]:
    def key(one: Manifest) -> tuple[str, str, str]:
        meta = one["metadata"]
        return one["kind"], meta.get("namespace", ""), meta["name"]

    return sorted(objects, key=key)


def written(folder: Path, values: dict[str, Any]) -> str:
    path = folder / "values.yaml"
    path.write_text(yaml.safe_dump(values))
    return str(path)


@pytest.mark.parametrize("notifies", [True, False])
@pytest.mark.parametrize("install", INSTALLS.values(), ids=INSTALLS)
def test_the_chart_makes_what_the_layer_has_but_namespaces(
    helm: Helm, tmp_path: Path, install: ServiceInstall, *, notifies: bool
) -> None:
    parts = parts_of(install, notifies=notifies)
    layer = [each for objects in service_objects(parts).values() for each in objects]

    file = written(tmp_path, values_of(parts))
    done = helm("template", "orderkit-service", str(CHART), "--values", file)

    assert done.returncode == 0, done.stderr
    made = [each for each in yaml.safe_load_all(done.stdout) if each]
    assert sorted_objects(made) == sorted_objects(
        [each for each in layer if each["kind"] != "Namespace"]
    )


def test_lint_finds_nothing_with_values(helm: Helm, tmp_path: Path) -> None:
    file = written(tmp_path, values_of(parts_of(INSTALLS["everything"])))

    done = helm("lint", str(CHART), "--strict", "--values", file)

    assert done.returncode == 0, done.stdout


def test_it_is_packed_with_its_schema(helm: Helm, tmp_path: Path) -> None:
    done = helm("package", str(CHART), "--destination", str(tmp_path))

    assert done.returncode == 0, done.stderr
    (packed,) = tmp_path.glob("orderkit-service-*.tgz")
    file = written(tmp_path, values_of(parts_of(INSTALLS["an Ingress"])))
    assert helm("template", "x", str(packed), "--values", file).returncode == 0
    assert helm("show", "values", str(packed)).stdout.strip() == VALUES.strip()


@pytest.mark.parametrize(
    ("others", "told"),
    [
        ({"callers": []}, "/callers"),
        ({"image": ""}, "/image"),
        ({"host": ""}, "/host"),
        ({"replicas": 0}, "/replicas"),
        ({"replicas": "2"}, "/replicas"),
        ({"route": {"kind": "HTTPRoute"}}, "gateway"),
        ({"route": {"kind": "LoadBalancer"}}, "/route/kind"),
        ({"replica": 2}, "replica"),
    ],
)
def test_a_value_that_cannot_work_is_refused_by_name(
    helm: Helm, tmp_path: Path, others: dict[str, Any], told: str
) -> None:
    values = {**values_of(parts_of(INSTALLS["an Ingress"])), **others}

    done = helm("template", "x", str(CHART), "--values", written(tmp_path, values))

    assert done.returncode != 0
    assert told in done.stderr


def test_a_registry_gives_out_the_chart_that_was_pushed(helm: Helm, tmp_path: Path) -> None:
    program = real_registry_program()
    if program is None:
        pytest.skip("no docker-registry here: scripts/test-tools.sh installs it")
    file = written(tmp_path, values_of(parts_of(INSTALLS["everything"])))
    assert helm("package", str(CHART), "--destination", str(tmp_path)).returncode == 0
    (packed,) = tmp_path.glob("orderkit-service-*.tgz")
    version = yaml.safe_load((CHART / "Chart.yaml").read_text())["version"]

    with real_registry(program, tmp_path) as registry:
        charts = f"oci://{registry.host}/charts"
        pushed = helm("push", str(packed), charts, "--plain-http")
        given = helm(
            "template", "x", f"{charts}/orderkit-service", "--version", version,
            "--plain-http", "--values", file,
        )  # fmt: skip

    assert pushed.returncode == 0, pushed.stderr
    assert given.stdout == helm("template", "x", str(CHART), "--values", file).stdout
