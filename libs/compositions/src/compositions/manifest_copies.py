"""
Pass manifests to functions as if over a wire, without copying unchanged ones.

Each function of a pipeline must get its own copy of everything, but changes nearly nothing. So a
`Lender` keeps each manifest twice: the original, which no function ever holds, and a working copy,
which is passed on as long as it equals the original. Changed manifests are copied again for the
next function.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from typing import Generic, Self, TypeVar

from ground.objects.kube_objects import Manifest
from ground.objects.plain_data import copied

Key = TypeVar("Key", bound=Hashable)


class Lender(Generic[Key]):
    """Manifests by key. Never shows the originals to borrowers."""

    def __init__(self) -> None:
        self._originals: dict[Key, Manifest] = {}
        self._lent: dict[Key, Manifest] = {}

    @classmethod
    def of(cls, originals: Mapping[Key, Manifest]) -> Self:
        """Return a lender of these manifests; the caller must not change them while it is used."""
        lender = cls()
        lender._originals = dict(originals)
        return lender

    def lend(self, keys: Iterable[Key]) -> dict[Key, Manifest]:
        """
        Return copies that a borrower may change; it must not keep them.

        Raises:
            NotPlainError: An original cannot be sent over a wire.
        """
        if self._lent == self._originals:
            return {key: self._lent[key] for key in keys}
        return {key: self._copy(key) for key in keys}

    def _copy(self, key: Key) -> Manifest:
        original, copy = self._originals[key], self._lent.get(key)
        if copy is None or copy != original:
            copy = copied(original)
            self._lent[key] = copy
        return copy

    def kept(self, returned: Mapping[Key, Manifest], *, names: Mapping[Key, str]) -> Lender[Key]:
        """
        Return a lender of the returned manifests; unchanged ones are not copied.

        Args:
            names: What messages call a manifest; its key where it is not listed.

        Raises:
            NotPlainError: Something cannot be sent over a wire.
        """
        after: Lender[Key] = Lender()
        for key, manifest in returned.items():
            # Only our own copy may be lent again: the function may keep an equal object of its own.
            if manifest is self._lent.get(key) and manifest == self._originals[key]:
                after._originals[key] = self._originals[key]
                after._lent[key] = manifest
            else:
                after._originals[key] = copied(manifest, names.get(key, str(key)))
        return after

    def original(self, key: Key) -> Manifest:
        """Return an original, to read; raises KeyError if there is none."""
        return self._originals[key]
