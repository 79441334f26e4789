"""A living XR as its author would have written it."""

from __future__ import annotations

from typing import Any

from orderkit.core.export import authored

LIVING: dict[str, Any] = {
    "apiVersion": "example.org/v1",
    "kind": "XDisk",
    "metadata": {
        "name": "disk-a",
        "namespace": "team-a",
        "uid": "1",
        "resourceVersion": "7",
        "generation": 3,
        "creationTimestamp": "2026-01-01T00:00:00Z",
        "managedFields": [{"manager": "kubectl"}],
        "finalizers": ["composite.apiextensions.crossplane.io"],
        "ownerReferences": [{"kind": "Claim"}],
        "labels": {
            "crossplane.io/composite": "disk-a",
            "app.kubernetes.io/instance": "old-app",
            "tier": "gold",
        },
        "annotations": {
            "kubectl.kubernetes.io/last-applied-configuration": "{}",
            "argocd.argoproj.io/tracking-id": "x:y",
            "rbac.crossplane.io/x": "1",
            "example.org/crossplane.io": "mine",
        },
    },
    "spec": {
        "sizeGb": 3,
        "tags": [],
        "resourceRefs": [{"kind": "ConfigMap"}],
        "compositionRef": {"name": "legacy"},
        "crossplane": {
            "compositionRef": {"name": "xdisk-fast"},
            "compositionRevisionRef": {"name": "xdisk-fast-1"},
            "compositionUpdatePolicy": "Automatic",
            "resourceRefs": [],
        },
    },
    "status": {"conditions": []},
}


def test_only_what_a_person_chose_is_left() -> None:
    assert authored(LIVING) == {
        "apiVersion": "example.org/v1",
        "kind": "XDisk",
        "metadata": {
            "name": "disk-a",
            "namespace": "team-a",
            "labels": {"tier": "gold"},
            "annotations": {"example.org/crossplane.io": "mine"},
        },
        "spec": {
            "sizeGb": 3,
            "tags": [],
            "compositionRef": {"name": "legacy"},
            "crossplane": {"compositionRef": {"name": "xdisk-fast"}},
        },
    }


def test_crossplanes_part_goes_when_nothing_in_it_was_chosen() -> None:
    xr = {**LIVING, "spec": {"crossplane": {"resourceRefs": []}}}

    assert authored(xr)["spec"] == {}


def test_the_living_object_is_left_alone() -> None:
    before = repr(LIVING)

    authored(LIVING)

    assert repr(LIVING) == before
