"""
The cluster that a pack is delivered to, as platform.yaml describes it for rendering.

Which kind of platform it is, where Crossplane comes from, which Argo CD delivers, through which
mirrors packages are pulled and which optional providers are wanted. All of it has defaults, so
that a platform.yaml says only what is special. Read by ``core.platform.settings``; used by
``flows.install.pack_rendering`` and by bootstrap.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Literal

from msgspec import Meta

from ground.shapes import StrictShape
from orderkit.core.documents import DocumentName
from orderkit.core.platform.baking import SAFE

CROSSPLANE_ACCOUNT = "system:serviceaccount:crossplane-system:crossplane"
"""The user as which Crossplane writes, if its chart is installed as usual."""
ARGOCD_ACCOUNT = "system:serviceaccount:argocd:argocd-application-controller"
"""The user as which Argo CD's controller writes, if it is installed as usual."""
_ACCOUNT = "system:serviceaccount:[a-z0-9-]+:[a-z0-9.-]+"
_VERSION = r"[0-9]+\.[0-9]+\.[0-9]+[A-Za-z0-9.-]*"


_Account = Annotated[
    str, Meta(pattern=f"^{_ACCOUNT}$", description=f"name a service account, as {ARGOCD_ACCOUNT}")
]
_Image = Annotated[
    str,
    Meta(
        pattern=f"^{SAFE}$",
        description="give the beginning of image names, without a scheme",
    ),
]
_UNIQUE = Meta(extra_json_schema={"uniqueItems": True})


class PlatformTarget(StrEnum):
    """The kind of platform."""

    EMBEDDED = "embedded"
    """``orderkit up``: this process replaces Crossplane and Argo CD."""
    CLUSTER = "cluster"
    """A cluster that has Argo CD."""
    IDPBUILDER = "idpbuilder"
    """A cluster made by idpbuilder, which delivers Argo CD's settings itself."""


class CrossplaneSettings(StrictShape, frozen=True):
    """How Crossplane is installed."""

    install: Literal["chart", "none"] = "none"
    chart_repository: Annotated[
        str,
        Meta(
            pattern=r"^https?://[A-Za-z0-9._:/-]+$",
            description="give the address of a Helm repository",
        ),
    ] = ""
    version: Annotated[
        str,
        Meta(pattern=f"^{_VERSION}$", description="write a chart's version in quotes, as '2.3.4'"),
    ] = ""
    """Empty: the one that the pack pins."""
    account: _Account = CROSSPLANE_ACCOUNT
    """The user that admission policies let write what only Crossplane writes."""


class ArgoCDSettings(StrictShape, frozen=True):
    """Which Argo CD delivers."""

    namespace: Annotated[
        Literal["argocd"],
        Meta(description="admission policies and flows look for Applications there only"),
    ] = "argocd"
    version: Annotated[
        str,
        Meta(
            pattern=r"^v?[0-9]+\.[0-9]+(\.[0-9]+)?$",
            description="write Argo CD's release in quotes, as '3.6.3'",
        ),
    ] = ""
    """What counts if Argo CD's workloads do not tell their release."""
    tools: Annotated[tuple[Literal["helm", "jsonnet", "kustomize"], ...], _UNIQUE] = ()
    """Tools that stay switched on for Applications that are not Orderkit's."""
    account: _Account = ARGOCD_ACCOUNT
    """The user whose writes admission policies hold to what an order may deliver."""


class Mirror(StrictShape, frozen=True):
    """The mirror for packages whose name begins with `prefix`, and its credentials."""

    prefix: _Image
    rewrite: _Image = ""
    pull_secret: DocumentName = ""


_CHART_HAS_A_SOURCE = {
    "if": {"properties": {"install": {"const": "chart"}}, "required": ["install"]},
    "then": {
        "required": ["chartRepository"],
        "description": "say where the chart is with chartRepository, or install: none",
    },
}
_DOES_SOMETHING = {
    "minProperties": 2,
    "description": "give rewrite, pullSecret or both to a prefix",
}


class Installation(StrictShape, frozen=True):
    """The cluster a pack is delivered to."""

    target: PlatformTarget = PlatformTarget.CLUSTER
    crossplane: Annotated[CrossplaneSettings, Meta(extra_json_schema=_CHART_HAS_A_SOURCE)] = (
        CrossplaneSettings()
    )
    argocd: ArgoCDSettings = ArgoCDSettings()
    mirrors: tuple[Annotated[Mirror, Meta(extra_json_schema=_DOES_SOMETHING)], ...] = ()
    providers: Annotated[tuple[DocumentName, ...], _UNIQUE] = ()
    """Folders of ``gitops/providers`` in addition to those of the pack."""
