"""
Which kinds are served now: the built-in ones and those of the definitions in the store.

Read by every request; changed only by ``writes`` when a definition changes, with the store's
lock held. A change replaces the maps, so readers need no lock.
"""

from __future__ import annotations

from collections.abc import Iterable

from ground.objects.kube_objects import Kind, Manifest, metadata
from orderkit_standins.cluster.definitions import served_kinds
from orderkit_standins.cluster.kinds import ServedKind
from orderkit_standins.cluster.refusals import KindMissing
from orderkit_standins.cluster.served_builtin_kinds import BUILT_IN


class KindRegistry:
    """Served kinds by kind and by (group, version, plural)."""

    def __init__(self) -> None:
        self._definitions: dict[str, list[ServedKind]] = {}
        self._by_kind: dict[Kind, ServedKind] = {}
        self._by_resource: dict[tuple[str, str, str], ServedKind] = {}
        self._rebuild()

    def define(self, definition: Manifest) -> None:
        """Start to serve the kinds of a definition."""
        self._definitions[metadata(definition)["name"]] = served_kinds(definition)
        self._rebuild()

    def forget(self, name: str) -> None:
        """Stop serving the kinds of a definition."""
        self._definitions.pop(name, None)
        self._rebuild()

    def _rebuild(self) -> None:
        kinds_served = [
            *BUILT_IN,
            *(kind for kinds in self._definitions.values() for kind in kinds),
        ]
        self._by_resource = {
            (served.kind.group, served.kind.version, served.plural): served
            for served in kinds_served
        }
        self._by_kind = {served.kind: served for served in kinds_served}

    def find(self, kind: Kind) -> ServedKind | None:
        return self._by_kind.get(kind)

    def get(self, kind: Kind) -> ServedKind:
        """
        Return a served kind.

        Raises:
            KindMissing: It is not served.
        """
        served = self._by_kind.get(kind)
        if served is None:
            raise KindMissing(kind)
        return served

    def resource(self, group: str, version: str, plural: str) -> ServedKind | None:
        """Return the kind behind a URL's group, version and plural."""
        return self._by_resource.get((group, version, plural))

    def any_version(self, group: str, kind: str) -> ServedKind | None:
        """Return the kind in a served version, preferably the storage version."""
        return next((s for s in self.all() if (s.kind.group, s.kind.kind) == (group, kind)), None)

    def all(self) -> Iterable[ServedKind]:
        """Return every served kind in every version."""
        return self._by_kind.values()
