"""Backstage as seen from outside: its catalog, and HTTP through its backend."""

from orderkit.adapters.backstage.backstage_catalog import BackstageCatalog, NoCatalog, entity_ref
from orderkit.adapters.backstage.backstage_portal import BackstagePortal, ProxyTarget

__all__ = ["BackstageCatalog", "BackstagePortal", "NoCatalog", "ProxyTarget", "entity_ref"]
