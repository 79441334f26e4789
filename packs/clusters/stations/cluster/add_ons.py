"""
What runs in the cluster: provider configs that lead there, and charts with values built as data.

Repositories and versions of charts come from the layers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from orderkit.stations import (
    Chart,
    SecretKey,
    StationRequest,
    StationResponse,
    generated_password,
    provider_config,
    release,
    secret,
)

from .clouds import Cloud
from .order import CERT_MANAGER, Order
from .part import Part

HELM, KUBERNETES = "helm", "kubernetes"
_GRAFANA = "grafana"
_NAMESPACES = {"cert-manager": CERT_MANAGER[0]}


def provider_configs(order: Order, cloud: Cloud) -> Iterator[Part]:
    """Return a ProviderConfig of provider-helm and one of provider-kubernetes for this cluster."""
    access = cloud.access(order)
    credentials = SecretKey(order.kubeconfig_secret, "kubeconfig", order.namespace)
    for part, api_version in (
        (HELM, "helm.m.crossplane.io/v1beta1"),
        (KUBERNETES, "kubernetes.m.crossplane.io/v1alpha1"),
    ):
        config = provider_config(api_version, credentials, identity=access.identity)
        yield Part(part, config, (access.part,))


def add_ons(order: Order, cloud: Cloud, response: StationResponse) -> Iterator[Part]:
    """
    Return the charts that were ordered; ingress-nginx after cert-manager.

    They use the first pool only: Crossplane keeps a Usage as long as its user exists, so a pool
    that a chart uses cannot be taken out.
    """
    for name in filter(order.add_ons.__contains__, _VALUES):
        uses = [HELM, *(pool.part for pool in order.pools[:1])]
        first = name == "ingress-nginx" and "cert-manager" in order.add_ons
        after = ["release-cert-manager"] if first else []
        secret_values = {}
        if name == "monitoring":
            if not _want_grafana_password(order, response):
                continue
            key = SecretKey(order.parts.name(_GRAFANA), "password")
            secret_values = {"grafana.adminPassword": key}
            after.append(_GRAFANA)
        chart = order.settings.get("charts", dict)[name]
        manifest = release(
            Chart(chart["chart"], chart["repository"], chart["version"]),
            merged(_VALUES[name](order), cloud.chart_values(order, name)),
            namespace=_NAMESPACES.get(name, name),
            provider_config=order.parts.provider_config(HELM),
            secret_values=secret_values,
        )
        yield Part(f"release-{name}", manifest, tuple(uses), tuple(after))


def _want_grafana_password(order: Order, response: StationResponse) -> bool:
    """Want the Secret with Grafana's password; return whether there can be one by now."""
    request: StationRequest = order.parts.request
    password = generated_password(request, response, _GRAFANA)
    if password is None:
        return order.parts.exists(_GRAFANA)
    order.parts.want(_GRAFANA, secret({"password": password}), ready=order.parts.exists(_GRAFANA))
    return True


def _cert_manager(order: Order) -> dict[str, Any]:
    return {
        "crds": {"enabled": True},
        "prometheus": {"enabled": "monitoring" in order.add_ons},
        "serviceAccount": {"name": CERT_MANAGER[1]},
    }


def _ingress_nginx(order: Order) -> dict[str, Any]:
    return {
        "controller": {
            "replicaCount": order.settings.get("ingressReplicas", int),
            "metrics": {"enabled": "monitoring" in order.add_ons},
        }
    }


def _monitoring(order: Order) -> dict[str, Any]:
    retention = order.settings.get("monitoring.retention", str)
    return {
        "prometheus": {"prometheusSpec": {"retention": retention}},
        "grafana": {"enabled": True},
        "alertmanager": {"enabled": True},
    }


_VALUES: dict[str, Callable[[Order], dict[str, Any]]] = {  # in the order in which they come
    "cert-manager": _cert_manager,
    "ingress-nginx": _ingress_nginx,
    "monitoring": _monitoring,
}


def merged(values: Mapping[str, Any], overrides: Mapping[str, Any]) -> dict[str, Any]:
    """Return both maps as one; maps inside are merged, and `overrides` decides about the rest."""
    result = dict(values)
    for key, value in overrides.items():
        below = result.get(key)
        if isinstance(value, Mapping) and isinstance(below, Mapping):
            result[key] = merged(below, value)
        else:
            result[key] = value
    return result
