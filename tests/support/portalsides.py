"""
Both sides of the contracts of the ports Catalog and Portal.

``embedded`` is what `orderkit up` serves: the embedded catalog on the embedded forge, and requests
that go past the portal to the service. ``real`` is a real Backstage that reads an embedded forge,
and requests that go through its proxy to the same kind of service.
"""

from __future__ import annotations

import contextlib
import secrets
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from portalworld import portal_world
from recordingservice import RecordingService

from ground.names import RepoId
from orderkit.adapters.backstage import BackstageCatalog, BackstagePortal, ProxyTarget
from orderkit.adapters.gitea import GiteaForge
from orderkit.cli.connecting import SECRET_HEADER, SERVICE_PROXY
from orderkit.cli.connecting import token as token_of
from orderkit.core.platform.settings import PACK
from orderkit.ports.forge import FileChange, Operation
from orderkit.web.serving import HttpServer, bind
from orderkit_standins.catalog import EmbeddedCatalog
from orderkit_standins.catalog.http import catalog_app
from orderkit_standins.forge import EmbeddedForge

PORTAL_TOKEN = "portal-token-of-the-contracts"
SERVICE_SECRET = "service-secret-of-the-contracts"
_FORGE_TOKEN = "0123456789abcdef0123456789abcdef01234567"
_SCOPES = ("write:organization", "write:repository", "write:user", "read:admin")
_DEADLINE_S = 120.0
"""A real catalog processes what is registered when its turn comes."""


@dataclass(frozen=True)
class Side:
    """One portal, what it reads from, and the service behind its proxy."""

    url: str
    token: str
    forge: GiteaForge
    portal: BackstagePortal
    service: RecordingService
    secret: str
    """What the proxy adds to each request, in the header `SECRET_HEADER`."""
    real: bool

    @property
    def catalog(self) -> BackstageCatalog:
        return BackstageCatalog(self.url, token=self.token)

    def push(self, files: Mapping[str, str], repo: RepoId | None = None) -> RepoId:
        """Commit files to a repository, replacing what is there; without one, to a new one."""
        if repo is None:
            repo = self._new(RepoId(f"team-{secrets.token_hex(4)}", "order"))
        head = self.forge.head(repo)
        blobs = self.forge.tree(repo, head) if head else {}
        changes = [
            FileChange(PurePosixPath(path), text.encode(), blobs.get(PurePosixPath(path)))
            for path, text in files.items()
        ]
        operation = Operation(secrets.token_hex(8), "user:default/tester", "Change files")
        self.forge.write(repo, changes, operation)
        return repo

    def platform_repo(self) -> RepoId:
        """Make a repository that only the platform writes."""
        return self._new(RepoId(PACK.owner, f"places-{secrets.token_hex(4)}"))

    def _new(self, repo: RepoId) -> RepoId:
        self.forge.ensure_org(repo.owner)
        self.forge.ensure_repo(repo, description="")
        return repo

    def target(self, repo: RepoId, path: str = "catalog-info.yaml") -> str:
        """Return the address by which the catalog reads a file."""
        return f"{self.forge.base_url}/{repo}/src/branch/main/{path}"


def eventually(condition: Callable[[], bool]) -> None:
    """Wait until a condition holds."""
    deadline = time.monotonic() + _DEADLINE_S
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.1)


@contextlib.contextmanager
def embedded_side(folder: Path) -> Iterator[Side]:
    """Serve a forge, a catalog and a service in this process."""
    with contextlib.ExitStack() as undo:
        embedded = EmbeddedForge(folder / "forge")
        undo.callback(embedded.close)
        embedded.ensure_user("bot", "bot-password", admin=True)
        embedded.ensure_token("bot", "tests", _FORGE_TOKEN, _SCOPES)
        forge_server = HttpServer(embedded.app, bind("forge", 0))
        forge_server.start()
        undo.callback(forge_server.stop)
        embedded.set_base_url(forge_server.url)
        forge = GiteaForge(forge_server.url, token=_FORGE_TOKEN)
        undo.callback(forge.close)
        catalog = EmbeddedCatalog(folder / "catalog.sqlite", forge, interval_s=1)
        undo.callback(catalog.close)
        catalog_server = HttpServer(catalog_app(catalog, token=PORTAL_TOKEN), bind("portal", 0))
        catalog_server.start()
        undo.callback(catalog_server.stop)
        service = undo.enter_context(RecordingService().serving())
        url = catalog_server.url
        past_the_portal = {SERVICE_PROXY: ProxyTarget(service.url, {SECRET_HEADER: SERVICE_SECRET})}
        portal = BackstagePortal(url, token=PORTAL_TOKEN, proxies=past_the_portal)
        yield Side(url, PORTAL_TOKEN, forge, portal, service, SERVICE_SECRET, real=False)


@contextlib.contextmanager
def real_side(folder: Path) -> Iterator[Side]:
    """Start a platform and a real Backstage on it, whose proxy leads to a service of ours."""
    with (
        RecordingService().serving() as service,
        portal_world(
            folder, "service", front_end=False, reread_s=10, service_url=service.url
        ) as world,
    ):
        settings, url = world.up.settings, world.backstage.url
        token = token_of(settings.portal)
        forge = GiteaForge(settings.forge.url, token=token_of(settings.forge))
        through = {SERVICE_PROXY: ProxyTarget(f"{url}/api/proxy/{SERVICE_PROXY}")}
        portal = BackstagePortal(url, token=token, proxies=through)
        try:
            secret = token_of(settings.service)
            yield Side(url, token, forge, portal, service, secret, real=True)
        finally:
            forge.close()
