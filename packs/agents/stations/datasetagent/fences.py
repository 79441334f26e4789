"""What encloses an agent: its Namespace, network policy, and the defaults of its Pods."""

from __future__ import annotations

from orderkit.stations import Manifest, manifest

from .agent import Agent


def namespace(agent: Agent) -> Manifest:
    """Return the agent's Namespace, which enforces Kubernetes' baseline on its Pods."""
    labels = {**agent.parts.labels, "pod-security.kubernetes.io/enforce": "baseline"}
    return manifest("v1", "Namespace", agent.namespace, labels=labels)


def network_policy(agent: Agent) -> Manifest:
    """
    Return which connections are allowed.

    In: from the Namespace itself, the ingress controller and kagent. Out: to the Namespace itself,
    kagent, DNS, and HTTPS anywhere, because the model and the buckets have no fixed addresses.
    """
    own_pods: Manifest = {"podSelector": {}}
    kagent = _in_namespace(agent.settings.get("kagentNamespace", "kagent"))
    ingress = _in_namespace(agent.settings.get("ingressNamespace", "ingress-nginx"))
    spec = {
        "podSelector": {},
        "policyTypes": ["Ingress", "Egress"],
        "ingress": [{"from": [own_pods, kagent, ingress]}],
        "egress": [
            {"to": [own_pods, kagent]},
            {"ports": [{"port": 53, "protocol": p} for p in ("TCP", "UDP")]},
            {"ports": [{"port": 443, "protocol": "TCP"}]},
        ],
    }
    return manifest("networking.k8s.io/v1", "NetworkPolicy", "fence", spec=spec)


def _in_namespace(name: str) -> Manifest:
    return {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": name}}}


def defaults_policy(_: Agent) -> Manifest:
    """Return Kyverno's policy: a container without requests or limits gets modest ones."""
    rule = {
        "name": "default-resources",
        "match": {"any": [{"resources": {"kinds": ["Pod"]}}]},
        "mutate": {
            "patchStrategicMerge": {
                "spec": {
                    "containers": [
                        {
                            "(name)": "*",
                            "resources": {
                                "requests": {"+(cpu)": "50m", "+(memory)": "128Mi"},
                                "limits": {"+(memory)": "512Mi"},
                            },
                        }
                    ]
                }
            }
        },
    }
    return manifest(
        "kyverno.io/v1",
        "Policy",
        "default-resources",
        annotations={"pod-policies.kyverno.io/autogen-controllers": "none"},
        spec={"rules": [rule]},
    )
