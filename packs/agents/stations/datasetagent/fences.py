"""What surrounds an agent: its Namespace, who may talk to it, and what its Pods get by default."""

from __future__ import annotations

from typing import Any

from .agent import Agent

Manifest = dict[str, Any]


def namespace(agent: Agent) -> Manifest:
    """Return the agent's Namespace; what runs in it is held to Kubernetes' baseline."""
    labels = {**agent.labels, "pod-security.kubernetes.io/enforce": "baseline"}
    return {
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {"name": agent.namespace, "labels": labels},
    }


def network_policy(agent: Agent) -> Manifest:
    """
    Return who may talk to whom.

    In: the Namespace itself, the ingress controller and kagent. Out: the Namespace itself, names,
    kagent, and HTTPS, for the model and the buckets have no fixed addresses.
    """
    fellows: Manifest = {"podSelector": {}}
    kagent = _in_namespace(agent.settings.get("kagentNamespace", "kagent"))
    ingress = _in_namespace(agent.settings.get("ingressNamespace", "ingress-nginx"))
    return {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": agent.metadata("fence"),
        "spec": {
            "podSelector": {},
            "policyTypes": ["Ingress", "Egress"],
            "ingress": [{"from": [fellows, kagent, ingress]}],
            "egress": [
                {"to": [fellows, kagent]},
                {"ports": [{"port": 53, "protocol": p} for p in ("TCP", "UDP")]},
                {"ports": [{"port": 443, "protocol": "TCP"}]},
            ],
        },
    }


def _in_namespace(name: str) -> Manifest:
    return {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": name}}}


def defaults_policy(agent: Agent) -> Manifest:
    """Return Kyverno's policy: a container that asks for nothing gets modest bounds."""
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
    found = agent.metadata("default-resources")
    found["annotations"] = {"pod-policies.kyverno.io/autogen-controllers": "none"}
    return {
        "apiVersion": "kyverno.io/v1",
        "kind": "Policy",
        "metadata": found,
        "spec": {"rules": [rule]},
    }
