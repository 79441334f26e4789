"""Backstage as seen from outside: its catalog, and HTTP through its backend."""

from orderkit.adapters.backstage.backstage_client import (
    BackstageCatalog,
    BackstagePortal,
    NoCatalog,
    ProxyTarget,
    entity_ref,
)

__all__ = ["BackstageCatalog", "BackstagePortal", "NoCatalog", "ProxyTarget", "entity_ref"]
