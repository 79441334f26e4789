"""
A real Argo CD as plain processes beside an API server: redis, repo-server, application-controller.

Its controller is the service account that an installation gives it, with all rights. There is no
argocd-server (its AppProject ``default`` is made here), no ApplicationSets, no SSO, no
Helm or Kustomize unless `Wishes` bring them; hooks that are Jobs never end, for there is no
kubelet. Defaults are Argo CD's own, also for polling and self-heal, unless `Wishes` say otherwise.
It follows changes of its ConfigMap ``argocd-cm`` while it runs.

Argo CD has no setting for the address of its controller's metrics: they alone listen everywhere, on
a port the system chose. The rest is on the loopback. Files lie in a folder of the caller, logs are
kept in ``.cache/logs``, and all ends with the process that started it.

Used by the fixture ``real_argocd`` of ``tests/conftest.py`` and by ``make lab``.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import secrets
import socket
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from typing import Literal

import requests
import yaml
from lab import accounts
from lab.binaries import built, keep_log
from lab.daemons import Daemon, DaemonError
from lab.loopback import HOST, free_ports, taken
from lab.realkube import Kube

from ground.objects.kube_objects import APP_PROJECT, APPLICATION, Manifest
from orderkit.adapters.kube.cluster import KubeCluster

NAMESPACE = "argocd"
CONTROLLER = f"system:serviceaccount:{NAMESPACE}:argocd-application-controller"
SETTINGS = Path(__file__).parents[1] / "gitops" / "argocd" / "argocd-cm.yaml"
"""What the reference pack sets: health checks and tracking."""
Part = Literal["redis", "repo-server", "application-controller"]
PARTS: tuple[Part, ...] = ("redis", "repo-server", "application-controller")
_OWNER = "lab"
_READY_S = 240.0
_ATTEMPTS = 3
_POLL_S = 0.05
_EMPTY = (
    "argocd-rbac-cm",
    "argocd-ssh-known-hosts-cm",
    "argocd-tls-certs-cm",
    "argocd-gpg-keys-cm",
)


@dataclass(frozen=True, slots=True)
class Wishes:
    """What an Argo CD of the lab does otherwise than by default."""

    settings: Path = SETTINGS
    """A manifest of ConfigMap ``argocd-cm``, applied before it starts."""
    resync_s: int | None = None
    """
    Seconds between two looks at a repository, as ``timeout.reconciliation`` sets them.

    By default the controller looks every 120 s and up to 60 more, and the repo-server answers with
    what it saw up to 180 s ago.
    """
    tools: Path | None = None
    """A folder with a ``kustomize`` and a ``helm`` for the repo-server; None: it has none."""


@dataclass(frozen=True, slots=True)
class _Site:
    folder: Path
    kube: Kube
    wishes: Wishes
    redis_port: int
    repo_server_port: int
    repo_server_metrics: int
    controller_metrics: int

    def kubeconfig(self, part: Part) -> Path:
        """Return the part's own, if it is the controller; the administrator's for the others."""
        own = self.folder / "controller.kubeconfig"
        return own if part == "application-controller" else self.kube.kubeconfig


class ArgoCD:
    """An Argo CD that runs; single parts can be stopped and started again."""

    namespace = NAMESPACE

    def __init__(self, site: _Site) -> None:
        self.kube = site.kube
        self._site = site
        self._running: dict[Part, Daemon] = {}
        self._starts = 0

    @property
    def plugin_sockets(self) -> Path:
        """The folder in which the repo-server looks for plugins."""
        return self._site.folder / "plugins"

    def start(self, part: Part) -> None:
        """
        Start one part and wait until it serves.

        Raises:
            DaemonError: It does not start; the message shows the end of its log.
        """
        self._starts += 1
        log = self._site.folder / f"argocd-{part}-{self._starts}.log"
        self._running[part] = daemon = Daemon(
            part, _command(self._site, part), log=log, environment=_environment(self._site, part)
        )
        daemon.wait_until(lambda: _serves(self._site, part), timeout_s=_READY_S)

    def stop(self, part: Part, *, at_once: bool = False) -> None:
        """Stop one part: politely, or by SIGKILL. What does not run is left alone."""
        daemon = self._running.pop(part, None)
        if daemon is None:
            return
        if at_once:
            daemon.kill()
        daemon.stop()
        keep_log(daemon.log, as_name=f"argocd-{part}.log")

    def lend(self, url: str, login: tuple[str, str]) -> None:
        """Let it read private repositories below `url` (a forge's, with user and token)."""
        name = f"forge-{hashlib.sha256(url.encode()).hexdigest()[:8]}"
        labels = {"argocd.argoproj.io/secret-type": "repo-creds"}
        secret: Manifest = {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"name": name, "namespace": NAMESPACE, "labels": labels},
            "stringData": {"type": "git", "url": url, "username": login[0], "password": login[1]},
        }
        with KubeCluster.from_kubeconfig(self.kube.kubeconfig) as cluster:
            cluster.apply(secret, owner=_OWNER)

    def close(self) -> None:
        """Stop all parts."""
        for part in reversed(PARTS):
            self.stop(part)


@contextlib.contextmanager
def serving(folder: Path, kube: Kube, wishes: Wishes | None = None) -> Iterator[ArgoCD]:
    """
    Install Argo CD's kinds and settings, start it, hand it out ready, stop it at the end.

    Kinds and settings stay in the API server. One at a time on one server: two controllers fight.

    Raises:
        NotBuiltError: ``scripts/lab.sh argocd`` was not run.
        DaemonError: A part does not start; the message shows the end of its log.
    """
    wishes = wishes or Wishes()
    _install(kube, wishes)
    for attempt in range(1, _ATTEMPTS + 1):
        argocd = ArgoCD(_prepared(folder / str(attempt), kube, wishes))
        with contextlib.closing(argocd):
            try:
                for part in PARTS:
                    argocd.start(part)
            except DaemonError as error:
                if taken(str(error)) and attempt < _ATTEMPTS:
                    continue
                raise
            yield argocd
            return


def crds() -> Sequence[Manifest]:
    """
    Return Argo CD's own CRDs, of the version that was built.

    Raises:
        NotBuiltError: ``scripts/lab.sh argocd`` was not run.
    """
    files = sorted((built("argocd") / "crds").glob("*.yaml"))
    return [yaml.safe_load(file.read_text()) for file in files]


def _install(kube: Kube, wishes: Wishes) -> None:
    with KubeCluster.from_kubeconfig(kube.kubeconfig) as cluster:
        for manifest in (*crds(), *_surroundings()):
            cluster.apply(manifest, owner=_OWNER)
        cluster.apply(yaml.safe_load(wishes.settings.read_text()), owner=_OWNER)
        _await_kinds(cluster)
        cluster.apply(_DEFAULT_PROJECT, owner=_OWNER)


def _await_kinds(cluster: KubeCluster) -> None:
    deadline = time.monotonic() + _READY_S
    while not all(cluster.serves(kind) for kind in (APPLICATION, APP_PROJECT)):
        if time.monotonic() > deadline:
            raise DaemonError("the API server does not serve Argo CD's kinds")
        time.sleep(_POLL_S)


_DEFAULT_PROJECT: Manifest = {
    "apiVersion": "argoproj.io/v1alpha1",
    "kind": "AppProject",
    "metadata": {"name": "default", "namespace": NAMESPACE},
    "spec": {
        "sourceRepos": ["*"],
        "destinations": [{"namespace": "*", "server": "*"}],
        "clusterResourceWhitelist": [{"group": "*", "kind": "*"}],
    },
}


def _surroundings() -> Iterator[Manifest]:
    """Yield what an installation of Argo CD brings along and its processes insist on."""
    yield {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}
    for name in _EMPTY:
        yield {"apiVersion": "v1", "kind": "ConfigMap", "metadata": _metadata(name)}
    yield {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": _metadata("argocd-secret"),
        "stringData": {"server.secretkey": secrets.token_hex(16)},
    }


def _metadata(name: str) -> Manifest:
    labels = {"app.kubernetes.io/name": name, "app.kubernetes.io/part-of": "argocd"}
    return {"name": name, "namespace": NAMESPACE, "labels": labels}


def _prepared(folder: Path, kube: Kube, wishes: Wishes) -> _Site:
    for name in ("home", "tmp", "tls", "ssh", "gpg", "plugins"):
        (folder / name).mkdir(parents=True)
    site = _Site(folder, kube, wishes, *free_ports(4))
    with KubeCluster.from_kubeconfig(kube.kubeconfig) as cluster:
        own = site.kubeconfig("application-controller")
        accounts.write_kubeconfig(cluster, kube.kubeconfig, CONTROLLER, own)
    return site


def _command(site: _Site, part: Part) -> list[str]:
    arguments: dict[str, object]
    if part == "redis":
        arguments = {"port": site.redis_port, "bind": HOST, "save": "", "appendonly": "no"}
        return [
            "redis-server",
            *(word for k, v in arguments.items() for word in (f"--{k}", str(v))),
        ]
    if part == "repo-server":
        arguments = {
            "address": HOST,
            "port": site.repo_server_port,
            "metrics-address": HOST,
            "metrics-port": site.repo_server_metrics,
        }
    else:
        arguments = {
            "kubeconfig": site.kubeconfig(part),
            "namespace": NAMESPACE,
            "repo-server": f"{HOST}:{site.repo_server_port}",
            "metrics-port": site.controller_metrics,
            "enable-k8s-event": "none",
        }
    arguments |= {"redis": f"{HOST}:{site.redis_port}", "logformat": "text"}
    return [str(built("argocd") / "argocd"), *(f"--{k}={v}" for k, v in arguments.items())]


def _environment(site: _Site, part: Part) -> dict[str, str]:
    """Return an environment in which neither Argo CD nor its git sees this machine's settings."""
    polling = {
        "ARGOCD_RECONCILIATION_TIMEOUT": f"{site.wishes.resync_s}s",
        "ARGOCD_RECONCILIATION_JITTER": "0s",
    }
    tools = [site.wishes.tools] if site.wishes.tools else []
    return {
        **(polling if site.wishes.resync_s is not None else {}),
        # git asks the program for passwords
        "PATH": ":".join(map(str, (*tools, built("argocd"), os.environ["PATH"]))),
        "HOME": str(site.folder / "home"),
        "TMPDIR": str(site.folder / "tmp"),
        "GIT_CONFIG_NOSYSTEM": "1",
        "NO_PROXY": HOST,
        "ARGOCD_BINARY_NAME": f"argocd-{part}",
        "KUBECONFIG": str(site.kubeconfig(part)),
        "ARGOCD_FAKE_IN_CLUSTER": "true",  # the cluster it runs in is the one of KUBECONFIG
        "ARGOCD_GPG_ENABLED": "false",
        "ARGOCD_TLS_DATA_PATH": str(site.folder / "tls"),
        "ARGOCD_SSH_DATA_PATH": str(site.folder / "ssh"),
        "ARGOCD_GNUPGHOME": str(site.folder / "gpg"),
        "ARGOCD_PLUGINSOCKFILEPATH": str(site.folder / "plugins"),
        "ARGOCD_ASK_PASS_SOCK": str(site.folder / "ask.sock"),
    }


def _serves(site: _Site, part: Part) -> bool:
    if part == "redis":
        with contextlib.suppress(OSError):
            socket.create_connection((HOST, site.redis_port), timeout=5).close()
            return True
        return False
    port = site.repo_server_metrics if part == "repo-server" else site.controller_metrics
    with requests.Session() as session, contextlib.suppress(requests.RequestException):
        session.trust_env = False
        found: int = session.get(f"http://{HOST}:{port}/healthz", timeout=5).status_code
        return found == HTTPStatus.OK
    return False
