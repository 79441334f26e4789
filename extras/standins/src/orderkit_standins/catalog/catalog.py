"""
A small software catalog: entities of registered locations, re-read periodically.

`EmbeddedCatalog` is level-based: a thread re-reads all locations at an interval, and those of a
repository immediately after a push, so a missed push only delays an update. If a file cannot be
read, its last good entities stay, as in Backstage. Locations are on one forge only.

`read_entities` reads a location: a ``catalog-info.yaml`` in a repository of the platform's forge.
It checks what Backstage's catalog checks first: the envelope, known kinds, names and namespaces,
and that the fields are there which a kind must have. Files outside the platform's organisation may
hold the kinds `FROM_ORDERS` only. The files that a ``Location`` there names relative to itself are
read too, one level deep and without patterns; one that is missing or broken spoils the whole
location. Anybody may have pushed the file, so it is read with the limits of
``yamlfiles.manifests``.

`CatalogStore` has the tables: locations, and the entities read from them. SQLite, durable. One
connection behind a lock; every write is its own transaction and is on disk when the call returns.
"""

from __future__ import annotations

import hashlib
import json
import logging
import posixpath
import re
import sqlite3
import threading
import uuid
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from urllib.parse import quote, unquote

from ground.errors import InvalidInputError, OrderkitError, RefusedError
from ground.names import RepoId
from ground.objects.kube_objects import Manifest, annotations_of, dig, metadata
from orderkit.adapters.backstage import entity_ref
from orderkit.core.platform.forge_kinds import FILE_PAGE
from orderkit.core.platform.settings import PACK
from orderkit.core.portal.catalog_origins import FROM_ORDERS
from orderkit.ports.catalog import Location
from orderkit.ports.forge import Forge
from yamlfiles.manifests import ManifestError, parse_manifests

REQUIRED = {
    "API": ("type", "lifecycle", "owner", "definition"),
    "Component": ("type", "lifecycle", "owner"),
    "Domain": ("owner",),
    "Group": ("type", "children"),
    "Location": (),
    "Resource": ("type", "owner"),
    "System": ("owner",),
    "Template": ("type", "steps"),
    "User": (),
}
"""The kinds, and what each must have in its ``spec``."""
_TARGET = re.compile(
    r"/(?P<owner>[^/?#]+)/(?P<repo>[^/?#]+)/" + FILE_PAGE + r"/(?P<ref>[^/?#]+)/(?P<path>[^?#]+)\Z"
)
_NAME = re.compile(r"[A-Za-z0-9]([-._A-Za-z0-9]{0,61}[A-Za-z0-9])?\Z")
_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?\Z")


@dataclass(frozen=True, slots=True)
class CatalogSource:
    """A file in a repository at a branch, tag or commit."""

    repo: RepoId
    ref: str
    path: PurePosixPath


def source_of(target: str, *, base_url: str) -> CatalogSource:
    """
    Read a location's target.

    Raises:
        InvalidInputError: It is not a file page of the forge at `base_url`.
    """
    path = target.removeprefix(base_url)
    match = _TARGET.match(path) if path != target else None
    if match is None:
        raise InvalidInputError(
            "target",
            target,
            "is not a file on this platform's forge",
            hint=f"the form is {base_url}/<owner>/<repo>/src/branch/<branch>/catalog-info.yaml",
        )
    repo = RepoId(unquote(match["owner"]), unquote(match["repo"]))
    return CatalogSource(repo, unquote(match["ref"]), PurePosixPath(unquote(match["path"])))


def read_entities(forge: Forge, target: str, *, platform_org: str) -> list[Manifest]:
    """
    Return the current entities of a location.

    Args:
        platform_org: Whose repositories only the platform writes: they may hold every kind.

    Raises:
        InvalidInputError: The file is missing or has no valid entity, or one of a kind that only
            the platform's files may hold.
        UnreachableError: The forge does not answer. RemoteError, AccessError: it refuses.
    """
    entities = _read(forge, target, origin=target)
    is_ours = source_of(target, base_url=forge.base_url).repo.owner == platform_org
    for kind in sorted({entity["kind"] for entity in entities} - {*FROM_ORDERS}):
        if not is_ours:
            raise InvalidInputError(
                "kind", kind, f"is none of {', '.join(FROM_ORDERS)}, which an order may bring"
            )
    for location in [entity for entity in entities if entity["kind"] == "Location"]:
        for child in _children(location, target):
            entities += _read(forge, child, origin=target)
    return entities


def _read(forge: Forge, target: str, *, origin: str) -> list[Manifest]:
    source = source_of(target, base_url=forge.base_url)
    revision = forge.read(source.repo, source.path, source.ref)
    if revision is None:
        raise InvalidInputError("target", target, "is not there, or hidden from the catalog")
    try:
        manifests = parse_manifests(source.path.name, revision.data)
    except ManifestError as error:
        raise InvalidInputError("target", target, f"is not an entity: {error}") from error
    if not manifests:
        raise InvalidInputError("target", target, "holds no entity")
    return [_entity(manifest, target, origin) for manifest in manifests]


def _children(location: Manifest, target: str) -> Iterator[str]:
    """Yield the targets of a Location as URLs below its own folder, never outside it."""
    folder = target.rpartition("/")[0]
    targets = [dig(location, "spec", "target"), *(dig(location, "spec", "targets") or ())]
    for name in targets:
        if isinstance(name, str) and name.startswith("./"):
            path = posixpath.normpath(name)
            # anybody may have pushed the file: it names nothing outside of its folder
            if not path.startswith("../"):
                yield f"{folder}/{quote(path, safe='/%')}"


def _entity(manifest: Manifest, target: str, origin: str) -> Manifest:
    kind, meta, spec = manifest["kind"], metadata(manifest), manifest.get("spec")
    name, namespace = meta.get("name"), meta.get("namespace", "default")
    if kind not in REQUIRED:
        raise InvalidInputError("kind", kind, f"is none of {', '.join(REQUIRED)}")
    if not isinstance(spec, dict):
        raise InvalidInputError("spec", spec, "is not a map")
    for field in REQUIRED[kind]:
        if field not in spec:
            raise InvalidInputError(f"spec.{field}", None, f"is missing; a {kind} must have it")
    if not isinstance(name, str) or not _NAME.match(name):
        raise InvalidInputError("metadata.name", name, "is not an entity name")
    if not isinstance(namespace, str) or not _LABEL.match(namespace):
        raise InvalidInputError("metadata.namespace", namespace, "is not an RFC 1123 label")
    if not isinstance(annotations_of(manifest), dict):
        raise InvalidInputError("metadata.annotations", "", "is not a map")
    written = _metadata(manifest, namespace, target, origin)
    return {**manifest, "metadata": written, "relations": []}


def _metadata(manifest: Manifest, namespace: str, target: str, origin: str) -> Manifest:
    """Add the metadata that the catalog itself sets, except the uid, which the store sets."""
    digest = hashlib.sha256(json.dumps(manifest, sort_keys=True).encode()).hexdigest()
    return {
        **metadata(manifest),
        "namespace": namespace,
        "etag": digest[:40],
        "annotations": {
            **annotations_of(manifest),
            "backstage.io/managed-by-location": f"url:{target}",
            "backstage.io/managed-by-origin-location": f"url:{origin}",
            "backstage.io/view-url": target,
            "backstage.io/source-location": f"url:{target.rpartition('/')[0]}/",
        },
    }


VERSION = 1
_TABLES = """
CREATE TABLE IF NOT EXISTS locations (id TEXT PRIMARY KEY, target TEXT UNIQUE NOT NULL);
CREATE TABLE IF NOT EXISTS entities (
    ref TEXT PRIMARY KEY,
    uid TEXT UNIQUE NOT NULL,
    location TEXT NOT NULL REFERENCES locations (id) ON DELETE CASCADE,
    data TEXT NOT NULL
);
"""


class CatalogStore:
    """Locations and entities in one file."""

    def __init__(self, path: Path) -> None:
        """
        Open or create the file.

        Raises:
            RefusedError: A newer version of Orderkit wrote it.
        """
        self._lock = threading.Lock()
        self._db = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
        try:
            self._prepare(path)
        except BaseException:
            self._db.close()
            raise

    def _prepare(self, path: Path) -> None:
        (version,) = self._db.execute("PRAGMA user_version").fetchone()
        if version > VERSION:
            raise RefusedError(
                f"{path}: format {version} is newer than this Orderkit knows ({VERSION})",
                hint="use the newer Orderkit, or another state folder",
            )
        self._db.execute("PRAGMA journal_mode = WAL")
        self._db.execute("PRAGMA synchronous = FULL")
        self._db.execute("PRAGMA foreign_keys = ON")
        self._db.executescript(_TABLES)
        self._db.execute(f"PRAGMA user_version = {VERSION}")

    def close(self) -> None:
        with self._lock:
            self._db.close()

    def locations(self) -> list[Location]:
        rows = self._all("SELECT id, target FROM locations ORDER BY target")
        return [Location(id_, target) for id_, target in rows]

    def add_location(self, target: str) -> tuple[Location, bool]:
        """Return the location of a target, and whether it is new."""
        with self._lock:
            added = self._db.execute(
                "INSERT INTO locations (id, target) VALUES (?, ?) ON CONFLICT DO NOTHING",
                (str(uuid.uuid4()), target),
            ).rowcount
            (id_,) = self._db.execute(
                "SELECT id FROM locations WHERE target = ?", (target,)
            ).fetchone()
        return Location(id_, target), added == 1

    def remove_location(self, id_: str) -> bool:
        """Remove a location and its entities. False if there was none."""
        with self._lock:
            deleted_rows = self._db.execute("DELETE FROM locations WHERE id = ?", (id_,)).rowcount
        return deleted_rows == 1

    def put_entities(self, location: Location, entities: Sequence[Manifest]) -> list[str]:
        """
        Make these the location's entities, all at once; return the refused references.

        An entity that another location registered first is refused.
        """
        refs = [entity_ref(entity) for entity in entities]
        with self._lock, self._db:
            self._db.execute("BEGIN IMMEDIATE")
            location_row = self._db.execute("SELECT 1 FROM locations WHERE id = ?", (location.id,))
            # the location was removed in the meantime
            if location_row.fetchone() is None:
                return []
            marks = ", ".join("?" * len(refs))
            self._db.execute(
                f"DELETE FROM entities WHERE location = ? AND ref NOT IN ({marks})",  # noqa: S608 - only question marks are put in
                (location.id, *refs),
            )
            return [
                ref
                for ref, entity in zip(refs, entities, strict=True)
                if not self._put_entity(ref, location.id, entity)
            ]

    def _put_entity(self, ref: str, location_id: str, entity: Manifest) -> bool:
        row = self._db.execute(
            "SELECT location, uid FROM entities WHERE ref = ?", (ref,)
        ).fetchone()
        if row is not None and row[0] != location_id:
            return False
        uid = row[1] if row else str(uuid.uuid4())
        stored = {**entity, "metadata": {**entity["metadata"], "uid": uid}}
        self._db.execute(
            "INSERT INTO entities (ref, uid, location, data) VALUES (?, ?, ?, ?) "
            "ON CONFLICT (ref) DO UPDATE SET data = excluded.data",
            (ref, uid, location_id, json.dumps(stored)),
        )
        return True

    def entities(self) -> list[Manifest]:
        return [json.loads(data) for (data,) in self._all("SELECT data FROM entities ORDER BY ref")]

    def entity(self, ref: str) -> Manifest | None:
        rows = self._all("SELECT data FROM entities WHERE ref = ?", ref.lower())
        return json.loads(rows[0][0]) if rows else None

    def remove_entity(self, uid: str) -> bool:
        """Remove one entity. It returns at the next read if its location still has it."""
        with self._lock:
            deleted_rows = self._db.execute("DELETE FROM entities WHERE uid = ?", (uid,)).rowcount
        return deleted_rows == 1

    def _all(self, query: str, *arguments: str) -> list[tuple[str, ...]]:
        with self._lock:
            return self._db.execute(query, arguments).fetchall()


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
        """Read locations now."""
        for location in self._store.locations():
            if self._closing or not selects(location):
                continue
            try:
                entities = self._read(location.target)
            except OrderkitError as error:
                # its last good entities stay, as in Backstage
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
