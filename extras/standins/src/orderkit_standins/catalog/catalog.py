"""
A small software catalog: entities of registered locations, re-read periodically.

Level-based: a thread re-reads all locations at an interval, and those of a repository immediately
after a push, so a missed push only delays an update. If a file cannot be read, its last good
entities stay, as in Backstage. Locations are on one forge only.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from ground.errors import InvalidInputError, OrderkitError
from ground.names import RepoId
from ground.objects.kube_objects import Manifest
from orderkit.core.platform.settings import PACK
from orderkit.ports.catalog import Location
from orderkit.ports.forge import Forge
from orderkit_standins.catalog.reading import read_entities, source_of
from orderkit_standins.catalog.store import CatalogStore

INTERVAL_S = 30.0
"""Interval between two reads of all locations; pushes are read at once."""

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class CatalogRegistration:
    """The location and the entities of a target, and whether it was registered before."""

    location: Location
    entities: tuple[Manifest, ...]
    already_registered: bool


class EmbeddedCatalog:
    """The catalog of the embedded platform. Safe to use from several threads."""

    def __init__(
        self,
        path: Path,
        forge: Forge,
        *,
        interval_s: float = INTERVAL_S,
        platform_org: str = PACK.owner,
    ) -> None:
        """
        Open the file and start reading.

        Args:
            platform_org: Whose repositories may hold every kind of entity.

        Raises:
            RefusedError: A newer version of Orderkit wrote the file.
        """
        self._store, self._forge, self._interval_s = CatalogStore(path), forge, interval_s
        self._platform_org = platform_org
        self._wake = threading.Condition()
        self._pushed: set[RepoId] = set()
        self._closing = False
        self._thread = threading.Thread(target=self._keep_reading, name="catalog", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stop reading and close the file. Safe to call twice."""
        with self._wake:
            self._closing = True
            self._wake.notify_all()
        self._thread.join(timeout=35)
        self._store.close()

    def notify(self, repo: RepoId) -> None:
        """Queue the locations of a pushed repository for reading. Returns at once."""
        with self._wake:
            self._pushed.add(repo)
            self._wake.notify_all()

    def preview(self, target: str) -> CatalogRegistration:
        """
        Read a target as if it were registered, and store nothing.

        Raises:
            InvalidInputError: The target is not a file of the forge, or has no valid entity.
        """
        entities = self._read(target)
        registered = [location for location in self._store.locations() if location.target == target]
        location = registered[0] if registered else Location("", target)
        return CatalogRegistration(location, entities, bool(registered))

    def register(self, target: str) -> CatalogRegistration:
        """
        Store a location and its entities. Idempotent. The first location of an entity keeps it.

        Raises:
            InvalidInputError: No file of the forge, or no good entity in it.
        """
        entities = self._read(target)
        location, new = self._store.add_location(target)
        self._put(location, entities)
        return CatalogRegistration(location, entities, not new)

    def _read(self, target: str) -> tuple[Manifest, ...]:
        return tuple(read_entities(self._forge, target, platform_org=self._platform_org))

    def _put(self, location: Location, entities: Sequence[Manifest]) -> None:
        for ref in self._store.put_entities(location, entities):
            logger.warning("catalog: %s: another location has %s", location.target, ref)

    def unregister(self, location_id: str) -> bool:
        """Remove a location and its entities. False if there is none."""
        return self._store.remove_location(location_id)

    def remove_entity(self, uid: str) -> bool:
        """Remove one entity until its location is read again. False if there is none."""
        return self._store.remove_entity(uid)

    def locations(self) -> list[Location]:
        return self._store.locations()

    def entities(self) -> list[Manifest]:
        return self._store.entities()

    def entity(self, ref: str) -> Manifest | None:
        return self._store.entity(ref)

    def refresh(self, selects: Callable[[Location], bool] = lambda _: True) -> None:
        """Read locations now. A location that cannot be read keeps its last good entities."""
        for location in self._store.locations():
            if self._closing or not selects(location):
                continue
            try:
                entities = self._read(location.target)
            except OrderkitError as error:
                logger.warning("catalog: %s: %s", location.target, error)
                continue
            self._put(location, entities)

    def refresh_entity(self, ref: str) -> None:
        """Queue the location of an entity for reading."""
        entity = self.entity(ref)
        if entity is not None:
            target = entity["metadata"]["annotations"]["backstage.io/managed-by-location"]
            self.notify(source_of(target[len("url:") :], base_url=self._forge.base_url).repo)

    def _keep_reading(self) -> None:
        """Read everything now and at each interval, and pushed repositories in between."""
        pushed: set[RepoId] | None = None
        while not self._closing:
            try:
                self.refresh(lambda location, repos=pushed: self._is_in(location, repos))  # type: ignore[misc]  # mypy has no type for a bound default
            except Exception:
                logger.exception("catalog: reading the locations failed")
            with self._wake:
                if not self._pushed and not self._closing:
                    self._wake.wait(timeout=self._interval_s)
                pushed, self._pushed = self._pushed or None, set()

    def _is_in(self, location: Location, repos: set[RepoId] | None) -> bool:
        if repos is None:
            return True
        try:
            return source_of(location.target, base_url=self._forge.base_url).repo in repos
        except InvalidInputError:
            return False
