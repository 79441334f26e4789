"""Clusters that refuse to be read."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from ground.errors import AccessError, OrderkitError
from ground.objects.kube_objects import Kind, ObjectKey


@dataclass(frozen=True)
class Refusing:
    """A cluster that does not let an account read some kinds, or gives no answer about them."""

    cluster: Any
    kinds: Collection[str]
    error: type[OrderkitError] = AccessError

    def __getattr__(self, name: str) -> Any:
        return getattr(self.cluster, name)

    def _check(self, kind: Kind) -> None:
        if kind.kind in self.kinds:
            raise self.error(f"{kind.kind}: cannot be read")

    def get(self, key: ObjectKey) -> Any:
        self._check(key.kind)
        return self.cluster.get(key)

    def list(self, kind: Kind, **options: Any) -> Any:
        self._check(kind)
        return self.cluster.list(kind, **options)
