"""
A platform of the lab that nobody has bootstrapped: real Gitea, real API server, real Argo CD.

Crossplane is stood for by our assembler, which works on the real API server through the
Kubernetes adapter; its kinds are the small CRDs of the embedded platform. There is no portal and
no service: ``orderkit bootstrap`` brings stand-ins along. Everything is this platform's own and
ends with the block.
"""

from __future__ import annotations

import contextlib
import secrets
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from lab import accounts, realargocd, realgitea, realkube
from lab.realargocd import ArgoCD, Wishes
from lab.realgitea import Gitea
from lab.realkube import Kube
from platformsettings import settings_with

from compositions.python_functions import python_functions
from ground.shapes import changed
from orderkit.adapters.folders.pack_folder import SCHEMAS, read_room, reference_pack
from orderkit.adapters.folders.station_process import load_stations
from orderkit.adapters.gitea import GiteaForge
from orderkit.adapters.kube.cluster import KubeCluster
from orderkit.cli.connecting import connect, service_options, token
from orderkit.cli.serving.bootstrap_ports import BootstrapOptions, prepared
from orderkit.core.platform.installation import CROSSPLANE_ACCOUNT, ArgoCDSettings
from orderkit.core.platform.settings import (
    ClusterSettings,
    ForgeSettings,
    PlatformSettings,
    PortalSettings,
    ServiceSettings,
)
from orderkit.flows.install.bootstrapping import bootstrap
from orderkit.flows.platform import Platform
from orderkit.web.service import service_app
from orderkit.web.serving import HttpServer, bind
from orderkit_standins.catalog import EmbeddedCatalog
from orderkit_standins.catalog.http import catalog_app
from orderkit_standins.controller import side_by_side
from orderkit_standins.crossplane import EmbeddedCrossplane, crossplane_crds
from orderkit_standins.platform import BOT_SCOPES
from orderkit_standins.providers import ManagedLibrary, Providers
from orderkit_standins.workloads import Workloads

NOBODY = "http://127.0.0.1:9"
"""Where neither a portal nor a service listens."""
SCOPES = (*(scope for scope in BOT_SCOPES if "admin" not in scope), "write:admin")
"""With the right to make an account for each team that reads its organisation."""
ARGOCD_VERSION = "3.6.1"
CHIEF = "user:default/chief"
"""Who bootstraps."""
_DAY_S = 86_400.0


@dataclass(frozen=True)
class LabPlatform:
    """The parts of the lab, and a platform.yaml for them."""

    folder: Path
    settings: PlatformSettings
    gitea: Gitea
    kube: Kube
    argocd: ArgoCD
    forge: GiteaForge
    cluster: KubeCluster

    @property
    def file(self) -> Path:
        return self.folder / "platform.yaml"

    @property
    def repositories(self) -> Path:
        """Where Gitea keeps its bare repositories."""
        return self.folder.parent / "gitea" / "repositories"

    def written(self, file: str, **changes: Any) -> Path:
        """Write another platform.yaml for the same lab; return its path."""
        path = self.folder / f"{file}.yaml"
        path.write_text(settings_with(self.settings, **changes).to_yaml())
        return path


@dataclass(frozen=True)
class ServedLab:
    """A bootstrapped lab with a portal and a service."""

    lab: LabPlatform
    platform: Platform
    file: Path
    """Its platform.yaml, which names them."""


@contextlib.contextmanager
def serving(
    folder: Path,
    *,
    teams: tuple[str, ...] = ("ae86",),
    pack: Path | None = None,
    twins: bool = False,
    values: Mapping[str, str] | None = None,
    wishes: Wishes | None = None,
    more_controllers: Sequence[str] = (),
) -> Iterator[LabPlatform]:
    """
    Start the lab with its state in `folder`; its repositories will be private.

    Args:
        pack: Whose stations run; None: the reference pack's.
        twins: Whether the twins of the pack's providers, and of the controllers of workloads, run.
        values: What the platform bakes into the pack.
        wishes: What Argo CD does otherwise than by default.
        more_controllers: Of Kubernetes, besides those of ``realkube``.

    Raises:
        NotBuiltError: ``make lab`` was not run.
        DaemonError: A part does not start.
    """
    for part in ("gitea", "kube", "argocd", "platform"):
        (folder / part).mkdir()
    with contextlib.ExitStack() as undo:
        gitea = undo.enter_context(realgitea.serving(folder / "gitea"))
        kube = undo.enter_context(realkube.serving(folder / "kube", more_controllers))
        argocd = undo.enter_context(realargocd.serving(folder / "argocd", kube, wishes))
        cluster = undo.enter_context(KubeCluster.from_kubeconfig(kube.kubeconfig))
        for crd in crossplane_crds():
            cluster.apply(crd, owner="lab")
        account = accounts.write_kubeconfig(
            cluster, kube.kubeconfig, CROSSPLANE_ACCOUNT, folder / "platform" / "crossplane"
        )
        crossplane = undo.enter_context(KubeCluster.from_kubeconfig(account))
        assembly = EmbeddedCrossplane(
            crossplane, python_functions(load_stations(pack or reference_pack()))
        )
        controllers: list[EmbeddedCrossplane | Providers | Workloads] = [assembly]
        if twins:
            library = ManagedLibrary(read_room(pack or reference_pack(), SCHEMAS))
            controllers += [Providers(cluster, library), Workloads(cluster)]
        undo.callback(side_by_side, [controller.stop for controller in controllers])
        for controller in controllers:
            controller.start()
        bot = realgitea.add_user(gitea, "orderkit")
        realgitea.make_admin(gitea, "orderkit")
        bot_token = _kept(
            folder / "platform" / "token", realgitea.add_token(gitea.url, bot, SCOPES)
        )
        settings = PlatformSettings(
            name="lab",
            forge=ForgeSettings(gitea.url, bot_token, private=True, read_token_file=bot_token),
            portal=PortalSettings(
                NOBODY, _kept(folder / "platform" / "portal", secrets.token_hex(16))
            ),
            service=ServiceSettings(
                NOBODY, _kept(folder / "platform" / "service", secrets.token_hex(16))
            ),
            cluster=ClusterSettings(kube.kubeconfig),
            teams=tuple(teams),
            values=values or {},
            argocd=ArgoCDSettings(version=ARGOCD_VERSION),
        )
        forge = undo.enter_context(GiteaForge(gitea.url, token=bot_token.read_text()))
        found = LabPlatform(folder / "platform", settings, gitea, kube, argocd, forge, cluster)
        found.file.write_text(settings.to_yaml())
        yield found


@contextlib.contextmanager
def bootstrapped(lab: LabPlatform, pack: Path | None = None) -> Iterator[Platform]:
    """Bootstrap a lab, without a probe; yield the platform as ``orderkit`` connects to it."""
    source = None if pack is None else str(pack)
    options = BootstrapOptions(str(lab.file), source, CHIEF, timeout_s=400.0, probe=False)
    with prepared(options) as (platform, request):
        bootstrap(platform, request, on_step=lambda *_: None)
        yield platform


def _kept(path: Path, secret: str) -> Path:
    path.touch(mode=0o600)
    path.write_text(secret)
    return path


def with_portal_and_service(lab: LabPlatform, undo: contextlib.ExitStack) -> Path:
    """
    Serve a catalog and the service, which orders and ends need; return a platform.yaml.

    The service sweeps no leases: tests do.
    """
    catalog = EmbeddedCatalog(lab.folder / "catalog.sqlite", lab.forge)
    undo.callback(catalog.close)
    app = catalog_app(catalog, token=token(lab.settings.portal))
    portal = HttpServer(app, bind("portal", 0))
    portal.start()
    undo.callback(portal.stop)
    sock = bind("service", 0)
    undo.callback(sock.close)
    settings = changed(
        lab.settings,
        portal=PortalSettings(portal.url, lab.settings.portal.token_file),
        service=ServiceSettings(
            f"http://127.0.0.1:{sock.getsockname()[1]}", lab.settings.service.token_file
        ),
    )
    options = replace(service_options(settings, audit=None), sweep_interval_s=_DAY_S)
    service = HttpServer(service_app(connect(settings), options), sock)
    service.start()
    undo.callback(service.stop)
    return lab.written("served", portal=settings.portal, service=settings.service)
