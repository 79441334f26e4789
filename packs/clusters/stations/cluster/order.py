"""
What an order asks for, in words that no cloud uses: the document's first layer.

Read from the XR and the merged layers. The builders below `clouds` translate it.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Any, Literal

from orderkit.stations import Parts, Settings

CERT_MANAGER = ("cert-manager", "cert-manager")
"""Namespace and service account of cert-manager, which gets rights in the cloud."""
_EXTERNAL_NAME = "crossplane.io/external-name"


@dataclass(frozen=True, slots=True)
class Pool:
    """A pool of nodes."""

    name: str
    machine: str
    """What the cloud calls its size."""
    min_nodes: int
    max_nodes: int
    exists: bool = False
    """It belongs to an imported cluster."""

    @property
    def part(self) -> str:
        """The logical name of the pool."""
        return f"pool-{self.name}"


@dataclass(frozen=True, slots=True)
class Order:
    """A cluster as ordered, with the settings that hold for it."""

    name: str
    cloud: str
    location: str
    """The region, as the cloud calls it."""
    private: bool
    version: str
    """The minor version of Kubernetes to end up with."""
    domain: str
    wants_zones: bool
    add_ons: tuple[str, ...]
    pools: tuple[Pool, ...]
    mode: Literal["none", "observe", "manage"]
    """``none``: a new cluster; else what to do with the one that exists."""
    existing_name: str
    settings: Settings
    parts: Parts

    @property
    def is_new(self) -> bool:
        """Whether network, DNS and cluster are made by this order."""
        return self.mode == "none"

    @property
    def has_public_zone(self) -> bool:
        """Whether a public zone is made."""
        return self.is_new and self.wants_zones and bool(self.domain)

    @property
    def has_private_zone(self) -> bool:
        """Whether a zone inside the network is made."""
        return self.has_public_zone and self.private

    @property
    def internal_domain(self) -> str:
        """The domain of the private zone."""
        return f"internal.{self.domain}"

    @property
    def needs_dns_rights(self) -> bool:
        """Whether cert-manager may write into the public zone."""
        return self.has_public_zone and "cert-manager" in self.add_ons

    @property
    def kubeconfig_secret(self) -> str:
        """The Secret with the kubeconfig, in the XR's namespace."""
        return self.parts.name("kubeconfig")

    @property
    def namespace(self) -> str:
        """The XR's namespace, where all parts are."""
        return str(self.parts.request.xr["metadata"]["namespace"])

    @property
    def project(self) -> str:
        """Google's project."""
        return self.settings.get("project", str)

    @property
    def authorized_networks(self) -> list[str]:
        """Networks that may reach the cluster's API; empty: all."""
        return self.settings.get("authorizedNetworks", list)

    def name_in_cloud(self, part: str, suffix: str = "", *, longest: int = 40) -> str:
        """
        Return a name in the account that ends in six characters of the order's identity.

        A provider takes over what has the name that it is given, and deletes it with its order.
        A name that the part has already stays.
        """
        return self._own_name(part, self.name, f"{suffix}-", longest)

    def pool_in_cloud(self, pool: Pool, *, longest: int = 40, joint: str = "-") -> str:
        """Return the name of a pool; a new one in an imported cluster gets one of its own."""
        if self.is_new or pool.exists:
            return pool.name
        return self._own_name(pool.part, pool.name, joint, longest)

    def _own_name(self, part: str, root: str, joint: str, longest: int) -> str:
        """Return the name that a part has; else as much of `root` as fits before the identity."""
        present = self.parts.observed(part, "metadata", "annotations", _EXTERNAL_NAME)
        meta = self.parts.request.xr["metadata"]
        texts = (str(meta.get(key) or "") for key in ("uid", "namespace", "name"))
        ending = joint + hashlib.sha256("/".join(texts).encode()).hexdigest()[:6]
        return str(present or root[: longest - len(ending)] + ending)

    def asked(self, part: str, field: str) -> str:
        """Return what an existing part asked its provider for last; empty: nothing."""
        return str(self.parts.observed(part, "spec", "forProvider", field) or "")

    def known(self, part: str, *path: str | int) -> Any:
        """Return a value that the cloud gave a part, or None as long as it is not known."""
        value = self.parts.observed(part, "status", "atProvider")
        for step in path:
            try:
                value = value[step]
            except (KeyError, IndexError, TypeError):
                return None
        return None if value == "" else value
