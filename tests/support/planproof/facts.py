"""What orders find when they come: the registry of datasets, and agents that exist already."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path

import yaml

from ground.objects.kube_objects import Manifest
from planproof.grounds import AGENTS, Ground
from planproof.orders import Order, datasets

_TARGETS = ("planner", "worker", "third")


def prepare(ground: Ground, orders: Sequence[Order]) -> None:
    """Put there what the orders rely on, as a platform and its teams would."""
    definition: Path = AGENTS / "gitops/apis/dataset/definition.yaml"
    ground.establish(yaml.safe_load(definition.read_text()))
    for record, status in datasets():
        ground.apply(record)
        ground.cluster.apply(status, owner="dataset-watcher", status=True)
    for order in orders:
        if order.namespace:
            meta = {"name": order.namespace}
            ground.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": meta})
            for name in _TARGETS:
                ground.apply(_deployment(name, order.namespace))


def spend(ground: Ground, order: Order, share: Decimal) -> None:
    """Write down what an agent has spent, as the spend meter would: a share of its budget."""
    ground.apply(_record(order) | {"data": _measured(order, share)})


def forget(ground: Ground, order: Order) -> None:
    """Lose what the spend meter wrote."""
    ground.delete(_record(order))


def _record(order: Order) -> Manifest:
    meta = {"name": f"spend-{order.name}", "namespace": f"agent-{order.name}"}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta}


def _measured(order: Order, share: Decimal) -> dict[str, str]:
    spent = (Decimal(str(order.xr["spec"]["budgetUsd"])) * share).quantize(Decimal("0.0001"))
    return {"spentUsd": f"{spent:f}", "windowStart": "2026-01-01T00:00:00Z", "measured": "true"}


def _deployment(name: str, namespace: str) -> Manifest:
    labels = {"app": name}
    container = {"name": "agent", "image": "example.org/agent:1"}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": {"containers": [container]}},
        },
    }
