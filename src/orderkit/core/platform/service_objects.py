"""
The objects that run Orderkit's service in a cluster: a layer of the delivery tree.

Two replicas read platform.yaml and the files that it names from one folder, as Jobs do
(``core.portal.runner_job``). The service has a namespace of its own, because a portal may start
Jobs in theirs, and the Secret here holds the forge's token. ``scripts/chart.py`` makes the Helm
chart from the same objects. Pure.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Any
from urllib.parse import urlsplit

from ground.objects.kube_objects import APPLICATION, ARGOCD_NAMESPACE, Manifest
from orderkit.core.platform.mounted_settings import KUBECONFIG, mounted_settings
from orderkit.core.platform.service_access import ServiceInstall
from orderkit.core.platform.service_monitoring import monitoring
from orderkit.core.platform.settings import PlatformSettings
from orderkit.core.portal.runner_job import RunnerJob, image_of, manifest, pod
from yamlfiles import yaml11

NAMESPACE = NAME = "orderkit-service"
PORT = 7399
EVERY_ADDRESS = "0.0.0.0"  # noqa: S104 - of the Pod; network policies say who may connect
FOLDER_OF_LAYER = PurePosixPath("gitops", "service")
APPLICATION_FILE = PurePosixPath("gitops", "apps", "service.yaml")
WAVE = "55"
"""After the kits' kinds, which it watches; before the ledger, for which nobody waits."""
LABELS = {"app.kubernetes.io/name": NAME}
_RBAC = "rbac.authorization.k8s.io"
_MISSED = f"{NAME}-missed"
_HEAD = (
    "# Generated from spec.service.install of platform.yaml by `orderkit platform render`.\n"
    "# What is edited here is lost.\n"
)
_KUBECONFIG = """\
apiVersion: v1
kind: Config
current-context: cluster
contexts:
  - name: cluster
    context: {cluster: cluster, user: service}
clusters:
  - name: cluster
    cluster: {server: 'https://kubernetes.default.svc', certificate-authority: ca.crt}
users:
  - name: service
    user: {tokenFile: token}
"""


@dataclass(frozen=True, slots=True)
class ServiceParts:
    """What the objects differ in between installations."""

    install: ServiceInstall
    image: str
    platform_yaml: str
    host: str
    """The name under which browsers reach it."""
    notifications_namespace: str = ""
    """Empty: nobody is notified."""
    rules: Sequence[dict[str, Any]] = field(default_factory=tuple)
    """What the pack's kits let the service read."""


def service_parts(
    settings: PlatformSettings, rules: Sequence[dict[str, Any]]
) -> ServiceParts | None:
    """Return what platform.yaml says about the installed service; None: it is not installed."""
    install = settings.service.install
    if install is None:
        return None
    notifies = settings.notifications.uses_anything
    return ServiceParts(
        install,
        install.image or image_of(settings.registry),
        mounted_settings(settings)[0].to_yaml(),
        urlsplit(settings.service_address).hostname or "",
        settings.notifications.namespace if notifies else "",
        rules,
    )


def layer_files(parts: ServiceParts) -> dict[PurePosixPath, bytes]:
    """Return the files of the layer with its Application."""
    files = {
        FOLDER_OF_LAYER / f"{name}.yaml": objects
        for name, objects in service_objects(parts).items()
        if objects
    }
    files[APPLICATION_FILE] = [_application()]
    return {path: (_HEAD + yaml11.dump_all(objects)).encode() for path, objects in files.items()}


def service_objects(parts: ServiceParts) -> dict[str, list[Manifest]]:
    """Return the objects by the file that holds them."""
    return {
        "account": [*_namespaces(parts), _account()],
        "rights": rights(parts),
        "settings": [settings_map(parts)],
        "deployment": [_deployment(parts), _disruption_budget(), _service()],
        "route": route(parts),
        "network": _network(parts),
        "traces": [_way_to_collector(parts)] if parts.install.traces.namespace else [],
        "missed": [_missed(parts)],
        "monitoring": monitoring(NAMESPACE, LABELS, parts.install.metrics_secret)
        if parts.install.monitoring
        else [],
    }


def rights(parts: ServiceParts) -> list[Manifest]:
    """
    Return the roles of the service's account, and their bindings.

    ``tests/security/test_service_rights.py`` compares them with the requests of a running service.
    """
    objects = [
        *_granted(
            "Role",
            ARGOCD_NAMESPACE,
            [
                _rule("argoproj.io", ["applications"], "get", "list", "watch", "patch"),
                *_leases("orderkit-lease-sweep"),
            ],
        ),
        *_granted(
            "ClusterRole",
            "",
            [
                _rule("", ["events"], "list"),
                _rule(_RBAC, ["clusterrolebindings", "clusterroles"], "list"),
                *parts.rules,
            ],
        ),
    ]
    if parts.notifications_namespace:
        rules = [
            *_leases("orderkit-notifications"),
            # orderkit-notified-CHANNEL*: no rule can name them all
            _rule("", ["configmaps"], "get", "list", "create", "update"),
            {
                **_rule("", ["namespaces"], "get"),
                "resourceNames": [parts.notifications_namespace],
            },
        ]
        objects += _granted("Role", parts.notifications_namespace, rules)
    return objects


def settings_map(parts: ServiceParts) -> Manifest:
    """Return the ConfigMap with platform.yaml and the kubeconfig of the Pods' own token."""
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": _meta(),
        "data": {"platform.yaml": parts.platform_yaml, str(KUBECONFIG): _KUBECONFIG},
    }


def route(parts: ServiceParts) -> list[Manifest]:
    """Return the Ingress or the HTTPRoute, if the platform wants one."""
    chosen = parts.install.route
    if chosen.kind == "Ingress":
        return [_ingress(parts)]
    return [_http_route(parts)] if chosen.kind == "HTTPRoute" else []


def _meta(name: str = NAME, namespace: str = NAMESPACE) -> dict[str, Any]:
    place = {"namespace": namespace} if namespace else {}
    return {"name": name, **place, "labels": dict(LABELS)}


def _rule(group: str, resources: list[str], *verbs: str) -> dict[str, Any]:
    return {"apiGroups": [group], "resources": resources, "verbs": list(verbs)}


def _leases(name: str) -> list[dict[str, Any]]:
    """Let an election create its Lease, whose name no rule can hold a creation to, and keep it."""
    group = "coordination.k8s.io"
    kept = {**_rule(group, ["leases"], "get", "update"), "resourceNames": [name]}
    return [_rule(group, ["leases"], "create"), kept]


def _granted(kind: str, namespace: str, rules: list[dict[str, Any]]) -> list[Manifest]:
    role_kind = {"apiVersion": f"{_RBAC}/v1", "kind": kind}
    reference = {"apiGroup": _RBAC, "kind": kind, "name": NAME}
    subject = {"kind": "ServiceAccount", "name": NAME, "namespace": NAMESPACE}
    return [
        {**role_kind, "metadata": _meta(namespace=namespace), "rules": rules},
        {
            "apiVersion": f"{_RBAC}/v1",
            "kind": f"{kind}Binding",
            "metadata": _meta(namespace=namespace),
            "roleRef": reference,
            "subjects": [subject],
        },
    ]


def _namespaces(parts: ServiceParts) -> list[Manifest]:
    """Return the service's namespace, and the one in which it notes what was sent."""
    restricted = {"pod-security.kubernetes.io/enforce": "restricted"}
    names = dict.fromkeys((NAMESPACE, parts.notifications_namespace or NAMESPACE))
    return [
        {
            "apiVersion": "v1",
            "kind": "Namespace",
            "metadata": {
                "name": name,
                "labels": {**LABELS, **restricted} if name == NAMESPACE else restricted,
            },
        }
        for name in names
    ]


def _account() -> Manifest:
    return {
        "apiVersion": "v1",
        "kind": "ServiceAccount",
        "metadata": _meta(),
        "automountServiceAccountToken": False,
    }


def _job(parts: ServiceParts, arguments: list[str]) -> RunnerJob:
    return RunnerJob(_MISSED, parts.image, arguments, NAMESPACE, NAME, NAME, NAME)


def _pod(parts: ServiceParts, arguments: list[str]) -> dict[str, Any]:
    secrets, traces = parts.install.pull_secret, parts.install.traces
    spec = pod(_job(parts, arguments))
    environment = spec["containers"][0]["env"]
    if traces.endpoint:
        environment.append({"name": "OTEL_EXPORTER_OTLP_ENDPOINT", "value": traces.endpoint})
    if traces.endpoint and traces.headers_secret:
        # optional: without its Secret the service runs, and the collector refuses its traces
        key = {"name": traces.headers_secret, "key": "headers", "optional": True}
        value = {"secretKeyRef": key}
        environment.append({"name": "OTEL_EXPORTER_OTLP_HEADERS", "valueFrom": value})
    return {**spec, **({"imagePullSecrets": [{"name": secrets}]} if secrets else {})}


def _deployment(parts: ServiceParts) -> Manifest:
    arguments = [
        *("serve", f"--host={EVERY_ADDRESS}", f"--port={PORT}"),
        "--behind-tls",  # what leads here terminates it
        "--log-format=json",
    ]
    spec = _pod(parts, arguments)
    del spec["restartPolicy"]  # a Deployment takes no other policy than Always
    (container,) = spec["containers"]
    container |= {
        "ports": [{"name": "http", "containerPort": PORT}],
        "startupProbe": _probe("/healthz", period_s=2, failures=60),
        "livenessProbe": _probe("/healthz", period_s=10, failures=6),
        "readinessProbe": _probe("/readyz", period_s=5, failures=3),
        # until every proxy has forgotten the Pod; `sleep: {seconds: 8}` needs Kubernetes 1.30
        "lifecycle": {
            "preStop": {"exec": {"command": ["python3", "-c", "import time; time.sleep(8)"]}}
        },
        "resources": {
            "requests": {"cpu": "100m", "memory": "256Mi"},
            "limits": {"memory": "1Gi"},
        },
    }
    spec |= {
        "terminationGracePeriodSeconds": 60,
        "topologySpreadConstraints": [
            {
                "maxSkew": 1,
                "topologyKey": key,
                "whenUnsatisfiable": "ScheduleAnyway",
                "labelSelector": {"matchLabels": dict(LABELS)},
            }
            for key in ("topology.kubernetes.io/zone", "kubernetes.io/hostname")
        ],
    }
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": _meta(),
        "spec": {
            "replicas": parts.install.replicas,
            "revisionHistoryLimit": 3,
            "strategy": {
                "type": "RollingUpdate",
                "rollingUpdate": {"maxUnavailable": 0, "maxSurge": 1},
            },
            "selector": {"matchLabels": dict(LABELS)},
            "template": {"metadata": {"labels": dict(LABELS)}, "spec": spec},
        },
    }


def _probe(path: str, *, period_s: int, failures: int) -> dict[str, Any]:
    return {
        "httpGet": {"path": path, "port": "http"},
        "periodSeconds": period_s,
        "timeoutSeconds": 5,
        "failureThreshold": failures,
    }


def _disruption_budget() -> Manifest:
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": _meta(),
        # a node with the only Pod that is left has to be drainable: an outage is no reason to wait
        "spec": {
            "maxUnavailable": 1,
            "unhealthyPodEvictionPolicy": "AlwaysAllow",
            "selector": {"matchLabels": dict(LABELS)},
        },
    }


def _service() -> Manifest:
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": _meta(),
        "spec": {
            "selector": dict(LABELS),
            "ports": [{"name": "http", "port": 80, "targetPort": "http", "appProtocol": "http"}],
        },
    }


def _ingress(parts: ServiceParts) -> Manifest:
    chosen = parts.install.route
    backend = {"service": {"name": NAME, "port": {"name": "http"}}}
    entry = {
        "hosts": [parts.host],
        **({"secretName": chosen.tls_secret} if chosen.tls_secret else {}),
    }
    return {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "Ingress",
        "metadata": _meta(),
        "spec": {
            **({"ingressClassName": chosen.ingress_class} if chosen.ingress_class else {}),
            "tls": [entry],
            "rules": [
                {
                    "host": parts.host,
                    "http": {"paths": [{"path": "/", "pathType": "Prefix", "backend": backend}]},
                }
            ],
        },
    }


def _http_route(parts: ServiceParts) -> Manifest:
    namespace, _, name = parts.install.route.gateway.partition("/")
    return {
        "apiVersion": "gateway.networking.k8s.io/v1",
        "kind": "HTTPRoute",
        "metadata": _meta(),
        "spec": {
            "parentRefs": [{"name": name, "namespace": namespace}],
            "hostnames": [parts.host],
            "rules": [{"backendRefs": [{"name": NAME, "port": 80}]}],
        },
    }


def _network(parts: ServiceParts) -> list[Manifest]:
    names = {"key": "kubernetes.io/metadata.name", "operator": "In"}
    callers = {"matchExpressions": [{**names, "values": list(parts.install.callers)}]}
    dns = {"ports": [{"protocol": kind, "port": 53} for kind in ("UDP", "TCP")]}
    # forge, API server and portal are anywhere, but not where clouds serve metadata of nodes
    anywhere = [
        {"ipBlock": {"cidr": "0.0.0.0/0", "except": ["169.254.0.0/16"]}},
        {"ipBlock": {"cidr": "::/0", "except": ["fe80::/10"]}},
    ]
    tcp = {"to": anywhere, "ports": [{"protocol": "TCP", "port": 1, "endPort": 65535}]}
    policy = {"apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy"}
    return [
        {
            **policy,
            "metadata": _meta(),
            "spec": {
                "podSelector": {"matchLabels": dict(LABELS)},
                "policyTypes": ["Ingress", "Egress"],
                "ingress": [
                    {
                        "from": [{"namespaceSelector": callers}],
                        "ports": [{"protocol": "TCP", "port": "http"}],
                    }
                ],
                "egress": [dns, tcp],
            },
        },
        {
            **policy,
            "metadata": _meta(_MISSED),
            "spec": {
                "podSelector": {"matchLabels": {"app.kubernetes.io/name": "orderkit"}},
                "policyTypes": ["Ingress", "Egress"],
                "ingress": [],
                "egress": [dns, tcp],
            },
        },
    ]


def _way_to_collector(parts: ServiceParts) -> Manifest:
    """Let the Pods reach the collector: for some plug-ins, no Pod is in a block of addresses."""
    pods = {"key": "app.kubernetes.io/name", "operator": "In", "values": [NAME, "orderkit"]}
    there = {"matchLabels": {"kubernetes.io/metadata.name": parts.install.traces.namespace}}
    tcp = [{"protocol": "TCP", "port": 1, "endPort": 65535}]
    return {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": _meta(f"{NAME}-traces"),
        "spec": {
            "podSelector": {"matchExpressions": [pods]},
            "policyTypes": ["Egress"],
            "egress": [{"to": [{"namespaceSelector": there}], "ports": tcp}],
        },
    }


def _missed(parts: ServiceParts) -> Manifest:
    """Return the CronJob that plans and checks what no webhook reported."""
    job = manifest(_job(parts, ["platform", "webhook", "--missed"]))
    spec = job["spec"]
    spec["template"]["spec"] = _pod(parts, ["platform", "webhook", "--missed"])
    return {
        "apiVersion": "batch/v1",
        "kind": "CronJob",
        "metadata": _meta(_MISSED),
        "spec": {
            "schedule": "*/30 * * * *",
            "timeZone": "Etc/UTC",
            "concurrencyPolicy": "Forbid",
            "startingDeadlineSeconds": 300,
            "successfulJobsHistoryLimit": 1,
            "failedJobsHistoryLimit": 3,
            "jobTemplate": {"metadata": {"labels": job["metadata"]["labels"]}, "spec": spec},
        },
    }


def _application() -> Manifest:
    return {
        "apiVersion": APPLICATION.api_version,
        "kind": APPLICATION.kind,
        "metadata": {
            "name": "service",
            "namespace": ARGOCD_NAMESPACE,
            "labels": {"orderkit.dev/layer": "service"},
            "annotations": {"argocd.argoproj.io/sync-wave": WAVE},
        },
        "spec": {
            "project": "default",
            "source": {
                "repoURL": "__ORDERKIT_FORGE_URL__/__ORDERKIT_PACK_REPOSITORY__.git",
                "targetRevision": "main",
                "path": str(FOLDER_OF_LAYER),
                "directory": {"include": "*.{yaml,yml,json}"},
            },
            "destination": {"server": "https://kubernetes.default.svc", "namespace": NAMESPACE},
            "syncPolicy": {
                "automated": {"prune": True, "selfHeal": True},
                "syncOptions": ["ServerSideApply=true"],
                "retry": {
                    "limit": 12,
                    "backoff": {"duration": "1s", "factor": 2, "maxDuration": "3m"},
                },
            },
        },
    }
