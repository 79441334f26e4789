"""
The catalog: where the portal keeps entities read from repositories.

The data has the shape of Backstage's ``/api/catalog``. Only the calls that flows need are here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from ground.objects.kube_objects import Manifest


@dataclass(frozen=True, slots=True)
class Location:
    """A registered place from which the catalog reads entities."""

    id: str
    target: str


class Catalog(Protocol):
    """
    Entities and the locations they come from.

    Every method may raise UnreachableError, AccessError and RemoteError. All but `entity` raise
    NotFoundError where the address is not a portal. The catalog shows what is registered, and
    forgets what is not, when it next reads its locations: seconds later.
    """

    def register(self, target: str) -> Sequence[str]:
        """
        Register the URL of a ``catalog-info.yaml``. Idempotent.

        An entity that another location gave first stays the other's.

        Returns:
            Entity references such as ``component:default/garage-ae86``, in no order.

        Raises:
            InvalidInputError: The file is missing or holds no entity, or it or a file that it
                names is broken.
        """
        ...

    def unregister(self, target: str) -> bool:
        """Remove the location and its entities. Idempotent. True if it was registered."""
        ...

    def locations(self) -> Sequence[Location]:
        """Return every registered location."""
        ...

    def entity(self, ref: str) -> Manifest | None:
        """
        Return an entity by ``kind:namespace/name``, in upper or lower case, or None.

        Raises:
            InvalidInputError: `ref` is not a full reference.
        """
        ...
