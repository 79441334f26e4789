"""
Assemble the embedded platform: forge, cluster, delivery, assembly, catalog.

They run in one process, or the forge in one of its own (``forked_part``). They stand for Gitea, the
Kubernetes API server, Argo CD, Crossplane and Backstage's catalog on one machine. Everybody else
talks to them over HTTP, by the ``platform.yaml`` that is written here. What each part does not do
stands at the top of its module.
"""

from __future__ import annotations

import contextlib
import socket
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from compositions.python_functions import python_functions
from compositions.resource_builders import SEED_NAMESPACE, seed_secret
from ground.errors import RefusedError
from ground.names import RepoId
from ground.objects.kube_objects import ARGOCD_NAMESPACE, Kind
from orderkit.adapters.folders.confined_stations import confined_stations
from orderkit.adapters.folders.pack_folder import SCHEMAS, read_folder, read_room
from orderkit.adapters.forge_choice import connect_forge
from orderkit.adapters.functions.local_functions import program_function
from orderkit.adapters.state_folder import PLATFORM_FILE, StateFolder, write_atomically
from orderkit.core.kit.pack import read_pack
from orderkit.core.platform.forge_kinds import ForgeKind
from orderkit.core.platform.installation import (
    ARGOCD_ACCOUNT,
    CROSSPLANE_ACCOUNT,
    ArgoCDSettings,
    PlatformTarget,
)
from orderkit.core.platform.notification_settings import NotificationSettings
from orderkit.core.platform.service_access import AccessSettings, write_clients
from orderkit.core.platform.settings import (
    ClusterSettings,
    ForgeSettings,
    PlatformSettings,
    PortalSettings,
    ServiceSettings,
)
from orderkit.core.portal.profile import Profile
from orderkit.core.unserved_kinds import is_served_by_platforms
from orderkit.web import serving
from orderkit_standins.argocd import BareRepositories, EmbeddedArgoCD, argocd_crds
from orderkit_standins.catalog import EmbeddedCatalog
from orderkit_standins.catalog.http import catalog_app
from orderkit_standins.cluster import EmbeddedCluster
from orderkit_standins.cluster.http import cluster_app
from orderkit_standins.controller import side_by_side
from orderkit_standins.crossplane import EmbeddedCrossplane, crossplane_crds
from orderkit_standins.forge import EmbeddedForge
from orderkit_standins.forge.gitlab.face import FaceSettings
from orderkit_standins.forked_part import Closable, ForkedPart
from orderkit_standins.loopback_certificate import Certificate, ensure_certificate
from orderkit_standins.providers import ManagedLibrary, Providers
from orderkit_standins.workloads import Workloads

if TYPE_CHECKING:
    from starlette.types import ASGIApp


BOT = "orderkit"
"""The forge user that writes; a person's name stands in each commit's trailer."""
ARGOCD_VERSION = "3.6"
"""Whose Applications the delivery understands."""
BOT_SCOPES = ("write:organization", "write:repository", "write:issue", "read:user")
GITLAB_GROUP = "orderkit"
"""The group of a forge that speaks as GitLab, with the organisations as its subgroups."""
VIEWER = "viewer"
"""A forge user who may change nothing, for browsing (password: viewer)."""


@dataclass(frozen=True, slots=True)
class Ports:
    """Loopback ports. None: the one used before, else the default; 0: used before, else any."""

    forge: int | None = None
    cluster: int | None = None
    portal: int | None = None
    service: int | None = None
    webhooks: frozenset[int] = frozenset()
    """What else on the loopback the forge's webhooks may call, beside the service."""


@dataclass(frozen=True, slots=True)
class PortalOptions:
    """How a portal on top of this platform runs templates, and which Backstage signs for users."""

    profile: Profile = Profile.SERVICE
    signed_by: str | None = None
    platform_groups: tuple[str, ...] = ()
    """Whose members act for every team."""
    catalog: str | None = None
    """Address of a Backstage with the catalog of orders; None: the embedded catalog."""


_PORT_S, _PORT_LOOK_S = 1.0, 0.01
DEFAULT_PORTS = {"forge": 7300, "cluster": 7344, "portal": 7307, "service": 7399}


def _ports(requested_ports: Ports, state: StateFolder) -> dict[str, int]:
    """
    Choose each part's port.

    Raises:
        RefusedError: Another forge port than before: every order's Application names the old one.
    """
    remembered = state.remembered_ports()
    ports = {}
    for server, default in DEFAULT_PORTS.items():
        requested: int | None = getattr(requested_ports, server)
        ports[server] = requested or remembered.get(server, default if requested is None else 0)
    if remembered and ports["forge"] != remembered["forge"]:
        raise RefusedError(
            f"the orders in {state.folder} name the forge's port {remembered['forge']}, "
            f"not {ports['forge']}",
            hint=f"start without --forge-port, or with --forge-port {remembered['forge']}",
        )
    return ports


def _bound(server: str, port: int) -> socket.socket:
    """Bind a port; wait a moment for it, because parts of a killed platform end after it."""
    deadline_s = time.monotonic() + _PORT_S
    while True:
        try:
            return serving.bind(server, port)
        except serving.PortInUseError:
            if time.monotonic() > deadline_s:
                raise
            time.sleep(_PORT_LOOK_S)


def _library(pack: Path) -> ManagedLibrary:
    """Return what the twins know: the pack's schemas, and what its kits compose beyond them."""
    kits = read_pack(read_folder(pack)).kits()
    composed = {Kind.parse(ref.api_version, ref.kind) for kit in kits for ref in kit.composes}
    orders = {(kit.kind.group, kit.kind.kind) for kit in kits}
    foreign = (kind for kind in composed if (kind.group, kind.kind) not in orders)
    return ManagedLibrary(
        read_room(pack, SCHEMAS), (kind for kind in foreign if not is_served_by_platforms(kind))
    )


class EmbeddedPlatform:
    """One platform on one state folder."""

    def __init__(
        self,
        state: Path,
        *,
        pack: Path,
        ports: Ports,
        teams: Sequence[str],
        portal: PortalOptions = PortalOptions(),
        values: Mapping[str, str] | None = None,
        notifications: NotificationSettings | None = None,
        twins: Sequence[str] = (),
        adopted: Sequence[str] = (),
        people: Sequence[str] = (),
        forge: ForgeKind = "gitea",
        on_lost: Callable[[str], None] | None = None,
    ) -> None:
        """
        Open the state and reserve the ports; nothing runs yet.

        Args:
            twins: Of providers (`TWINS`) that run although the pack has no Provider for them.
            adopted: Who may own or write on the forge besides the platform.
            people: Logins to add to the forge, each with a password in ``credentials``.
            forge: Whose dialect the forge speaks with the platform.
            on_lost: Run the forge in a process of its own, and call this with a sentence if that
                ends by itself. None: in this process.

        Raises:
            PortInUseError: One of the ports is taken.
            RefusedError, ConflictError: The state folder cannot be used (see ``state``).
        """
        self._undo = contextlib.ExitStack()
        self._servers: list[serving.HttpServer] = []
        with contextlib.ExitStack() as undo:
            self._state = StateFolder(state)
            undo.callback(self._state.close)
            self._sockets = {}
            for server, port in _ports(ports, self._state).items():
                self._sockets[server] = _bound(server, port)
                undo.callback(self._sockets[server].close)
            self._bound_ports = {
                server: int(sock.getsockname()[1]) for server, sock in self._sockets.items()
            }
            self._state.remember_ports(self._bound_ports)
            self._undo = undo.pop_all()
        self._webhook_ports = ports.webhooks | {self._bound_ports["service"]}
        self._pack, self._teams, self._portal = pack, teams, portal
        self._values, self._provider_twins = dict(values or {}), tuple(twins)
        self._adopted = tuple(adopted)
        self._people, self._forge_kind, self._on_lost = tuple(people), forge, on_lost
        self._notifications = notifications or NotificationSettings()

    @property
    def state(self) -> StateFolder:
        return self._state

    forge: EmbeddedForge
    """Once it is started, in this process."""

    @property
    def service_socket(self) -> socket.socket:
        """The socket for the service, which the caller starts."""
        return self._sockets["service"]

    def held_for_others(self, server: str) -> list[Closable]:
        """Return what this process holds open that the process of one server must not."""
        return [self._state, *(sock for name, sock in self._sockets.items() if name != server)]

    @property
    def git_credentials(self) -> Path:
        """The file with which ``git credential-store`` lets a person push."""
        return self._state.folder / "credentials" / "git"

    def url(self, server: str) -> str:
        scheme = "https" if server == "cluster" else "http"
        return f"{scheme}://{serving.HOST}:{self._bound_ports[server]}"

    def start(self) -> PlatformSettings:
        """Start every part, write ``platform.yaml`` and ``kubeconfig``, return the settings."""
        listeners: list[Callable[[RepoId], None]] = []

        def pushed(repo: RepoId) -> None:
            for listener in listeners:
                listener(repo)

        self._start_forge(pushed)
        cluster = self._start_cluster()
        catalog = self._start_catalog()
        # Together, for speed; each alone, too (`_serve`), in case one of them cannot start.
        self._undo.callback(side_by_side, [server.stop for server in self._servers])
        as_argocd = cluster.acting_as(ARGOCD_ACCOUNT)
        delivery = EmbeddedArgoCD(
            as_argocd,
            BareRepositories(self._forge_settings().address, self._state.part("forge") / "repos"),
            look=as_argocd.shared,
        )
        stations = python_functions(confined_stations(self._pack))
        assembly = EmbeddedCrossplane(
            cluster.acting_as(CROSSPLANE_ACCOUNT), stations, program_of=program_function
        )
        stops: list[Callable[[], None]] = []
        self._undo.callback(side_by_side, stops)
        providers = Providers(cluster, _library(self._pack))
        providers.ask_for(self._provider_twins)
        for component in (assembly, delivery, providers, Workloads(cluster)):
            component.start()
            stops.append(component.stop)
        listeners += [delivery.notify, catalog.notify]
        settings = self._settings()
        write_atomically(self._state.folder / PLATFORM_FILE, settings.to_yaml())
        return settings

    def stop(self) -> None:
        """Stop everything, in reverse order; safe to call twice."""
        self._undo.close()

    def _serve(self, name: str, app: ASGIApp, certificate: Certificate | None = None) -> None:
        server = serving.HttpServer(app, self._sockets[name], certificate)
        server.start()
        self._undo.callback(server.stop)
        self._servers.append(server)

    def _start_forge(self, pushed: Callable[[RepoId], None]) -> None:
        if self._on_lost is None:
            self.forge = self._undo.enter_context(self._serving_forge(pushed))
            return
        closes = self.held_for_others("forge")
        part = ForkedPart("forge", lambda _, say: self._serving_forge(say), closes=closes)
        self._undo.callback(part.stop)
        part.start((), pushed, self._on_lost)
        self._sockets["forge"].close()  # else, when it is lost, clients would wait for an answer

    @contextlib.contextmanager
    def _serving_forge(self, pushed: Callable[[RepoId], None]) -> Iterator[EmbeddedForge]:
        settings = self._forge_settings()
        forge = EmbeddedForge(
            self._state.part("forge"),
            webhook_ports=self._webhook_ports,
            gitlab=FaceSettings(settings.group) if settings.kind == "gitlab" else None,
        )
        with contextlib.closing(forge):
            forge.set_base_url(settings.address)
            self._ensure_accounts(forge)
            forge.on_push(lambda repo, *_: pushed(repo))
            server = serving.HttpServer(forge.app, self._sockets["forge"])
            server.start()
            try:
                yield forge
            finally:
                server.stop()

    def _ensure_accounts(self, forge: EmbeddedForge) -> None:
        forge.ensure_user(BOT, self._state.credential("forge-password"), admin=True)
        forge.ensure_user(VIEWER, VIEWER, read_only=True)
        for login in self._people:
            secret = self._state.credential(f"user-{login}")
            forge.ensure_user(login, secret)
            if self._forge_kind != "gitea":  # the others' APIs take no passwords
                forge.ensure_token(login, "up", secret, ["all"])
        forge.ensure_token(BOT, "platform", self._state.credential("forge-token"), BOT_SCOPES)
        host = self.url("forge").partition("://")[2].replace(":", "%3a")
        line = f"http://{BOT}:{self._state.credential('forge-token')}@{host}\n"
        write_atomically(self.git_credentials, line, mode=0o600)

    def _start_cluster(self) -> EmbeddedCluster:
        cluster = EmbeddedCluster(self._state.part("cluster") / "cluster.sqlite")
        self._undo.callback(cluster.close)
        for crd in (*argocd_crds(), *crossplane_crds()):
            cluster.apply(crd, owner=BOT)
        namespace = {"apiVersion": "v1", "kind": "Namespace"}
        for name in (ARGOCD_NAMESPACE, SEED_NAMESPACE):
            cluster.apply({**namespace, "metadata": {"name": name}}, owner=BOT)
        cluster.apply(seed_secret(self._state.credential("password-seed")), owner=BOT)
        app = cluster_app(cluster, token=self._state.credential("cluster-token"))
        self._serve("cluster", app, self._certificate())
        return cluster

    def _start_catalog(self) -> EmbeddedCatalog:
        reader = connect_forge(self._forge_settings(), None)
        catalog = EmbeddedCatalog(self._state.part("catalog") / "catalog.sqlite", reader)
        self._undo.callback(catalog.close)
        self._serve("portal", catalog_app(catalog, token=self._state.credential("portal-token")))
        return catalog

    def _certificate(self) -> Certificate:
        return ensure_certificate(self._state.part("tls"))

    def _forge_settings(self) -> ForgeSettings:
        return ForgeSettings(
            self.url("forge"),
            self._state.credential_path("forge-token"),
            adopted=tuple(self._adopted),
            kind=self._forge_kind,
            group=GITLAB_GROUP if self._forge_kind == "gitlab" else "",
        )

    def _settings(self) -> PlatformSettings:
        kubeconfig = self._state.folder / "kubeconfig"
        write_atomically(kubeconfig, self._kubeconfig(), mode=0o600)

        def token_file(server: str) -> Path:
            return self._state.credential_path(f"{server}-token")

        return PlatformSettings(
            name="embedded",
            forge=self._forge_settings(),
            portal=PortalSettings(
                self._portal.catalog or self.url("portal"),
                token_file("portal"),
                profile=self._portal.profile,
                signed_by=self._portal.signed_by or "",
            ),
            service=ServiceSettings(
                self.url("service"),
                token_file("service"),
                signing_key_file=self._state.signing_key_path(),
                access=AccessSettings(tuple(self._portal.platform_groups), self._clients()),
            ),
            cluster=ClusterSettings(kubeconfig),
            teams=tuple(self._teams),
            values=self._values,
            target=PlatformTarget.EMBEDDED,
            argocd=ArgoCDSettings(version=ARGOCD_VERSION),
            notifications=self._notifications,
        )

    def _clients(self) -> Path | None:
        """
        Return the file for programs with tokens of the service.

        None if the service verifies no one: then a token that it does not know must not matter.
        """
        if not self._portal.signed_by:
            return None
        path = self._state.folder / "clients.yaml"
        if not path.exists():
            write_atomically(path, write_clients(()), mode=0o600)
        return path

    def _kubeconfig(self) -> str:
        return f"""apiVersion: v1
kind: Config
current-context: orderkit
clusters:
- name: orderkit
  cluster:
    server: {self.url("cluster")}
    certificate-authority: {self._certificate().authority}
contexts:
- name: orderkit
  context:
    cluster: orderkit
    user: orderkit
users:
- name: orderkit
  user:
    token: {self._state.credential("cluster-token")}
"""
