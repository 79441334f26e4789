"""The embedded catalog: Backstage's ``/api/catalog`` over SQLite and the platform's forge."""

from orderkit.adapters.embedded.catalog.catalog import EmbeddedCatalog

__all__ = ["EmbeddedCatalog"]
