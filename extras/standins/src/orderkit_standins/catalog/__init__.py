"""The embedded catalog: Backstage's ``/api/catalog`` over SQLite and the platform's forge."""

from orderkit_standins.catalog.catalog import EmbeddedCatalog

__all__ = ["EmbeddedCatalog"]
