"""
Verify that every part of an ended order is gone, and report what remains and why.

Looks in two ways, so that nothing is overlooked: for each object that was known when the end began,
and for every object of a kind the kit composes that has the order's label
``crossplane.io/composite`` and is owned by one of them, also if it was composed later. (The label
is only a name, and another kit's XR may have the same.) What another order's Application delivers,
or something else owns, is not part of this one, whatever its name.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from compositions.composed import COMPOSITE_LABEL
from ground.argocd.delivery_obstacles import tracker
from ground.errors import AccessError
from ground.names import OrderId
from ground.objects.kube_objects import (
    Kind,
    Manifest,
    ObjectKey,
    controller,
    dig,
    labels_of,
    metadata,
)
from orderkit.core.kit.model import Kit
from orderkit.core.secret_values import SECRET
from orderkit.flows.platform import Platform, get_object
from orderkit.ports.cluster import NoSuchKindError


@dataclass(frozen=True, slots=True, order=True)
class Remaining:
    """An object that still exists, and what its deletion waits for."""

    key: ObjectKey
    why: str

    def __str__(self) -> str:
        return f"{self.key} ({self.why})"


class Absence:
    """The objects that must be gone, and where to look for them."""

    def __init__(
        self, platform: Platform, order: OrderId, keys: Sequence[ObjectKey], kit: Kit | None
    ) -> None:
        """`kit` None: the pack no longer has the kit, so only known objects are looked up."""
        self._platform, self._order, self._keys = platform, order, tuple(keys)
        composed = (
            [
                Kind.parse(composed_kind.api_version, composed_kind.kind)
                for composed_kind in kit.composes
            ]
            if kit
            else []
        )
        xrs = [key for key in keys if kit and key.kind == kit.kind]
        self._kinds = sorted({*composed, *(key.kind for key in keys)}) if xrs else []
        self._roots = {self._root(xr) for xr in xrs[:1]}

    def remaining(self) -> list[Remaining]:
        """Return the objects that still exist, each once, sorted."""
        remaining = {ObjectKey.of(manifest): manifest for manifest in self._existing()}
        return [Remaining(key, _why(remaining[key])) for key in sorted(remaining)]

    def describe(self) -> str:
        """Describe the objects that still exist; empty if there are none."""
        remaining = self.remaining()
        return "still there: " + ", ".join(map(str, remaining)) if remaining else ""

    def _existing(self) -> Iterator[Manifest]:
        ours = {(key.kind.kind, key.name) for key in self._keys}
        foreign_uids: set[str] = set()
        for key in self._keys:
            live_object = self._live(key)
            if live_object is None:
                continue
            if self._is_foreign(live_object, ours, foreign_uids):
                ours.discard((key.kind.kind, key.name))
                foreign_uids.add(str(metadata(live_object).get("uid")))
            else:
                yield live_object
        labelled = [
            manifest
            for manifest in self._all_labelled()
            if (controller(manifest) or {}).get("uid") not in foreign_uids
        ]
        while owned := [manifest for manifest in labelled if _owner(manifest) in ours]:
            yield from owned
            ours |= {(manifest["kind"], metadata(manifest)["name"]) for manifest in owned}
            labelled = [manifest for manifest in labelled if manifest not in owned]

    def _is_foreign(
        self, manifest: Manifest, ours: set[tuple[str, str]], foreign_uids: set[str]
    ) -> bool:
        """Say whether an object of a known key belongs to something else than this order."""
        owner = controller(manifest)
        if owner is None:
            return tracker(manifest) not in ("", self._order)
        # the label is only a name, which another kit's XR may have: the owner decides
        return owner.get("uid") in foreign_uids or _owner(manifest) not in ours

    def _all_labelled(self) -> list[Manifest]:
        return [
            manifest
            for root, namespace in self._roots
            for kind in self._kinds
            for manifest in self._labelled(kind, root, namespace)
        ]

    def _labelled(self, kind: Kind, root: str, namespace: str) -> Sequence[Manifest]:
        try:
            labels = {COMPOSITE_LABEL: root}
            objects = self._platform.cluster.list(kind, namespace=namespace or None, labels=labels)
        except NoSuchKindError:
            # its definition is gone, and all objects of the kind with it
            return ()
        except AccessError:
            if kind == SECRET:
                return ()  # a Job may not read them; it goes with its owner
            raise
        return objects.items

    def _live(self, key: ObjectKey) -> Manifest | None:
        """Return an object; a Secret that a Job may not read goes with its owner, unseen."""
        try:
            return get_object(self._platform.cluster, key)
        except AccessError:
            if key.kind == SECRET:
                return None
            raise

    def _root(self, xr: ObjectKey) -> tuple[str, str]:
        """Return the label's value and the namespace; a namespaced XR composes only in its own."""
        living = get_object(self._platform.cluster, xr)
        label = labels_of(living or {}).get(COMPOSITE_LABEL, xr.name)
        return label, xr.namespace


def _owner(manifest: Manifest) -> tuple[str, str]:
    owner = controller(manifest) or {}
    return str(owner.get("kind") or ""), str(owner.get("name") or "")


def _why(manifest: Manifest) -> str:
    if not metadata(manifest).get("deletionTimestamp"):
        return "not deleted yet"
    finalizers = dig(manifest, "metadata", "finalizers", default=())
    if finalizers:
        return f"its deletion waits for {', '.join(map(str, finalizers))}"
    return "is being deleted"
