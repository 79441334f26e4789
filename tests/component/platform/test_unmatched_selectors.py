"""Selectors that match nothing: what they ask for, and what there is, from a live cluster."""

from __future__ import annotations

from typing import Any

import pytest

from ground.objects.kube_objects import Manifest
from orderkit.core.order.part_failures import GRACE_S
from orderkit.core.selector_words import what_there_is
from orderkit.flows.order.closer_look import closer_state, is_worth_a_look
from orderkit_standins.serve_platform import Running

GROUP = "batch/v1"
UID = "0c7f0f6e-5d0b-4c61-9a39-4f6a3f5ab0f0"
BY = {"apiVersion": "blog.opsbogus.dev/v1alpha1", "kind": "XGarage", "name": "g", "uid": UID}
NOTHING = "no resources matched selector"


def part(selector: dict[str, Any], reason: str, field: str = "cronJobName") -> Manifest:
    condition = {"type": "Synced", "status": "False", "reason": "ReconcileError", "message": reason}
    return {
        "apiVersion": GROUP,
        "kind": "Release",
        "metadata": {"name": "x", "ownerReferences": [{**BY, "controller": True}]},
        "spec": {"forProvider": {"places": [{f"{field}Selector": selector}]}},
        "status": {"conditions": [condition]},
    }


@pytest.fixture(scope="module")
def _job(platform: Running) -> None:
    pod = {"restartPolicy": "Never", "containers": [{"name": "a", "image": "b"}]}
    job = {
        "apiVersion": GROUP,
        "kind": "CronJob",
        "metadata": {"name": "cart-db", "namespace": "default", "labels": {"tier": "db"}},
        "spec": {"schedule": "0 0 1 1 *", "jobTemplate": {"spec": {"template": {"spec": pod}}}},
    }
    platform.platform.cluster.apply(job, owner="test")


@pytest.mark.usefixtures("_job")
@pytest.mark.parametrize(
    ("selector", "field", "told"),
    [
        (
            {"matchLabels": {"tier": "web"}},
            "cronJobName",
            "no CronJob has the labels tier=web; there is cart-db (tier=db)",
        ),
        (
            {"matchControllerRef": True},
            "cronJobNames",
            "no CronJob of the same XGarage is there; there is none at all",
        ),
        (
            {"matchLabels": {"tier": "web"}, "matchControllerRef": True},
            "subnetId",
            "subnetIdSelector asks for the labels tier=web, and for an object of the same XGarage",
        ),
    ],
)
def test_a_part_says_what_its_selector_asks_for(
    platform: Running, selector: dict[str, Any], field: str, told: str
) -> None:
    place = f"mg.Spec.ForProvider.Places[0].{field[:1].upper()}{field[1:]}"
    reason = f"cannot resolve references: {place}: {NOTHING}"

    state = closer_state(platform.platform.cluster, part(selector, reason, field))

    assert state.reason == f"{reason}: {told}"
    assert state.fails_from, f"it fails after {GRACE_S} s"
    assert is_worth_a_look(state)


def test_an_xr_says_which_compositions_there_are(platform: Running) -> None:
    text = "cannot select Composition: no compatible Compositions found"
    condition = {"type": "Synced", "status": "False", "reason": "ReconcileError", "message": text}
    xr = {
        "apiVersion": "blog.opsbogus.dev/v1alpha1",
        "kind": "XGarage",
        "metadata": {"name": "x"},
        "spec": {"crossplane": {"compositionSelector": {"matchLabels": {"cloud": "none"}}}},
        "status": {"conditions": [condition]},
    }

    state = closer_state(platform.platform.cluster, xr)

    assert state.reason.startswith(f"{text}: no Composition of XGarage has the labels cloud=none;")
    assert "there is xgarage-default (without labels)" in state.reason


def test_many_objects_are_named_as_crossplane_does() -> None:
    there = [{"metadata": {"name": f"s-{number}"}} for number in range(9)]

    assert what_there_is("Subnet", {"a": "b"}, there) == (
        "no Subnet has the labels a=b; there are s-0 (without labels), s-1 (without labels),"
        " s-2 (without labels), and 6 more"
    )
    assert what_there_is("Subnet", {}, []) == "no Subnet is there; there is none at all"
