"""The forge of a cluster that idpbuilder made is trusted by the authority kept in that cluster."""

from __future__ import annotations

import base64
from pathlib import Path

import pytest
from platformsettings import settings_with

from ground.errors import NotFoundError, OrderkitError
from ground.objects.kube_objects import Manifest
from ground.shapes import changed
from orderkit.adapters.kube.idpbuilder_authority import SECRET
from orderkit.cli.connecting import connect
from orderkit.core.platform.installation import Installation, PlatformTarget
from orderkit.web import serving
from orderkit_standins.forge import EmbeddedForge
from orderkit_standins.loopback_certificate import ensure_certificate

from .conftest import Bare

TOKEN = "0123456789abcdef0123456789abcdef01234567"


def secret(pem: str) -> Manifest:
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": SECRET.name, "namespace": SECRET.namespace},
        "data": {"ca.crt": base64.b64encode(pem.encode()).decode()},
    }


def test_a_forge_with_that_authority_is_reached_over_tls(
    site: Bare, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    (tmp_path / "tls").mkdir()
    certificate = ensure_certificate(tmp_path / "tls")
    forge = EmbeddedForge(tmp_path / "forge")
    forge.ensure_user("warden", "secret", admin=True)
    forge.ensure_token("warden", "test", TOKEN, ("all",))
    server = serving.HttpServer(forge.app, serving.bind("forge", 0), certificate)
    server.start()
    try:
        (tmp_path / "token").write_text(TOKEN)
        endpoint = changed(site.settings.forge, url=server.url, token_file=tmp_path / "token")
        on_idpbuilder = Installation(PlatformTarget.IDPBUILDER)
        settings = settings_with(site.settings, on_idpbuilder, forge=endpoint)
        with pytest.raises(NotFoundError, match="idpbuilder's authority is not in the cluster"):
            connect(settings)
        site.platform.cluster.apply(secret(certificate.authority.read_text()), owner="test")

        assert connect(settings).forge.user() == "warden"

        untrusting = settings_with(settings, Installation(PlatformTarget.CLUSTER))
        with pytest.raises(OrderkitError, match="certificate"):
            connect(untrusting).forge.user()
    finally:
        server.stop()
        forge.close()
        site.platform.cluster.delete(SECRET)
