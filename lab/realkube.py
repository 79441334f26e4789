"""
A real Kubernetes API server on a real etcd, with three controllers: processes on the loopback.

The controllers collect garbage, empty namespaces, and let go of volume claims that no pod uses.
No other runs (no service account appears by itself, nothing becomes of a Deployment), and no
kubelet. State lies in a folder of the caller; logs are kept in ``.cache/logs``. All end with the
process that started them. etcd does not wait for the disk.

Used by the fixture ``real_kube`` of ``tests/conftest.py`` and by ``make lab``.
"""

from __future__ import annotations

import contextlib
import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from http import HTTPStatus
from pathlib import Path

import requests
import yaml
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
)
from lab.binaries import built, keep_log
from lab.daemons import Daemon, DaemonError
from lab.loopback import HOST, free_ports, taken

from orderkit_standins.loopback_certificate import Certificate, ensure_certificate

KUBECONFIG_VARIABLE = "ORDERKIT_TEST_KUBECONFIG"
_NAME = "kubernetes.default.svc"
"""The server's name for Pods."""
_ISSUER = f"https://{_NAME}.cluster.local"
_CONTROLLERS = (
    "namespace-controller",
    "garbage-collector-controller",
    "persistentvolumeclaim-protection-controller",
)
JOBS = "job-controller"
"""Makes Pods of Jobs; runs where it is asked for, since no kubelet runs the Pods."""
AGGREGATION = "clusterrole-aggregation-controller"
"""Fills roles that are made of others, such as that of Jobs; administrators need none."""
_READY_S = 240.0
_ATTEMPTS = 3


@dataclass(frozen=True, slots=True)
class Kube:
    """An API server that serves, and its administrator's kubeconfig."""

    kubeconfig: Path
    controllers: bool
    """Whether the controllers of ``_CONTROLLERS`` run beside it."""
    restart: Callable[[], None] | None = None
    """Kills the server and starts it again; its etcd stays. None: it is not ours."""


@dataclass(frozen=True, slots=True)
class _Site:
    """One attempt: where everything lies and listens."""

    folder: Path
    certificate: Certificate
    token: str = field(repr=False)
    etcd_port: int
    peer_port: int
    port: int
    controllers_port: int

    @property
    def controllers_url(self) -> str:
        return f"https://{HOST}:{self.controllers_port}"

    @property
    def url(self) -> str:
        return f"https://{HOST}:{self.port}"

    @property
    def kubeconfig(self) -> Path:
        return self.folder / "kubeconfig"

    @property
    def etcd_url(self) -> str:
        return f"http://{HOST}:{self.etcd_port}"

    @property
    def peer_url(self) -> str:
        return f"http://{HOST}:{self.peer_port}"


def named_by_environment(environment: Mapping[str, str]) -> Kube | None:
    """Return the server that ``ORDERKIT_TEST_KUBECONFIG`` names; it has its controllers."""
    path = environment.get(KUBECONFIG_VARIABLE)
    return Kube(Path(path), controllers=True) if path else None


@contextlib.contextmanager
def serving(folder: Path, more_controllers: Sequence[str] = ()) -> Iterator[Kube]:
    """
    Start all with their state in `folder`, hand the server out ready, stop them at the end.

    Raises:
        NotBuiltError: ``make lab`` was not run.
        DaemonError: One does not start; the message shows the end of its log.
    """
    programs = built("kube")
    for attempt in range(1, _ATTEMPTS + 1):
        site = _prepared(folder / str(attempt))
        with contextlib.ExitStack() as undo:
            try:
                restart = _start(programs, site, undo, [*_CONTROLLERS, *more_controllers])
            except DaemonError as error:
                if taken(str(error)) and attempt < _ATTEMPTS:
                    continue  # somebody took a port in between
                raise
            yield Kube(site.kubeconfig, controllers=True, restart=restart)
            return


def _prepared(folder: Path) -> _Site:
    """Write keys and the administrator's token; choose ports."""
    (folder / "tls").mkdir(parents=True)
    certificate = ensure_certificate(folder / "tls", _NAME)
    private = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    pem = private.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    (folder / "accounts.key").write_bytes(pem)
    public = private.public_key()
    (folder / "accounts.pub").write_bytes(
        public.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    )
    token = secrets.token_hex(16)
    (folder / "tokens.csv").write_text(f"{token},admin,admin,system:masters\n")
    site = _Site(folder, certificate, token, *free_ports(4))
    _write_kubeconfig(site)
    return site


def _start(
    programs: Path, site: _Site, undo: contextlib.ExitStack, names: Sequence[str]
) -> Callable[[], None]:
    """Start all; return what restarts the server."""

    def start(name: str, arguments: Mapping[str, object]) -> Daemon:
        log = site.folder / f"{name}.log"
        undo.callback(keep_log, log)
        command = [str(programs / name), *(f"--{key}={value}" for key, value in arguments.items())]
        return undo.enter_context(Daemon(name, command, log=log, folder=site.folder))

    start("etcd", _etcd(site))

    def start_server() -> Daemon:
        server = start("kube-apiserver", _apiserver(site))
        server.wait_until(lambda: _ready(site, f"{site.url}/readyz"), timeout_s=_READY_S)
        return server

    servers = [start_server()]
    controllers = start("kube-controller-manager", _controllers(site, names))
    healthy = f"{site.controllers_url}/healthz"
    controllers.wait_until(lambda: _ready(site, healthy), timeout_s=_READY_S)

    def restart() -> None:
        servers[-1].kill()
        servers.append(start_server())

    return restart


def _etcd(site: _Site) -> dict[str, object]:
    return {
        "name": "lab",
        "data-dir": site.folder / "etcd",
        "listen-client-urls": site.etcd_url,
        "advertise-client-urls": site.etcd_url,
        "listen-peer-urls": site.peer_url,
        "initial-advertise-peer-urls": site.peer_url,
        "initial-cluster": f"lab={site.peer_url}",
        "log-level": "warn",
        "unsafe-no-fsync": "true",
    }


def _apiserver(site: _Site) -> dict[str, object]:
    return {
        "etcd-servers": site.etcd_url,
        "bind-address": HOST,
        "advertise-address": HOST,
        "secure-port": site.port,
        "tls-cert-file": site.certificate.server,
        "tls-private-key-file": site.certificate.key,
        "cert-dir": site.folder,
        "service-account-issuer": _ISSUER,
        "service-account-key-file": site.folder / "accounts.pub",
        "service-account-signing-key-file": site.folder / "accounts.key",
        "authorization-mode": "RBAC",
        "token-auth-file": site.folder / "tokens.csv",
        "disable-admission-plugins": "ServiceAccount",
        "service-cluster-ip-range": "10.213.2.0/24",
        "kubelet-preferred-address-types": "InternalIP",
        "endpoint-reconciler-type": "none",
    }


def _controllers(site: _Site, names: Sequence[str]) -> dict[str, object]:
    return {
        "kubeconfig": site.kubeconfig,
        "controllers": ",".join(names),
        "root-ca-file": site.certificate.authority,
        "leader-elect": "false",
        "bind-address": HOST,
        "secure-port": site.controllers_port,
        "tls-cert-file": site.certificate.server,
        "tls-private-key-file": site.certificate.key,
    }


def _ready(site: _Site, url: str) -> bool:
    headers = {"Authorization": f"Bearer {site.token}"}
    with requests.Session() as session, contextlib.suppress(requests.RequestException):
        session.trust_env = False
        session.verify = str(site.certificate.authority)
        answer = session.get(url, headers=headers, timeout=5)
        found: int = answer.status_code
        return found == HTTPStatus.OK
    return False


def _write_kubeconfig(site: _Site) -> None:
    content = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [
            {
                "name": "lab",
                "cluster": {
                    "server": site.url,
                    "certificate-authority": str(site.certificate.authority),
                },
            }
        ],
        "users": [{"name": "admin", "user": {"token": site.token}}],
        "contexts": [{"name": "lab", "context": {"cluster": "lab", "user": "admin"}}],
        "current-context": "lab",
    }
    site.kubeconfig.write_text(yaml.safe_dump(content))
    site.kubeconfig.chmod(0o600)
