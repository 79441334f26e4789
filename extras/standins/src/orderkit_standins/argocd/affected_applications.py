"""
Which Applications an event concerns: a cache of links, rebuilt at each start.

Links come from comparisons (an Application lists an object), from tracking annotations seen on
objects, and from sources (an Application follows a branch). A lost link costs time but not
correctness: every Application is compared at start.
"""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field

from ground.argocd.delivery_obstacles import tracker
from ground.names import RepoId
from ground.objects.kube_objects import Manifest, ObjectKey
from orderkit_standins.argocd.compare import Identity, identity
from orderkit_standins.argocd.source_repositories import same_repository


@dataclass(frozen=True, slots=True)
class Followed:
    """A followed branch, and its commit at the last comparison."""

    repo_url: str
    revision: str


@dataclass(frozen=True, slots=True)
class Follower:
    """An Application that follows a branch, and the folders that concern it; none: all."""

    app: str
    scope: tuple[str, ...]

    def concerned_by(self, changed: Iterable[str] | None) -> bool:
        """Say whether changed paths (None: unknown) may change what it delivers."""
        if changed is None or not self.scope:
            return True
        return any(path.startswith(folder) for path in changed for folder in self.scope)


@dataclass(slots=True)
class Index:
    """Thread-safe."""

    _lock: threading.Lock = field(default_factory=threading.Lock)
    _listed_ids: dict[str, frozenset[Identity]] = field(default_factory=dict)
    _listers: dict[Identity, set[str]] = field(default_factory=lambda: defaultdict(set))
    _tracked: dict[str, dict[Identity, ObjectKey]] = field(
        default_factory=lambda: defaultdict(dict)
    )
    _followed: dict[str, tuple[Followed, str, Follower]] = field(default_factory=dict)

    def seen(self, manifest: Manifest) -> frozenset[str]:
        """Record an object that changed or was deleted; return the Applications it concerns."""
        key = ObjectKey.of(manifest)
        owner = tracker(manifest)
        with self._lock:
            if owner:
                self._tracked[owner][identity(key)] = key
            return frozenset(self._listers.get(identity(key), ())) | ({owner} - {""})

    def tracked(self, app: str) -> tuple[ObjectKey, ...]:
        """Return the objects that were seen with an Application's tracking annotation."""
        with self._lock:
            return tuple(self._tracked.get(app, {}).values())

    def compared(self, app: str, keys: Iterable[ObjectKey], looked_at: Iterable[ObjectKey]) -> None:
        """Record the objects that an Application lists now; forget candidates it does not list."""
        now = {identity(key) for key in keys}
        with self._lock:
            self._unlist(app, self._listed_ids.get(app, frozenset()) - now)
            for listed_id in now:
                self._listers[listed_id].add(app)
            self._listed_ids[app] = frozenset(now)
            for key in looked_at:
                if identity(key) not in now:
                    self._tracked[app].pop(identity(key), None)

    def _unlist(self, app: str, identities: Iterable[Identity]) -> None:
        for unlisted_id in identities:
            self._listers[unlisted_id].discard(app)
            if not self._listers[unlisted_id]:
                del self._listers[unlisted_id]

    def listing(self, group: str, kind: str) -> list[str]:
        """Return the Applications that list objects of a kind."""
        with self._lock:
            apps_by_object = (
                apps
                for listed_id, apps in self._listers.items()
                if (listed_id[0], listed_id[1]) == (group, kind)
            )
            return sorted({app for apps in apps_by_object for app in apps})

    def follows(self, app: str, followed: Followed, resolved: str, scope: tuple[str, ...]) -> None:
        """Record the branch that an Application follows, its commit, and relevant folders."""
        with self._lock:
            self._followed[app] = (followed, resolved, Follower(app, scope))

    def moved(self, app: str, resolved: str) -> None:
        """Record that a branch moved without a change that concerns the Application."""
        with self._lock:
            if app in self._followed:
                followed, _, follower = self._followed[app]
                self._followed[app] = (followed, resolved, follower)

    def branches(
        self, of: str | RepoId | None = None
    ) -> dict[tuple[Followed, str], list[Follower]]:
        """Return every followed branch (of one repository) with what it was, and who follows."""
        followers: dict[tuple[Followed, str], list[Follower]] = defaultdict(list)
        with self._lock:
            entries = tuple(self._followed.values())
        for followed, resolved, follower in entries:
            if of is None or same_repository(followed.repo_url, of):
                followers[followed, resolved].append(follower)
        return followers

    def forget(self, app: str, leftovers: Iterable[ObjectKey]) -> None:
        """Drop an Application that is gone; keep only its `leftovers`."""
        with self._lock:
            self._unlist(app, self._listed_ids.pop(app, frozenset()))
            self._followed.pop(app, None)
            self._tracked.pop(app, None)
            kept = {identity(key): key for key in leftovers}
            if kept:
                self._tracked[app] = kept
