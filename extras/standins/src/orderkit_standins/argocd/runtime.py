"""
Run delivery: watches, pushes, and a periodic look at every followed branch.

Maps each event to the Applications that it concerns; ``reconcile`` does the work.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterable
from contextlib import suppress

from ground.names import CommitSha, RepoId
from ground.objects.kube_objects import (
    APP_PROJECT,
    APPLICATION,
    XRD,
    Kind,
    Manifest,
    ObjectKey,
    annotations_of,
    dig,
    metadata,
)
from orderkit.ports.clock import SystemClock
from orderkit.ports.cluster import Cluster, NoSuchKindError
from orderkit_standins.argocd.affected_applications import Followed, Follower, Index
from orderkit_standins.argocd.compare import Look
from orderkit_standins.argocd.reconcile import REFRESH, Reconciler
from orderkit_standins.argocd.source_repositories import RepositorySources, SourceError
from orderkit_standins.argocd.spec import application_key
from orderkit_standins.argocd.status import live_health
from orderkit_standins.argocd.targets import TargetLoader
from orderkit_standins.controller import Controller

_UNCOMPARED_METADATA = frozenset({"generation", "managedFields", "resourceVersion"})
POLL_S = 3.0
"""How often branches are looked at when nobody reports a push."""
_PACE = 8
"""An Application of a whole fleet takes a ninth of a processor at most, whatever happens below."""

logger = logging.getLogger(__name__)


class EmbeddedArgoCD:
    """Argo CD's part of the embedded platform, on any cluster and any repositories."""

    def __init__(
        self,
        cluster: Cluster,
        sources: RepositorySources,
        *,
        look: Look | None = None,
        poll_s: float = POLL_S,
    ) -> None:
        """
        Deliver from these repositories to this cluster.

        Args:
            cluster: Where Applications and what they deliver are.
            sources: The repositories.
            look: Reads objects that are compared, without a copy; None: the cluster's own way.
            poll_s: How often branches are looked at.
        """
        self._sources, self._poll_s = sources, poll_s
        self._index = Index()
        self._composites: frozenset[tuple[str, str]] = frozenset()
        self._stopping = threading.Event()
        self._poller = threading.Thread(target=self._poll, name="delivery-poll", daemon=True)
        reconciler = Reconciler(
            cluster,
            TargetLoader(sources),
            self._index,
            SystemClock(),
            look=look or cluster.get,
            is_composite=self._is_composite,
            follow=self._watch_kind,
        )
        self._cluster = cluster
        self._controller = Controller(
            "delivery", cluster, reconciler.reconcile, workers=4, pace=_PACE
        )
        self._controller.watch(APPLICATION, is_same=reconciler.has_reported)
        self._watch_kind(APPLICATION)
        self._controller.watch(APP_PROJECT, self._members)
        self._controller.watch(XRD, self._defined)

    def start(self) -> None:
        """Start to deliver; return at once. Interrupted operations continue."""
        self._controller.start()
        self._poller.start()

    def stop(self) -> None:
        """Stop after the steps that are running."""
        self._stopping.set()
        self._controller.stop()
        if self._poller.is_alive():
            self._poller.join(timeout=10)

    def notify(self, pushed: str | RepoId) -> None:
        """Look at once at the Applications that follow a repository (what a webhook does)."""
        self._reconcile_moved(pushed)

    def _watch_kind(self, kind: Kind) -> None:
        self._controller.watch(kind, self._concerned, is_same=self._is_ignored)

    def _concerned(self, manifest: Manifest) -> Iterable[ObjectKey]:
        """Any object concerns who delivers or lists it."""
        return map(application_key, self._index.seen(manifest))

    def _is_ignored(self, before: Manifest, after: Manifest) -> bool:
        """Say whether a change is one that Argo CD ignores, as it is shipped since 3.0."""
        if _compared(before) != _compared(after):
            return False
        healths = (live_health(each, self._is_composite) for each in (before, after))
        first, second = (health and health.status for health in healths)
        return first is second

    def _members(self, project: Manifest) -> Iterable[ObjectKey]:
        """Every Application of a project that changed; its own deliverer, too."""
        yield from self._concerned(project)
        name = metadata(project).get("name")
        for app in self._controller.known(APPLICATION):
            if (dig(app, "spec", "project") or "default") == name:
                yield ObjectKey.of(app)

    def _defined(self, xrd: Manifest) -> Iterable[ObjectKey]:
        """An XRD concerns who delivers it and who holds objects that it makes composite."""
        yield from self._concerned(xrd)
        yield from map(application_key, self._index.listing(*_defined_kind(xrd)))

    def _is_composite(self, kind: Kind) -> bool:
        """Ask the cluster about kinds not known to be composite: a wave may depend on one."""
        kind_id = (kind.group, kind.kind)
        if kind_id not in self._composites and "." in kind.group and not _is_built_in(kind):
            with suppress(NoSuchKindError):
                self._composites = frozenset(map(_defined_kind, self._cluster.list(XRD).items))
        return kind_id in self._composites

    def _poll(self) -> None:
        while not self._stopping.wait(self._poll_s):
            self._reconcile_moved(None)

    def _reconcile_moved(self, pushed: str | RepoId | None) -> None:
        """Reconcile the Applications that a moved branch concerns."""
        for (followed, resolved), followers in self._index.branches(pushed).items():
            try:
                now: str = self._sources.resolve(followed.repo_url, followed.revision)
            except SourceError:
                now = followed.revision
            except Exception:
                logger.exception("cannot look at %s", followed.repo_url)
                continue
            if now != resolved:
                self._moved(followed, resolved, CommitSha(now), followers)

    def _moved(
        self, followed: Followed, resolved: str, now: CommitSha, followers: Iterable[Follower]
    ) -> None:
        changed = self._sources.changed(followed.repo_url, resolved, now)
        for follower in followers:
            if follower.concerned_by(changed):
                self._controller.enqueue(application_key(follower.app))
            else:
                self._index.moved(follower.app, now)


def _compared(manifest: Manifest) -> Manifest:
    """Return what counts as a change of an object, besides its health."""
    meta = {k: v for k, v in metadata(manifest).items() if k not in _UNCOMPARED_METADATA}
    meta["annotations"] = {k: v for k, v in annotations_of(manifest).items() if k != REFRESH}
    own = ("status", "operation") if manifest["kind"] == APPLICATION.kind else ("status",)
    return {**{k: v for k, v in manifest.items() if k not in own}, "metadata": meta}


def _defined_kind(xrd: Manifest) -> tuple[str, str]:
    group, kind = dig(xrd, "spec", "group"), dig(xrd, "spec", "names", "kind")
    return str(group), str(kind)


def _is_built_in(kind: Kind) -> bool:
    """Say whether no XRD can define the kind, so that the many Applications cost no question."""
    return kind.group.endswith(".k8s.io") or kind.group == APPLICATION.group
