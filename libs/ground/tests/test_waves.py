"""The order of a sync, as Argo CD has it."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ground.argocd.sync_rules import (
    SyncStep,
    apply_step,
    deletion_waves,
    prune_step,
    sync_options,
    sync_order,
    wave_of,
    waves,
)
from ground.objects.kube_objects import Manifest


def thing(
    kind: str, name: str, *, wave: object = None, namespace: str = "", **extra: Any
) -> Manifest:
    """A manifest of a core or, with a dot in `kind` (``Kind.group``), a custom kind."""
    plain, _, group = kind.partition(".")
    metadata: dict[str, Any] = {"name": name}
    if wave is not None:
        metadata["annotations"] = {"argocd.argoproj.io/sync-wave": wave}
    if namespace:
        metadata["namespace"] = namespace
    version = f"{group}/v1" if group else "v1"
    return {"apiVersion": version, "kind": plain, "metadata": metadata, **extra}


def definition(name: str, group: str, kind: str, *, wave: object = None) -> Manifest:
    spec = {"group": group, "names": {"kind": kind}}
    return thing("CustomResourceDefinition.apiextensions.k8s.io", name, wave=wave, spec=spec)


@dataclass(frozen=True)
class Case:
    reason: str
    wanted: list[Manifest]
    extra: list[Manifest]
    order: list[str]


CASES = [
    Case(
        "waves come first, negative ones before the default",
        [
            thing("ConfigMap", "a", wave="1"),
            thing("ConfigMap", "b"),
            thing("ConfigMap", "c", wave="-1"),
        ],
        [],
        ["-1 c", "0 b", "1 a"],
    ),
    Case(
        "a wave that is not a number is the default",
        [thing("ConfigMap", "a", wave="soon"), thing("ConfigMap", "b", wave="-1")],
        [],
        ["-1 b", "0 a"],
    ),
    Case(
        "inside a wave kinds have an order and names decide the rest",
        [
            thing("Deployment.apps", "a"),
            thing("ConfigMap", "z"),
            thing("ConfigMap", "b"),
            thing("Secret", "q"),
            thing("Namespace", "n"),
        ],
        [],
        ["0 n", "0 q", "0 b", "0 z", "0 a"],
    ),
    Case(
        "custom kinds come last, by name whatever their kind",
        [
            thing("Composition.apiextensions.crossplane.io", "a"),
            thing("CompositeResourceDefinition.apiextensions.crossplane.io", "b"),
            thing("APIService", "z"),
        ],
        [],
        ["0 z", "0 a", "0 b"],
    ),
    Case(
        "a namespace moves to the wave of what lives in it",
        [thing("ConfigMap", "a", wave="-5", namespace="home"), thing("Namespace", "home")],
        [],
        ["-5 home", "-5 a"],
    ),
    Case(
        "a definition moves to the wave of its first object",
        [
            thing("Car.shop.io", "beetle", wave="-2"),
            definition("cars.shop.io", "shop.io", "Car", wave="3"),
            definition("bikes.shop.io", "shop.io", "Bike"),
        ],
        [],
        ["-2 cars.shop.io", "-2 beetle", "0 bikes.shop.io"],
    ),
    Case(
        "prunes go backwards through the waves they have",
        [thing("ConfigMap", "stays", wave="2")],
        [thing("ConfigMap", f"p{wave}", wave=str(wave)) for wave in (1, 2, 9)],
        ["1 p9", "2 p2", "2 stays", "9 p1"],
    ),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.reason)
def test_order(case: Case) -> None:
    steps = [*map(apply_step, case.wanted), *map(prune_step, case.extra)]

    ordered = sync_order(steps)

    assert [f"{step.wave} {step.key.name}" for step in ordered] == case.order


def test_prune_last_comes_after_everything() -> None:
    gone = prune_step(thing("ConfigMap", "gone", wave="-3"))
    steps = [gone, apply_step(thing("ConfigMap", "a", wave="7"))]

    ordered = sync_order(steps, prune_last=[gone.key])

    assert [(step.wave, step.key.name) for step in ordered] == [(7, "a"), (8, "gone")]


def test_waves_are_groups_of_one_number() -> None:
    steps = sync_order(
        apply_step(thing("ConfigMap", n, wave=w)) for n, w in zip("abc", "112", strict=True)
    )

    assert [[step.key.name for step in group] for group in waves(steps)] == [["a", "b"], ["c"]]


def test_the_end_takes_the_highest_wave_first() -> None:
    live = [
        thing("ConfigMap", "a", wave="-1"),
        thing("ConfigMap", "b", wave="5"),
        thing("Secret", "c"),
    ]

    groups = deletion_waves(live)

    assert [[one["metadata"]["name"] for one in group] for group in groups] == [["b"], ["c"], ["a"]]


def test_sync_options_are_a_list_with_commas() -> None:
    manifest = thing("ConfigMap", "a")
    manifest["metadata"]["annotations"] = {
        "argocd.argoproj.io/sync-options": "Prune=false, Delete=false,"
    }

    assert sync_options(manifest) == {"Prune=false", "Delete=false"}
    assert wave_of(manifest) == 0


STEPS = st.lists(
    st.builds(
        lambda kind, name, wave, namespace, prune: (prune_step if prune else apply_step)(
            thing(kind, name, wave=str(wave), namespace="" if kind == "Namespace" else namespace)
        ),
        st.sampled_from(["Namespace", "ConfigMap", "Secret", "Car.shop.io"]),
        st.sampled_from(["a", "b", "c"]),
        st.integers(-2, 2),
        st.sampled_from(["", "a", "b"]),
        st.booleans(),
    ),
    max_size=12,
    unique_by=lambda step: step.key,
)


@given(STEPS, st.randoms(use_true_random=False))
def test_the_order_does_not_depend_on_the_order_of_reading(
    steps: list[SyncStep], shuffler: random.Random
) -> None:
    shuffled = list(steps)
    shuffler.shuffle(shuffled)

    ordered = sync_order(steps)

    assert sync_order(shuffled) == ordered
    assert sorted(step.key for step in ordered) == sorted(step.key for step in steps)


@given(STEPS)
def test_waves_never_go_back_and_a_namespace_precedes_its_content(steps: list[SyncStep]) -> None:
    ordered = sync_order(steps)

    assert [step.wave for step in ordered] == sorted(step.wave for step in ordered)
    places = {
        step.creates: n
        for n, step in enumerate(ordered)
        if step.creates is not None and not step.prune
    }
    for n, step in enumerate(ordered):
        home = places.get(("namespace", step.key.namespace))
        assert step.prune or home is None or home < n
