"""``orderkit bootstrap`` installs the service where platform.yaml says so; an upgrade moves it."""

from __future__ import annotations

import base64
from pathlib import Path

import pytest
from commands import in_process
from platformsettings import settings_with

from ground.objects.kube_objects import Kind, ObjectKey, dig
from ground.shapes import changed
from orderkit.core.platform.service_access import ServiceInstall, ServiceRoute
from orderkit.flows.argocd.refreshing import application_key
from orderkit.flows.install.service_secret import KEY

from .conftest import Bare
from .test_bootstrap_command import steps

DEPLOYMENT = ObjectKey(Kind("apps", "v1", "Deployment"), KEY.name, KEY.namespace)
SECRET_STEP, LAYER_STEP = "service secret", "layer service"


def installing(site: Bare, **install: object) -> Path:
    """Write a platform.yaml that installs the service; return its path."""
    wanted = ServiceInstall(("ingress-nginx",), route=ServiceRoute("none"), **install)  # type: ignore[arg-type]
    service = changed(site.settings.service, install=wanted)
    path = site.folder / "installing.yaml"
    path.write_text(settings_with(site.settings, service=service).to_yaml())
    return path


def secret(site: Bare) -> dict[str, bytes]:
    live = site.platform.cluster.get(KEY) or {}
    return {name: base64.b64decode(text) for name, text in dig(live, "data", default={}).items()}


def test_a_bootstrap_installs_it_and_a_second_one_changes_nothing(
    site: Bare, capsys: pytest.CaptureFixture[str]
) -> None:
    orderkit = in_process(installing(site), capsys)

    planned = steps(orderkit("bootstrap", "--plan", "--no-probe", "--json"))
    assert planned[SECRET_STEP] == planned[LAYER_STEP] == "would create"
    assert site.platform.cluster.get(KEY) is None, "a plan writes nothing"

    done = orderkit("bootstrap", "--no-probe", "--json")
    assert done.code == 0, done.err
    token = Path(str(site.settings.forge.token_file)).read_bytes()
    assert secret(site)["forge.tokenFile"].strip() == token.strip()
    assert token.strip().decode() not in done.out, "the step names entries, not values"
    live = site.platform.cluster.get(DEPLOYMENT)
    assert dig(live or {}, "spec", "replicas") == 2
    assert site.platform.cluster.get(application_key("service")) is not None

    again = steps(orderkit("bootstrap", "--no-probe", "--json"))
    assert set(again.values()) == {"already so"}


def test_a_secret_that_was_rotated_on_this_machine_reaches_the_cluster(
    site: Bare, capsys: pytest.CaptureFixture[str]
) -> None:
    own = in_process(installing(site), capsys)
    assert own("bootstrap", "--no-probe", "--json").code == 0
    file = Path(str(site.settings.portal.token_file))
    before = file.read_text()
    file.write_text("another-portal-token-0123456789\n")
    try:
        checked = own("platform", "check", "--json")
        assert checked.code == 1
        assert SECRET_STEP in checked.out
        done = own("platform", "upgrade", "--json")
        assert done.code == 0, done.err
        assert secret(site)["portal.tokenFile"] == b"another-portal-token-0123456789\n"
    finally:
        file.write_text(before)
        assert own("bootstrap", "--no-probe", "--json").code == 0


def test_an_upgrade_moves_the_image_and_nothing_else(
    site: Bare, capsys: pytest.CaptureFixture[str]
) -> None:
    assert in_process(installing(site), capsys)("bootstrap", "--no-probe").code == 0
    image = "registry.example.org/orderkit:v9.9.9"

    own = in_process(installing(site, image=image, replicas=3), capsys)
    planned = own("platform", "upgrade", "--plan", "--json")
    assert [wave["name"] for wave in planned.json["waves"]] == ["service"]
    done = own("platform", "upgrade", "--json")

    assert done.code == 0, done.err
    spec = (site.platform.cluster.get(DEPLOYMENT) or {})["spec"]
    assert spec["replicas"] == 3
    assert spec["template"]["spec"]["containers"][0]["image"] == image


def test_a_file_that_is_missing_is_named_before_anything_is_written(
    site: Bare, capsys: pytest.CaptureFixture[str]
) -> None:
    path = installing(site)
    text = path.read_text()
    path.write_text(text.replace("install:", "signingKeyFile: nowhere.pem\n    install:"))
    head = site.platform.forge.head(site.platform.pack_repo)

    done = in_process(path, capsys)("bootstrap", "--no-probe")

    assert done.code != 0
    assert "service.signingKeyFile" in done.err
    assert site.platform.forge.head(site.platform.pack_repo) == head
