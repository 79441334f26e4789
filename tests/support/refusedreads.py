"""
The embedded cluster as an account finds it that may not read some kinds, or gets no answer.

The embedded cluster lets everybody do everything. So a proxy before its API refuses what the
account may not read, in the words of an API server.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from faultproxy import Decision, Falsehood, Fault, FaultProxy, Plan, open_proxy
from starlette.types import ASGIApp, Receive, Scope, Send

from orderkit.adapters.kube.cluster import KubeCluster
from orderkit.web.serving import HttpServer, bind
from orderkit_standins.cluster import EmbeddedCluster
from orderkit_standins.cluster.http import cluster_app, kubeconfig

TOKEN = "token-of-the-unit-tests"


def forbidden(plural: str) -> str:
    """Return how an API server refuses to let an account read a resource."""
    user = "system:serviceaccount:orderkit:tests"
    return f'{plural} is forbidden: User "{user}" cannot read resource "{plural}"'


@dataclass
class Refused(Plan):
    """Refuses each read of some resources, or keeps it from the server."""

    names: Collection[str]
    is_silent: bool
    version: str
    """What the server says that it is; empty: the embedded one."""

    def decide(self, method: str, path: str) -> Decision:
        del method
        words = path.partition("?")[0].split("/")
        if name := next((name for name in self.names if name in words), ""):
            status = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": 403}
            told = {**status, "reason": "Forbidden", "message": forbidden(name)}
            fault = Fault.DROP_BEFORE if self.is_silent else Fault.REFUSE_BEFORE
            return Decision(fault, Falsehood(403, json.dumps(told).encode()))
        if self.version and words[-1] == "version":
            told = {"gitVersion": self.version}
            return Decision(Fault.REFUSE_BEFORE, Falsehood(200, json.dumps(told).encode()))
        return Decision()


@dataclass
class RefusedReads:
    """Makes clients of an embedded cluster; one server is there for one cluster at a time."""

    folder: Path
    undo: ExitStack
    proxy: FaultProxy = field(init=False)
    _app: ASGIApp = field(init=False)

    async def app(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._app(scope, receive, send)

    def of(
        self,
        cluster: EmbeddedCluster,
        kinds: Collection[str] = (),
        *,
        silent: bool = False,
        version: str = "",
    ) -> KubeCluster:
        """
        Return a client that may not read these kinds, or gets no answer about them.

        It counts until the next one is made. ``version`` among the kinds is the server's version.
        """
        self._app = cluster_app(cluster, token=TOKEN)
        names = [kind if kind == "version" else f"{kind.lower()}s" for kind in kinds]
        self.proxy.plan = Refused(names, silent, version)
        return self.undo.enter_context(KubeCluster.from_kubeconfig(self.folder / "kubeconfig"))


@contextmanager
def refused_reads(folder: Path) -> Iterator[RefusedReads]:
    """Serve the clusters that the tests of a process make."""
    with ExitStack() as undo:
        found = RefusedReads(folder, undo)
        server = HttpServer(found.app, bind("cluster", 0))
        server.start()
        undo.callback(server.stop)
        found.proxy = undo.enter_context(open_proxy(server.url))
        (folder / "kubeconfig").write_text(json.dumps(kubeconfig(found.proxy.url, TOKEN)))
        yield found
