"""AWS: EKS in a VPC of its own, with Route 53 and pod identities."""

from __future__ import annotations

from .cluster import access, cluster, facts, pool, pool_version
from .dns import chart_values, dns_rights, name_servers, zones
from .network import network, refusal

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
