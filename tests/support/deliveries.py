"""One repository on a forge and one Application that delivers it: written, refreshed, awaited."""

from __future__ import annotations

import contextlib
import itertools
import secrets
import time
from collections.abc import Callable, Mapping
from pathlib import PurePosixPath
from typing import Any

from ground.errors import NotFoundError
from ground.names import CommitSha, RepoId
from ground.objects.kube_objects import APPLICATION, ARGOCD_NAMESPACE, Manifest, ObjectKey, dig
from orderkit.flows.argocd.refreshing import REFRESH
from orderkit.ports.cluster import Cluster
from orderkit.ports.forge import FileChange, Forge, Operation

_OWNER = "test"
_DEADLINE_S = 120.0
_POLL_S = 0.05
_FINALIZER = "resources-finalizer.argocd.argoproj.io"


class Delivery:
    """A repository of its own, and the Application of the same name."""

    def __init__(self, forge: Forge, cluster: Cluster, *, organisation: str) -> None:
        self.forge, self.cluster = forge, cluster
        self.name = f"app-{secrets.token_hex(4)}"
        self.repository = RepoId(organisation, self.name)
        self.beside: list[Delivery] = []
        """Others that it needs; removed with it."""
        self._writes = itertools.count(1)
        forge.ensure_org(organisation)
        forge.ensure_repo(self.repository, description="a test", private=True)

    @property
    def key(self) -> ObjectKey:
        return ObjectKey(APPLICATION, self.name, ARGOCD_NAMESPACE)

    def push(self, files: Mapping[str, str | None]) -> CommitSha:
        """Commit files below ``manifests/``; None removes one."""
        head = self.forge.head(self.repository)
        blobs = self.forge.tree(self.repository, head) if head else {}
        changes = []
        for name, text in files.items():
            path = PurePosixPath("manifests", name)
            content = None if text is None else text.encode()
            changes.append(FileChange(path, content, blobs.get(path)))
        write = Operation(f"{self.name}-{next(self._writes)}", "user:default/test", "a test writes")
        return self.forge.write(self.repository, changes, write).commit

    def refresh(self) -> None:
        """Have Argo CD look at the repository now."""
        patch = {"metadata": {"annotations": {REFRESH: "normal"}}}
        self.cluster.patch(self.key, patch, owner=_OWNER)

    def refresh_again(self) -> None:
        """Have it look again, also if it missed that it was asked to (flows.argocd.refreshing)."""
        patch = {"metadata": {"annotations": {REFRESH: None}}}
        self.cluster.patch(self.key, patch, owner=_OWNER)
        self.refresh()

    def deliver(self, namespace: str, **more: Any) -> None:
        """Make the Application, or change it; `more` are fields of its spec."""
        spec = {
            "project": "default",
            "source": {
                "repoURL": f"{self.forge.base_url}/{self.repository}.git",
                "path": "manifests",
                "targetRevision": "main",
            },
            "destination": {"server": "https://kubernetes.default.svc", "namespace": namespace},
            "syncPolicy": {"automated": {"prune": True, "selfHeal": True}},
            **more,
        }
        manifest = {
            "apiVersion": APPLICATION.api_version,
            "kind": APPLICATION.kind,
            "metadata": {
                "name": self.name,
                "namespace": ARGOCD_NAMESPACE,
                "finalizers": [_FINALIZER],
            },
            "spec": spec,
        }
        self.cluster.apply(manifest, owner=_OWNER)

    def application(self) -> Manifest:
        """Return the Application; an empty one if there is none."""
        return self.cluster.get(self.key) or {}

    def status(self, *path: str) -> Any:
        """Return a field of its status, or None."""
        return dig(self.application(), "status", *path)

    def await_application(
        self, done: Callable[[Manifest], object], *, within_s: float = _DEADLINE_S
    ) -> Manifest:
        """Return the Application once it is as wanted."""
        deadline = time.monotonic() + within_s
        while not done(found := self.application()):
            assert time.monotonic() < deadline, f"did not happen in time: {found}"
            time.sleep(_POLL_S)
        return found

    def remove(self) -> None:
        """Remove Application and repository, also where deletion would wait for something."""
        for other in self.beside:
            other.remove()
        if self.cluster.get(self.key) is not None:
            with contextlib.suppress(NotFoundError):  # it was going already
                self.cluster.patch(self.key, {"metadata": {"finalizers": None}}, owner=_OWNER)
            self.cluster.delete(self.key)
        self.forge.delete_repo(self.repository)
