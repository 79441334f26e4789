"""
The cluster that a pack is delivered to, as platform.yaml describes it for rendering.

Which kind of platform it is, where Crossplane comes from, which Argo CD delivers, through which
mirrors packages are pulled and which optional providers are wanted. All of it has defaults, so
that a platform.yaml says only what is special. Read by ``core.platform.settings``; used by
``flows.install.pack_rendering`` and by bootstrap.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Literal

from orderkit.core.platform.baking import SAFE
from yamlfiles.documents import NAME

CROSSPLANE_ACCOUNT = "system:serviceaccount:crossplane-system:crossplane"
"""The user as which Crossplane writes, if its chart is installed as usual."""
ARGOCD_ACCOUNT = "system:serviceaccount:argocd:argocd-application-controller"
"""The user as which Argo CD's controller writes, if it is installed as usual."""
_ACCOUNT = "system:serviceaccount:[a-z0-9-]+:[a-z0-9.-]+"
_VERSION = r"[0-9]+\.[0-9]+\.[0-9]+[A-Za-z0-9.-]*"


def _text(pattern: str, way_out: str) -> dict[str, Any]:
    return {"type": "string", "pattern": f"^{pattern}$", "description": way_out}


_IMAGE = _text(SAFE, "give the beginning of image names, without a scheme")
SCHEMAS: dict[str, Any] = {
    "target": {"enum": ["embedded", "cluster", "idpbuilder"]},
    "crossplane": {
        "type": "object",
        "additionalProperties": False,
        "properties": {
            "install": {"enum": ["chart", "none"]},
            "chartRepository": _text(
                r"https?://[A-Za-z0-9._:/-]+", "give the address of a Helm repository"
            ),
            "version": _text(_VERSION, "write a chart's version in quotes, as '2.3.4'"),
            "account": _text(
                _ACCOUNT, f"name Crossplane's service account, as {CROSSPLANE_ACCOUNT}"
            ),
        },
        "if": {"properties": {"install": {"const": "chart"}}, "required": ["install"]},
        "then": {
            "required": ["chartRepository"],
            "description": "say where the chart is with chartRepository, or install: none",
        },
    },
    "argocd": {
        "type": "object",
        "additionalProperties": False,
        "properties": {
            "namespace": {
                "const": "argocd",
                "description": "admission policies and flows look for Applications there only",
            },
            "version": _text(
                r"v?[0-9]+\.[0-9]+(\.[0-9]+)?", "write Argo CD's release in quotes, as '3.6.3'"
            ),
            "tools": {
                "type": "array",
                "items": {"enum": ["helm", "jsonnet", "kustomize"]},
                "uniqueItems": True,
            },
            "account": _text(
                _ACCOUNT, f"name the controller's service account, as {ARGOCD_ACCOUNT}"
            ),
        },
    },
    "mirrors": {
        "type": "array",
        "items": {
            "type": "object",
            "additionalProperties": False,
            "required": ["prefix"],
            "minProperties": 2,
            "description": "give rewrite, pullSecret or both to a prefix",
            "properties": {"prefix": _IMAGE, "rewrite": _IMAGE, "pullSecret": NAME},
        },
    },
    "providers": {"type": "array", "items": NAME, "uniqueItems": True},
}
"""Optional keys below ``spec`` of platform.yaml."""


class PlatformTarget(StrEnum):
    """The kind of platform."""

    EMBEDDED = "embedded"
    """``orderkit up``: this process replaces Crossplane and Argo CD."""
    CLUSTER = "cluster"
    """A cluster that has Argo CD."""
    IDPBUILDER = "idpbuilder"
    """A cluster made by idpbuilder, which delivers Argo CD's settings itself."""


@dataclass(frozen=True, slots=True)
class CrossplaneSettings:
    """How Crossplane is installed; `version` None: the one that the pack pins."""

    install: Literal["chart", "none"] = "none"
    chart_repository: str = ""
    version: str | None = None
    account: str = CROSSPLANE_ACCOUNT
    """The user that admission policies let write what only Crossplane writes."""


@dataclass(frozen=True, slots=True)
class Mirror:
    """The mirror for packages whose name begins with `prefix`, and its credentials."""

    prefix: str
    rewrite: str = ""
    pull_secret: str = ""


@dataclass(frozen=True, slots=True)
class Installation:
    """The cluster a pack is delivered to."""

    target: PlatformTarget = PlatformTarget.CLUSTER
    crossplane: CrossplaneSettings = field(default_factory=CrossplaneSettings)
    argocd_version: str | None = None
    """What counts if Argo CD's workloads do not tell their release."""
    mirrors: tuple[Mirror, ...] = ()
    providers: tuple[str, ...] = ()
    """Folders of ``gitops/providers`` in addition to those of the pack."""
    argocd_tools: tuple[str, ...] = ()
    """Tools that stay switched on in Argo CD for Applications that are not Orderkit's."""
    argocd_account: str = ARGOCD_ACCOUNT
    """The user whose writes admission policies hold to what an order may deliver."""

    def to_spec(self) -> dict[str, Any]:
        """Return it as in platform.yaml, without defaults."""
        crossplane = {
            "install": self.crossplane.install,
            "chartRepository": self.crossplane.chart_repository,
            "version": self.crossplane.version,
        }
        if self.crossplane.account != CROSSPLANE_ACCOUNT:
            crossplane["account"] = self.crossplane.account
        argocd = {"version": self.argocd_version, "tools": list(self.argocd_tools)}
        if self.argocd_account != ARGOCD_ACCOUNT:
            argocd["account"] = self.argocd_account
        mirrors = [
            {"prefix": mirror.prefix, "rewrite": mirror.rewrite, "pullSecret": mirror.pull_secret}
            for mirror in self.mirrors
        ]
        spec = {
            "target": str(self.target) if self.target is not PlatformTarget.CLUSTER else None,
            "crossplane": _without_empty(crossplane)
            if self.crossplane != CrossplaneSettings()
            else None,
            "argocd": _without_empty(argocd),
            "mirrors": [_without_empty(mirror) for mirror in mirrors],
            "providers": list(self.providers),
        }
        return _without_empty(spec)


def read_installation(spec: Mapping[str, Any]) -> Installation:
    """Read the keys of `SCHEMAS` from a ``spec`` that they accept."""
    crossplane = spec.get("crossplane", {})
    return Installation(
        target=PlatformTarget(spec.get("target", PlatformTarget.CLUSTER)),
        crossplane=CrossplaneSettings(
            crossplane.get("install", "none"),
            crossplane.get("chartRepository", ""),
            crossplane.get("version"),
            crossplane.get("account", CROSSPLANE_ACCOUNT),
        ),
        argocd_version=spec.get("argocd", {}).get("version"),
        argocd_tools=tuple(spec.get("argocd", {}).get("tools", ())),
        argocd_account=spec.get("argocd", {}).get("account", ARGOCD_ACCOUNT),
        mirrors=tuple(
            Mirror(mirror["prefix"], mirror.get("rewrite", ""), mirror.get("pullSecret", ""))
            for mirror in spec.get("mirrors", ())
        ),
        providers=tuple(spec.get("providers", ())),
    )


def _without_empty(entries: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in entries.items() if value}
