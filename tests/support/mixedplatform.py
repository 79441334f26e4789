"""
A platform whose forge is a real Gitea; cluster, delivery, assembly and catalog are embedded.

Composed by hand from the same parts as `EmbeddedPlatform`, in this process, and reached like
any other: over HTTP, by the ``platform.yaml`` it writes. Pushes are found by looking, as
Argo CD does without webhooks.
"""

from __future__ import annotations

import contextlib
import secrets
import socket
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import yaml
from fetchedrepositories import FetchedRepositories
from published import Up

from compositions.python_functions import python_functions
from ground.objects.kube_objects import ARGOCD_NAMESPACE
from orderkit.adapters.commit_signatures import new_signing_key
from orderkit.adapters.folders.station_process import load_stations
from orderkit.adapters.gitea import GiteaForge
from orderkit.adapters.state_folder import PLATFORM_FILE
from orderkit.cli.connecting import connect, service_options
from orderkit.core.platform.installation import CROSSPLANE_ACCOUNT
from orderkit.core.platform.settings import (
    ClusterSettings,
    ForgeSettings,
    PlatformSettings,
    PortalSettings,
    ServiceSettings,
)
from orderkit.web.service import service_app
from orderkit.web.serving import HOST, HttpServer, bind
from orderkit_standins.argocd import EmbeddedArgoCD, argocd_crds
from orderkit_standins.catalog import EmbeddedCatalog
from orderkit_standins.catalog.http import catalog_app
from orderkit_standins.cluster import EmbeddedCluster
from orderkit_standins.cluster.http import cluster_app
from orderkit_standins.crossplane import EmbeddedCrossplane, crossplane_crds
from orderkit_standins.loopback_certificate import Certificate, ensure_certificate

if TYPE_CHECKING:
    from starlette.types import ASGIApp

OWNER = "orderkit"


@dataclass(frozen=True, slots=True)
class Wanted:
    """Where the platform's state goes, which pack it runs, and which forge it has."""

    folder: Path
    pack: Path
    forge_url: str
    user: str
    token: str = field(repr=False)


@contextlib.contextmanager
def running(wanted: Wanted) -> Iterator[Up]:
    """Start every part but the forge, hand out the platform not yet bootstrapped, stop all."""
    with contextlib.ExitStack() as undo:
        site = _Site(wanted.folder, undo)
        (wanted.folder / "tls").mkdir()
        forge = undo.enter_context(GiteaForge(wanted.forge_url, token=wanted.token))
        cluster, address = _cluster(site)
        catalog = EmbeddedCatalog(wanted.folder / "catalog.sqlite", forge)
        site.undo.callback(catalog.close)
        portal = site.serve("portal", catalog_app(catalog, token=site.secret("portal")))
        stations = python_functions(load_stations(wanted.pack))
        for part in (
            EmbeddedCrossplane(cluster.acting_as(CROSSPLANE_ACCOUNT), stations),
            EmbeddedArgoCD(cluster, _sources(wanted)),
        ):
            part.start()
            site.undo.callback(part.stop)
        service = bind("service", 0)
        site.undo.callback(service.close)
        settings = PlatformSettings(
            name="mixed",
            forge=ForgeSettings(wanted.forge_url, site.keep("forge", wanted.token)),
            portal=PortalSettings(portal, site.path("portal")),
            service=ServiceSettings(
                f"http://{HOST}:{service.getsockname()[1]}",
                site.path("service"),
                signing_key_file=site.signing_key(),
            ),
            cluster=ClusterSettings(_kubeconfig(site, address)),
        )
        site.secret("service")
        platform = connect(settings)
        site.serve_on(service, service_app(platform, service_options(settings, audit=None)))
        (wanted.folder / PLATFORM_FILE).write_text(settings.to_yaml())
        yield Up(wanted.folder, settings, platform)


@dataclass(frozen=True, slots=True)
class _Site:
    """Loopback servers, and files with the secrets to enter them."""

    folder: Path
    undo: contextlib.ExitStack

    def path(self, part: str) -> Path:
        return self.folder / f"{part}-token"

    def keep(self, part: str, secret: str) -> Path:
        """Write a part's token to its file, for this user alone."""
        path = self.path(part)
        path.touch(mode=0o600)
        path.write_text(secret)
        return path

    def secret(self, part: str) -> str:
        """Return a part's token; made when first asked for."""
        if not self.path(part).exists():
            self.keep(part, secrets.token_hex(20))
        return self.path(part).read_text()

    def signing_key(self) -> Path:
        path = self.folder / "signing-key.pem"
        path.touch(mode=0o600)
        path.write_text(new_signing_key())
        return path

    def serve(self, part: str, app: ASGIApp, certificate: Certificate | None = None) -> str:
        return self.serve_on(bind(part, 0), app, certificate)

    def serve_on(
        self, sock: socket.socket, app: ASGIApp, certificate: Certificate | None = None
    ) -> str:
        server = HttpServer(app, sock, certificate)
        server.start()
        self.undo.callback(server.stop)
        return server.url


def _cluster(site: _Site) -> tuple[EmbeddedCluster, str]:
    cluster = EmbeddedCluster(site.folder / "cluster.sqlite")
    site.undo.callback(cluster.close)
    for crd in (*argocd_crds(), *crossplane_crds()):
        cluster.apply(crd, owner=OWNER)
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": ARGOCD_NAMESPACE}}
    cluster.apply(namespace, owner=OWNER)
    app = cluster_app(cluster, token=site.secret("cluster"))
    return cluster, site.serve("cluster", app, ensure_certificate(site.folder / "tls"))


def _sources(wanted: Wanted) -> FetchedRepositories:
    return FetchedRepositories(
        wanted.forge_url, wanted.folder / "mirrors", user=wanted.user, token=wanted.token
    )


def _kubeconfig(site: _Site, address: str) -> Path:
    authority = str(ensure_certificate(site.folder / "tls").authority)
    cluster = {"server": address, "certificate-authority": authority}
    path = site.folder / "kubeconfig"
    path.touch(mode=0o600)
    path.write_text(
        yaml.safe_dump(
            {
                "apiVersion": "v1",
                "kind": "Config",
                "current-context": "mixed",
                "clusters": [{"name": "mixed", "cluster": cluster}],
                "contexts": [{"name": "mixed", "context": {"cluster": "mixed", "user": "mixed"}}],
                "users": [{"name": "mixed", "user": {"token": site.secret("cluster")}}],
            }
        )
    )
    return path
