"""The layer that installs the service: what it holds, what schemas and settings say of it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path, PurePosixPath

import pytest
import yaml

from ground.errors import InvalidInputError
from ground.objects.kube_objects import Kind, Manifest, dig
from kubeschema.known.builtin_kinds import built_in
from orderkit.adapters.folders.pack_folder import read_folder, reference_pack
from orderkit.core.kit.checked_kits import checked_kits
from orderkit.core.kit.order_kinds import service_rules
from orderkit.core.kit.pack import read_pack
from orderkit.core.platform import settings
from orderkit.core.platform.settings import PlatformSettings
from orderkit.flows.install.pack_rendering import render_pack, values_of

FOLDER = PurePosixPath("/home/ann/platform")
TEXT = """apiVersion: orderkit.dev/v1alpha1
kind: Platform
metadata: {name: production}
spec:
  registry: registry.example.org
  forge: {url: "https://git.example.org", tokenFile: f, caFile: ca, adopted: [alice], SPEC}
  cluster: {kubeconfig: k, context: admin}
  portal: {url: "https://portal.example.org", tokenFile: p}
  notifications: {channels: {chat: {type: apprise, urlFile: chat}}}
  service:
    url: https://orderkit.example.org
    tokenFile: s
    signingKeyFile: key.pem
    access: {tokensFile: clients.yaml}
    install: {callers: [ingress-nginx, monitoring], monitoring: true, MORE}
"""
GATEWAY = "route: {kind: HTTPRoute, gateway: edge/public}"
NOT_KUBERNETES = ("monitoring.coreos.com", "gateway.networking.k8s.io", "argoproj.io")
"""Judged by their own CRDs: ``tests/e2e/test_service_layer_schemas.py``."""


def read(more: str = "", spec: str = "", *, text: str = TEXT) -> PlatformSettings:
    return settings.parse(text.replace("MORE", more).replace("SPEC", spec), folder=FOLDER)


def rendered(found: PlatformSettings) -> dict[PurePosixPath, bytes]:
    return render_pack(read_folder(reference_pack()), values_of(found, "c" * 40))


def layer(found: PlatformSettings) -> dict[tuple[str, str], Manifest]:
    """Return the objects of the layer by kind and name."""
    return {
        (each["kind"], f"{each['metadata'].get('namespace', '')}/{each['metadata']['name']}"): each
        for path, data in rendered(found).items()
        if path.is_relative_to("gitops/service")
        for each in yaml.safe_load_all(data)
    }


@pytest.mark.parametrize(
    "more", ["", GATEWAY, "route: {kind: none}", "route: {ingressClass: nginx, tlsSecret: tls}"]
)
def test_every_object_is_what_kubernetes_asks_for(more: str) -> None:
    for (kind, name), manifest in layer(read(more)).items():
        key = Kind.of(manifest)
        if key.group in NOT_KUBERNETES:
            continue
        report = built_in()[key.group, kind].validator.check(manifest)
        assert [str(finding) for finding in report.findings] == [], (kind, name)


def test_the_schemas_can_refuse_an_object_of_the_layer() -> None:
    deployment = layer(read())["Deployment", "orderkit-service/orderkit-service"]
    deployment["spec"]["replica"] = 2

    report = built_in()["apps", "Deployment"].validator.check(deployment)

    assert ["replica" in str(finding) for finding in report.findings] == [True]


def test_a_platform_that_does_not_install_the_service_gets_no_layer() -> None:
    text = "\n".join(line for line in TEXT.splitlines() if "install:" not in line)

    assert not [path for path in rendered(read(text=text)) if path.is_relative_to("gitops/service")]


def test_its_application_comes_after_the_kinds_and_before_the_ledger() -> None:
    files = rendered(read())
    waves = {
        path.stem: int(yaml.safe_load(data)["metadata"]["annotations"][WAVE])
        for path, data in files.items()
        if path.parent == PurePosixPath("gitops/apps")
    }

    assert waves["apis"] < waves["service"] < waves["ledger"]
    application = yaml.safe_load(files[PurePosixPath("gitops/apps/service.yaml")])
    assert application["spec"]["syncPolicy"]["retry"]["refresh"] is True
    assert application["spec"]["source"]["repoURL"] == "https://git.example.org/platform/pack.git"


WAVE = "argocd.argoproj.io/sync-wave"


def test_the_pods_read_the_same_platform_from_files_of_their_own() -> None:
    found = read()
    data = layer(found)["ConfigMap", "orderkit-service/orderkit-service"]["data"]

    inside = settings.parse(data["platform.yaml"], folder=PurePosixPath("/etc/orderkit"))
    assert inside.cluster.kubeconfig == PurePosixPath("/etc/orderkit/kubeconfig")
    assert inside.forge.token_file == PurePosixPath("/etc/orderkit/forge.tokenFile")
    assert inside.forge.adopted == ("alice",)
    channel = inside.notifications.channels["chat"]
    assert channel.url_file == PurePosixPath("/etc/orderkit/notifications.channels.chat.urlFile")
    assert inside.service.install is None
    assert inside.registry == found.registry
    assert yaml.safe_load(data["kubeconfig"])["users"][0]["user"] == {"tokenFile": "token"}


def test_nothing_of_the_bootstrappers_machine_is_published() -> None:
    """Neither a path nor the name of a context gets into Git."""
    for data in rendered(read()).values():
        assert str(FOLDER).encode() not in data
        assert b"context: admin" not in data


def test_the_pods_have_no_right_on_their_node() -> None:
    for kind, path in (
        ("Deployment", ("spec", "template", "spec")),
        ("CronJob", ("spec", "jobTemplate", "spec", "template", "spec")),
    ):
        (manifest,) = [one for (found, _), one in layer(read()).items() if found == kind]
        pod = dig(manifest, *path)
        (container,) = pod["containers"]
        assert pod["automountServiceAccountToken"] is False
        assert pod["securityContext"]["runAsNonRoot"] is True
        assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
        assert container["securityContext"] == {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        }
        assert {"cpu", "memory"} == container["resources"]["requests"].keys()


def test_only_the_named_namespaces_may_connect_and_no_metadata_of_a_node_is_reached() -> None:
    found = layer(read())
    policy = found["NetworkPolicy", "orderkit-service/orderkit-service"]["spec"]

    ((expression,),) = [
        peer["namespaceSelector"]["matchExpressions"] for peer in policy["ingress"][0]["from"]
    ]
    assert expression["values"] == ["ingress-nginx", "monitoring"]
    missed = found["NetworkPolicy", "orderkit-service/orderkit-service-missed"]["spec"]
    assert missed["ingress"] == []
    for each in (policy, missed):
        blocks = [peer["ipBlock"] for rule in each["egress"] for peer in rule.get("to", ())]
        assert blocks[0]["except"] == ["169.254.0.0/16"]


COLLECTOR = "http://collector.tracing.svc:4318"


def test_the_pods_send_traces_where_platform_yaml_says_and_may_reach_it() -> None:
    plain = layer(read())
    found = layer(read(f"traces: {{endpoint: '{COLLECTOR}', namespace: tracing}}"))

    for objects, sent in ((plain, {}), (found, {"OTEL_EXPORTER_OTLP_ENDPOINT": COLLECTOR})):
        for kind, name, path in (
            ("Deployment", "orderkit-service", ("spec", "template", "spec")),
            (
                "CronJob",
                "orderkit-service-missed",
                ("spec", "jobTemplate", "spec", "template", "spec"),
            ),
        ):
            (container,) = dig(objects[kind, f"orderkit-service/{name}"], *path)["containers"]
            variables = {each["name"]: each["value"] for each in container["env"]}
            assert {k: v for k, v in variables.items() if k.startswith("OTEL_")} == sent
    key = ("NetworkPolicy", "orderkit-service/orderkit-service-traces")
    assert key not in plain
    policy = found[key]["spec"]
    assert policy["policyTypes"] == ["Egress"]
    ((peer,),) = [rule["to"] for rule in policy["egress"]]
    selector = {"matchLabels": {"kubernetes.io/metadata.name": "tracing"}}
    assert peer == {"namespaceSelector": selector}
    (pods,) = policy["podSelector"]["matchExpressions"]
    assert pods["values"] == ["orderkit-service", "orderkit"], "the labels of both kinds of Pods"


@pytest.mark.parametrize("endpoint", [COLLECTOR, ""])
def test_headers_for_the_collector_come_from_a_secret(endpoint: str) -> None:
    found = layer(read(f"traces: {{endpoint: '{endpoint}', headersSecret: otlp}}"))

    pod = dig(found["Deployment", "orderkit-service/orderkit-service"], "spec", "template", "spec")
    variables = {each["name"]: each.get("valueFrom") for each in pod["containers"][0]["env"]}
    reference = {"secretKeyRef": {"name": "otlp", "key": "headers", "optional": True}}
    name = "OTEL_EXPORTER_OTLP_HEADERS"
    assert variables.get(name) == (reference if endpoint else None)


def test_the_image_is_the_one_of_this_release_unless_platform_yaml_names_another() -> None:
    other = f"mirror.example.org/orderkit@sha256:{'a' * 64}"
    for more, image in (
        ("", "registry.example.org/orderkit/orderkit:v0.3.0"),
        (f"image: '{other}', pullSecret: pull", other),
    ):
        deployment = layer(read(more))["Deployment", "orderkit-service/orderkit-service"]
        pod = deployment["spec"]["template"]["spec"]
        assert pod["containers"][0]["image"] == image
        assert pod.get("imagePullSecrets", []) == ([{"name": "pull"}] if more else [])


def test_a_gateway_gets_a_route_with_the_public_name() -> None:
    found = layer(read(GATEWAY))

    assert not [name for kind, name in found if kind == "Ingress"]
    spec = found["HTTPRoute", "orderkit-service/orderkit-service"]["spec"]
    assert spec["parentRefs"] == [{"name": "public", "namespace": "edge"}]
    assert spec["hostnames"] == ["orderkit.example.org"]


def without(*words: str) -> Callable[[str], str]:
    def cut(text: str) -> str:
        for word in words:
            assert word in text
            text = text.replace(word, "")
        return text

    return cut


def more(text: str) -> Callable[[str], str]:
    return swapped("MORE", text)


def swapped(old: str, new: str) -> Callable[[str], str]:
    return lambda text: text.replace(old, new)


REFUSED: dict[str, tuple[Callable[[str], str], str]] = {
    "no address": (without("    url: https://orderkit.example.org\n"), "url"),
    "no token of the forge": (without(" tokenFile: f,"), "forge.tokenFile"),
    "plain HTTP": (swapped("https://orderkit", "http://orderkit"), "publicUrl"),
    "a gateway for an Ingress": (more("route: {gateway: a/b}"), "gateway"),
    "an HTTPRoute without": (more("route: {kind: HTTPRoute}"), "gateway"),
    "no tokens": (without("    access: {tokensFile: clients.yaml}\n"), "tokensFile"),
    "nobody may call": (swapped("[ingress-nginx, monitoring]", "[]"), "callers"),
    "a name that is none": (swapped("ingress-nginx,", "'a b',"), "callers"),
    "no replica": (more("replicas: 0"), "replicas"),
    "an image that is none": (more("image: 'a b'"), "image"),
    "a collector by another protocol": (more("traces: {endpoint: 'grpc://c:4317'}"), "endpoint"),
    "a collector with a password": (more("traces: {endpoint: 'http://a:b@c'}"), "endpoint"),
    "orderkit up": (swapped("  registry:", "  target: embedded\n  registry:"), "install"),
}


@pytest.mark.parametrize(("changed", "field"), REFUSED.values(), ids=REFUSED)
def test_settings_that_cannot_work_are_refused_by_name(
    changed: Callable[[str], str], field: str
) -> None:
    with pytest.raises(InvalidInputError) as error:
        read(text=changed(TEXT))

    assert field in str(error.value)


def test_a_layer_of_the_pack_with_this_name_is_not_overwritten() -> None:
    files = {**read_folder(reference_pack()), PurePosixPath("gitops/apps/service.yaml"): b"{}"}

    with pytest.raises(InvalidInputError, match=r"gitops/apps/service\.yaml"):
        render_pack(files, values_of(read(), "c" * 40))


def test_a_pack_whose_orders_hold_secrets_lets_the_service_read_them() -> None:
    packs = (reference_pack(), Path(__file__).parents[3] / "packs" / "environments")
    rules = [service_rules(checked_kits(read_pack(read_folder(pack)))) for pack in packs]

    secrets = [[rule for rule in each if rule["resources"] == ["secrets"]] for each in rules]
    assert secrets == [[], [{"apiGroups": [""], "resources": ["secrets"], "verbs": ["get"]}]]
