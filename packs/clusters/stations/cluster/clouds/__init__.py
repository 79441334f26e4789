"""
The clouds, one folder each: a folder that is here can be ordered, and no other code names it.

Each folder is a module with the functions of `Cloud`. They translate an `Order` into the cloud's
managed resources (the document's second layer) and read facts back.
"""

from __future__ import annotations

import pkgutil
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol, cast

from orderkit.stations import OBSERVE, ManagementAction

from ..order import Order, Pool
from ..part import Part, import_policies


@dataclass(frozen=True, slots=True)
class ClusterFacts:
    """What a cloud says of a cluster; empty texts are not known yet."""

    endpoint: str = ""
    ca: str = ""
    """PEM in base64."""
    version: str = ""
    """What the control plane runs, as exact as the cloud says it."""
    asked_version: str = ""
    """What was asked for last."""


@dataclass(frozen=True, slots=True)
class Access:
    """How providers log in to a cluster."""

    part: str
    """The part that writes the Secret with the kubeconfig."""
    identity: Mapping[str, Any] = field(default_factory=dict)
    """Who calls, if the kubeconfig alone does not say it."""


class Cloud(Protocol):
    """What each folder defines. The part ``cluster`` is the control plane."""

    def refusal(self, order: Order) -> str:
        """Return why this cloud cannot have such a cluster; empty: it can."""

    def network(self, order: Order) -> Iterable[Part]:
        """Return the network of a new cluster."""

    def cluster(self, order: Order, version: str) -> Iterable[Part]:
        """Return the control plane, with accounts and what writes the kubeconfig."""

    def pool(self, order: Order, pool: Pool, version: str) -> Iterable[Part]:
        """Return a pool of nodes; its part is `Pool.part`."""

    def zones(self, order: Order) -> Iterable[Part]:
        """Return the zones ``zone-public`` and, for a private cluster, ``zone-private``."""

    def dns_rights(self, order: Order) -> Iterable[Part]:
        """Return cert-manager's right to write into the public zone, by workload identity."""

    def facts(self, order: Order) -> ClusterFacts:
        """Return what is known of the control plane."""

    def pool_version(self, order: Order, pool: Pool) -> tuple[str, str]:
        """Return the version that a pool runs, and the one that was asked for last."""

    def name_servers(self, order: Order) -> list[str]:
        """Return the name servers of the public zone."""

    def access(self, order: Order) -> Access:
        """Return how providers log in."""

    def chart_values(self, order: Order, chart: str) -> dict[str, Any]:
        """Return what a chart's values need in this cloud."""


def existing_policies(order: Order, facts: ClusterFacts) -> tuple[ManagementAction, ...]:
    """Return what may be done to an imported cluster: first it is only observed."""
    if order.mode == "observe":
        return OBSERVE
    return import_policies(facts.version, facts.asked_version, exists=True)


def cloud_of(name: str) -> Cloud | None:
    """Return the builders of a cloud; None if there is no folder for it."""
    if name not in {module.name for module in pkgutil.iter_modules(__path__) if module.ispkg}:
        return None
    return cast("Cloud", pkgutil.resolve_name(f"{__name__}.{name}"))
