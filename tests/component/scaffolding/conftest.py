"""A forge, a catalog and a service over real HTTP, and the ports that reach them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from ground.names import CommitSha, RepoId
from orderkit.adapters.backstage import BackstageCatalog, BackstagePortal, ProxyTarget
from orderkit.adapters.gitea import GiteaForge
from orderkit.adapters.processes.confined_rendering import judge_confined
from orderkit.flows.order.template_services import publish
from orderkit.flows.template import scaffolder
from orderkit.flows.template.scaffolder import (
    PublishRequest,
    Services,
    StepEvent,
    TaskOptions,
    TaskResult,
)
from orderkit.ports.forge import FileChange, Operation
from orderkit.web.serving import HttpServer, bind
from orderkit_standins.argocd import argocd_crds
from orderkit_standins.catalog import EmbeddedCatalog
from orderkit_standins.catalog.http import catalog_app
from orderkit_standins.cluster import EmbeddedCluster
from orderkit_standins.forge import EmbeddedForge
from softwaretemplates.render import SkeletonFile
from softwaretemplates.template import parse_template

FORGE_TOKEN = "0123456789abcdef0123456789abcdef01234567"
PORTAL_TOKEN = "portal-token-of-the-tests"
SERVICE_SECRET = "service-secret-of-the-tests"
SCOPES = ("write:organization", "write:repository", "write:user", "read:admin")


@dataclass
class Service:
    """A service behind the portal's proxy: records requests, answers what it is told."""

    status: int = 201
    answer: Any = field(default_factory=lambda: {"order": "x"})
    seen: list[tuple[str, str, dict[str, str], bytes]] = field(default_factory=list)

    def app(self) -> Starlette:
        async def take(request: Request) -> Response:
            path = request.url.path + (f"?{request.url.query}" if request.url.query else "")
            headers = dict(request.headers)
            self.seen.append((request.method, path, headers, await request.body()))
            if isinstance(self.answer, str):
                return Response(self.answer, self.status, media_type="text/plain")
            if isinstance(self.answer, bytes):
                return Response(self.answer, self.status, media_type="application/json")
            return JSONResponse(self.answer, self.status)

        return Starlette(routes=[Route("/{path:path}", take, methods=["GET", "POST", "PUT"])])

    def body(self) -> Any:
        return json.loads(self.seen[-1][3])


@dataclass
class World:
    """Everything a task needs, over HTTP."""

    forge: GiteaForge
    embedded_forge: EmbeddedForge
    catalog: BackstageCatalog
    embedded_catalog: EmbeddedCatalog
    catalog_url: str
    cluster: EmbeddedCluster
    portal: BackstagePortal
    service: Service
    events: list[StepEvent] = field(default_factory=list)

    def services(self) -> Services:
        def ensure(request: PublishRequest) -> CommitSha:
            return publish(self.forge, request)

        return Services(self.forge, self.catalog, self.cluster, self.portal, ensure, judge_confined)

    def run(
        self,
        template: str | bytes,
        parameters: Mapping[str, Any],
        files: Mapping[str, bytes | SkeletonFile] | None = None,
        **options: Any,
    ) -> TaskResult:
        """Run a template.yaml with the files beside it."""
        data = template.encode() if isinstance(template, str) else template
        beside = {PurePosixPath(path): text for path, text in (files or {}).items()}
        return scaffolder.run(
            parse_template(data, name="template.yaml"),
            parameters,
            files=beside,
            services=self.services(),
            user=scaffolder.User("user:default/tester"),
            task_id="task-1",
            on_step=self.events.append,
            options=TaskOptions(**options),
        )

    def push(self, repo: RepoId, files: Mapping[str, str]) -> None:
        """Commit files, replacing what is there."""
        head = self.forge.head(repo)
        known = self.forge.tree(repo, head) if head else {}
        changes = [
            FileChange(PurePosixPath(p), text.encode(), known.get(PurePosixPath(p)))
            for p, text in files.items()
        ]
        operation = Operation(f"test-{head}", "user:default/tester", "test")
        self.forge.write(repo, changes, operation)

    def url(self, repo: RepoId, path: str = "catalog-info.yaml") -> str:
        return f"{self.forge.base_url}/{repo}/src/branch/main/{path}"


class Slot:
    """A served address whose app each test brings: starting servers is what takes time."""

    def __init__(self) -> None:
        self.app: Any = None
        self._server = HttpServer(self, bind("test", 0))
        self._server.start()
        self.url, self.stop = self._server.url, self._server.stop

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        await self.app(scope, receive, send)


@dataclass(frozen=True)
class Slots:
    """The addresses of one test run."""

    forge: Slot
    portal: Slot
    service: Slot


@pytest.fixture(scope="package")
def slots() -> Iterator[Slots]:
    found = Slots(Slot(), Slot(), Slot())
    yield found
    for slot in (found.forge, found.portal, found.service):
        slot.stop()


@pytest.fixture
def world(slots: Slots, tmp_path: Path) -> Iterator[World]:
    with ExitStack() as stack:
        embedded = EmbeddedForge(tmp_path / "forge")
        stack.callback(embedded.close)
        embedded.ensure_user("bot", "bot-password", admin=True)
        embedded.ensure_token("bot", "tests", FORGE_TOKEN, SCOPES)
        embedded.set_base_url(slots.forge.url)
        slots.forge.app = embedded.app
        forge = GiteaForge(slots.forge.url, token=FORGE_TOKEN)
        stack.callback(forge.close)
        catalog = EmbeddedCatalog(tmp_path / "catalog.sqlite", forge, interval_s=3600)
        stack.callback(catalog.close)
        slots.portal.app = catalog_app(catalog, token=PORTAL_TOKEN)
        cluster = EmbeddedCluster(tmp_path / "cluster.sqlite")
        stack.callback(cluster.close)
        for crd in argocd_crds():
            cluster.apply(crd, owner="test")
        cluster.apply(
            {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "argocd"}}, owner="test"
        )
        service = Service()
        slots.service.app = service.app()
        target = ProxyTarget(slots.service.url, {"X-Platform-Secret": SERVICE_SECRET})
        yield World(
            forge,
            embedded,
            BackstageCatalog(slots.portal.url, token=PORTAL_TOKEN),
            catalog,
            slots.portal.url,
            cluster,
            BackstagePortal(slots.portal.url, token=PORTAL_TOKEN, proxies={"orderkit": target}),
            service,
        )


@pytest.fixture
def eventually() -> Callable[[Callable[[], bool]], None]:
    """Wait on a condition, at most a minute and a half."""
    import time

    def wait(condition: Callable[[], bool]) -> None:
        deadline = time.monotonic() + 90
        while not condition():
            assert time.monotonic() < deadline, "the condition never held"
            time.sleep(0.01)

    return wait
