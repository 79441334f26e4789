"""Azure: AKS in a resource group and a network of its own, with Azure DNS and workload identity."""

from __future__ import annotations

from .cluster import access, cluster, facts, pool, pool_version, refusal
from .dns import chart_values, dns_rights, name_servers, zones
from .network import network

__all__ = [
    "access",
    "chart_values",
    "cluster",
    "dns_rights",
    "facts",
    "name_servers",
    "network",
    "pool",
    "pool_version",
    "refusal",
    "zones",
]
