"""
The catalog of a portal whose plugin reads orders from the service, as an order's steps see it.

Registering the order's own location as well would give one entity from two sources. So
``catalog:register`` returns the plugin's entity and registers nothing. Used by
``flows.order.placing``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ground.names import OrderId
from ground.objects.kube_objects import Manifest
from orderkit.ports.catalog import Catalog, Location


@dataclass(frozen=True, slots=True)
class ProvidedEntity:
    """A `catalog` that gets the entity of `order` from a plugin of the portal."""

    catalog: Catalog
    order: OrderId

    def register(self, target: str) -> Sequence[str]:  # noqa: ARG002 - nothing is read from there
        """Return the entity that the plugin makes."""
        return [f"component:default/{self.order}"]

    def unregister(self, target: str) -> bool:
        """Remove a location from the time before the plugin."""
        return self.catalog.unregister(target)

    def locations(self) -> Sequence[Location]:
        return self.catalog.locations()

    def entity(self, ref: str) -> Manifest | None:
        return self.catalog.entity(ref)
