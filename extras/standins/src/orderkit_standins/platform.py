"""
Assemble the embedded platform: forge, cluster, delivery, assembly, catalog, in one process.

It stands for Gitea, the Kubernetes API server, Argo CD, Crossplane and Backstage's catalog on one
machine. Everybody else talks to it over HTTP, by the ``platform.yaml`` it writes. What each part
does not do stands at the top of its module.

`ensure_certificate` makes a private authority and a server certificate for 127.0.0.1 once, and
keeps them. kubectl sends no token over plain HTTP, so the embedded API server speaks TLS. The
authority's key is thrown away after signing: nobody can make another certificate that kubeconfigs
trust.
"""

from __future__ import annotations

import contextlib
import datetime as dt
import ipaddress
import logging
import socket
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import NameOID

from compositions.python_functions import python_functions
from compositions.resource_builders import SEED_NAMESPACE, seed_secret
from ground.errors import RefusedError
from ground.names import CommitSha, RepoId
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
from orderkit_standins.providers import ManagedLibrary, Providers
from orderkit_standins.workloads import Workloads

if TYPE_CHECKING:
    from starlette.types import ASGIApp


HOST = "127.0.0.1"
_AUTHORITY = "orderkit embedded platform"
_DAYS = 3650


@dataclass(frozen=True, slots=True)
class Certificate:
    """Files in PEM: what clients trust, what the server shows, and its key."""

    authority: Path
    server: Path
    key: Path


def ensure_certificate(folder: Path, *names: str) -> Certificate:
    """
    Make the three files unless all are there; the key is readable by its owner only.

    Args:
        names: What clients call the server, besides 127.0.0.1 and localhost.
    """
    certificate = Certificate(folder / "ca.crt", folder / "server.crt", folder / "server.key")
    if not all(
        path.exists() for path in (certificate.authority, certificate.server, certificate.key)
    ):
        authority, server, key = _make(*names)
        write_atomically(certificate.key, key, mode=0o600)
        write_atomically(certificate.server, server)
        write_atomically(certificate.authority, authority)
    return certificate


def _make(*names: str) -> tuple[str, str, str]:
    """Return authority, server certificate and server key as PEM texts."""
    authority_key, key = (ec.generate_private_key(ec.SECP256R1()) for _ in range(2))
    known = [x509.IPAddress(ipaddress.ip_address(HOST)), *map(x509.DNSName, ("localhost", *names))]
    authority = _sign(
        _AUTHORITY,
        authority_key.public_key(),
        authority_key,
        x509.BasicConstraints(ca=True, path_length=0),
    )
    server = _sign(HOST, key.public_key(), authority_key, x509.SubjectAlternativeName(known))
    secret = key.private_bytes(
        Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    return (
        authority.public_bytes(Encoding.PEM).decode(),
        server.public_bytes(Encoding.PEM).decode(),
        secret.decode(),
    )


def _name(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])


def _sign(
    subject: str,
    public: ec.EllipticCurvePublicKey,
    authority_key: ec.EllipticCurvePrivateKey,
    role: x509.ExtensionType,
) -> x509.Certificate:
    """Make a certificate; `role` says whether it is the authority or a server of some names."""
    begin = dt.datetime.now(dt.UTC) - dt.timedelta(days=1)
    issued_by = x509.AuthorityKeyIdentifier.from_issuer_public_key(authority_key.public_key())
    return (
        x509.CertificateBuilder()
        .subject_name(_name(subject))
        .issuer_name(_name(_AUTHORITY))
        .public_key(public)
        .serial_number(x509.random_serial_number())
        .not_valid_before(begin)
        .not_valid_after(begin + dt.timedelta(days=_DAYS))
        .add_extension(role, critical=True)
        .add_extension(_usage(signs=subject == _AUTHORITY), critical=True)
        .add_extension(issued_by, critical=False)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(public), critical=False)
        .sign(authority_key, hashes.SHA256())
    )


def _usage(*, signs: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not signs,
        key_cert_sign=signs,
        crl_sign=signs,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )


BOT = "orderkit"
"""The forge user that writes; a person's name stands in each commit's trailer."""
ARGOCD_VERSION = "3.6"
"""Whose Applications the delivery understands."""
BOT_SCOPES = ("write:organization", "write:repository", "write:issue", "read:user")
GITLAB_GROUP = "orderkit"
"""The group of a forge that speaks as GitLab, with the organisations as its subgroups."""
VIEWER = "viewer"
"""A forge user who may change nothing, for browsing (password: viewer)."""


logger = logging.getLogger(__name__)


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
    ) -> None:
        """
        Open the state and reserve the ports; nothing runs yet.

        Args:
            twins: Of providers (`TWINS`) that run although the pack has no Provider for them.
            adopted: Who may own or write on the forge besides the platform.
            people: Logins to add to the forge, each with a password in ``credentials``.
            forge: Whose dialect the forge speaks with the platform.

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
                self._sockets[server] = serving.bind(server, port)
                undo.callback(self._sockets[server].close)
            self._state.remember_ports(
                {server: sock.getsockname()[1] for server, sock in self._sockets.items()}
            )
            self._undo = undo.pop_all()
        service_port = self._sockets["service"].getsockname()[1]
        self._webhook_ports = ports.webhooks | {service_port}
        self._pack, self._teams, self._portal = pack, teams, portal
        self._values, self._provider_twins = dict(values or {}), tuple(twins)
        self._adopted = tuple(adopted)
        self._people, self._forge_kind = tuple(people), forge
        self._notifications = notifications or NotificationSettings()

    @property
    def state(self) -> StateFolder:
        return self._state

    forge: EmbeddedForge
    """Once it is started."""

    @property
    def service_socket(self) -> socket.socket:
        """The socket for the service, which the caller starts."""
        return self._sockets["service"]

    @property
    def git_credentials(self) -> Path:
        """The file with which ``git credential-store`` lets a person push."""
        return self._state.folder / "credentials" / "git"

    def url(self, server: str) -> str:
        scheme = "https" if server == "cluster" else "http"
        return f"{scheme}://{serving.HOST}:{self._sockets[server].getsockname()[1]}"

    def start(self) -> PlatformSettings:
        """Start every part, write ``platform.yaml`` and ``kubeconfig``, return the settings."""
        forge = self._start_forge()
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

        def pushed(repo: RepoId, branch: str, commit: CommitSha | None) -> None:
            logger.debug("push to %s %s: %s", repo, branch, commit)
            delivery.notify(repo)
            catalog.notify(repo)

        forge.on_push(pushed)
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

    def _start_forge(self) -> EmbeddedForge:
        settings = self._forge_settings()
        forge = EmbeddedForge(
            self._state.part("forge"),
            webhook_ports=self._webhook_ports,
            gitlab=FaceSettings(settings.group) if settings.kind == "gitlab" else None,
        )
        self._undo.callback(forge.close)
        forge.set_base_url(settings.address)
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
        self._serve("forge", forge.app)
        self.forge = forge
        return forge

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
