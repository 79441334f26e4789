"""
Which Applications an event concerns: a cache of links, rebuilt from nothing at each start.

Links come from comparisons (an Application lists an object), from tracking annotations seen on
objects, and from sources (an Application follows a branch). Losing them costs time, never
correctness: every Application is compared at the start.
"""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field

from orderkit.adapters.embedded.delivery.compare import Identity, identity
from orderkit.adapters.embedded.delivery.refs import same_repository
from orderkit.adapters.embedded.delivery.tracking import tracker
from orderkit.core.names import RepoId
from orderkit.core.objects import Manifest, ObjectKey


@dataclass(frozen=True, slots=True)
class Followed:
    """A branch somebody follows and what it was when last compared."""

    repo_url: str
    revision: str


@dataclass(slots=True)
class Index:
    """Thread-safe."""

    _lock: threading.Lock = field(default_factory=threading.Lock)
    _listed: dict[str, frozenset[Identity]] = field(default_factory=dict)
    _listers: dict[Identity, set[str]] = field(default_factory=lambda: defaultdict(set))
    _tracked: dict[str, dict[Identity, ObjectKey]] = field(
        default_factory=lambda: defaultdict(dict)
    )
    _followed: dict[str, tuple[Followed, str]] = field(default_factory=dict)

    def seen(self, manifest: Manifest) -> frozenset[str]:
        """Note an object that changed or vanished; return the Applications it concerns."""
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
        """Note which objects an Application lists now; forget those it looked at in vain."""
        now = {identity(key) for key in keys}
        with self._lock:
            self._unlist(app, self._listed.get(app, frozenset()) - now)
            for found in now:
                self._listers[found].add(app)
            self._listed[app] = frozenset(now)
            for key in looked_at:
                if identity(key) not in now:
                    self._tracked[app].pop(identity(key), None)

    def _unlist(self, app: str, identities: Iterable[Identity]) -> None:
        for gone in identities:
            self._listers[gone].discard(app)
            if not self._listers[gone]:
                del self._listers[gone]

    def listing(self, group: str, kind: str) -> list[str]:
        """Return the Applications that list objects of a kind."""
        with self._lock:
            found = (
                apps for one, apps in self._listers.items() if (one[0], one[1]) == (group, kind)
            )
            return sorted({app for apps in found for app in apps})

    def follows(self, app: str, followed: Followed, found: str) -> None:
        """Note the branch an Application follows and what it resolved to."""
        with self._lock:
            self._followed[app] = (followed, found)

    def branches(self) -> dict[tuple[Followed, str], list[str]]:
        """Return every followed branch with what it was, and who follows it."""
        found: dict[tuple[Followed, str], list[str]] = defaultdict(list)
        with self._lock:
            for app, followed in self._followed.items():
                found[followed].append(app)
        return found

    def followers(self, pushed: str | RepoId) -> list[str]:
        """Return the Applications that follow a repository."""
        with self._lock:
            followed = tuple(self._followed.items())
        return [app for app, (one, _) in followed if same_repository(one.repo_url, pushed)]

    def forget(self, app: str, left: Iterable[ObjectKey]) -> None:
        """Drop an Application that is gone, except for the objects it `left` behind."""
        with self._lock:
            self._unlist(app, self._listed.pop(app, frozenset()))
            self._followed.pop(app, None)
            self._tracked.pop(app, None)
            kept = {identity(key): key for key in left}
            if kept:
                self._tracked[app] = kept
