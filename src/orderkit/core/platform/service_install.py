"""``spec.service.install`` of platform.yaml: how the service is installed in the cluster."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta

from ground.shapes import StrictShape
from orderkit.core.documents import DocumentName
from orderkit.core.platform.baking import SAFE

_NAME = "[a-z0-9]([-a-z0-9.]*[a-z0-9])?"
_Name = Annotated[str, Meta(pattern=f"^{_NAME}$")]
_MaybeName = Annotated[str, Meta(pattern=f"^({_NAME})?$")]


class ServiceRoute(StrictShape, frozen=True):
    """How requests from outside of the cluster reach the service."""

    kind: Literal["Ingress", "HTTPRoute", "none"] = "Ingress"
    ingress_class: _MaybeName = ""
    """Empty: the cluster's default class."""
    tls_secret: _MaybeName = ""
    """The Secret with the certificate, in the service's namespace; empty: the controller's own."""
    gateway: Annotated[str, Meta(pattern=r"^([a-z0-9-]+/[a-z0-9.-]+)?$")] = ""
    """NAMESPACE/NAME of the Gateway that an HTTPRoute attaches to."""


class ServiceTraces(StrictShape, frozen=True):
    """Where traces of the service go."""

    endpoint: Annotated[
        str,
        Meta(
            pattern=r"^(https?://[A-Za-z0-9\[][A-Za-z0-9.:\]-]*(/[A-Za-z0-9._~-]+)*/?)?$",
            description="write where OTLP over HTTP is taken, as http://collector.tracing:4318",
        ),
    ] = ""
    """Empty: nothing is recorded."""
    namespace: _MaybeName = ""
    """The collector's, if a network policy has to name it: for some, no Pod is an address."""


class ServiceInstall(StrictShape, frozen=True):
    """How the service is installed in the cluster."""

    callers: Annotated[
        tuple[DocumentName, ...],
        Meta(
            min_length=1,
            description="name the namespaces that may connect, as [ingress-nginx, backstage]",
        ),
    ]
    """Namespaces whose Pods may connect."""
    image: Annotated[str, Meta(pattern=rf"^({SAFE}(@sha256:[0-9a-f]{{64}})?)?$")] = ""
    """Empty: the image of this release in the platform's registry."""
    pull_secret: _MaybeName = ""
    replicas: Annotated[int, Meta(ge=1, le=20)] = 2
    route: ServiceRoute = ServiceRoute()
    monitoring: bool = False
    """Deliver the ServiceMonitor, the alerts and the dashboard."""
    metrics_secret: _Name = "orderkit-metrics"  # noqa: S105 - an object's name
    """The Secret whose entry ``token`` may observe, for Prometheus."""
    traces: ServiceTraces = ServiceTraces()
