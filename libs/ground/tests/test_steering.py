"""Annotations with which an object steers Argo CD, and the hooks that an order does not have."""

from __future__ import annotations

from typing import Any

import pytest

from ground.argocd.sync_rules import (
    FINALIZERS,
    HELM_HOOK,
    HOOK,
    delete_hooks,
    found_hooks,
    hook_annotation,
    hook_refusal,
    steering_annotations,
)
from ground.objects.kube_objects import Manifest

OPTIONS = "argocd.argoproj.io/sync-options"
COMPARE = "argocd.argoproj.io/compare-options"
WAVE = "argocd.argoproj.io/sync-wave"


def thing(annotations: Any, **more: Any) -> Manifest:
    metadata = {"name": "a", "annotations": annotations, **more}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata}


@pytest.mark.parametrize(
    ("annotations", "found", "reason"),
    [
        (None, [], "there are none"),
        ("text", [], "the API server refuses annotations that are no map"),
        ({"example.org/x": "Force=true"}, [], "another program's"),
        ({OPTIONS: "Force=true"}, [("Force=true", True)], "it deletes the object"),
        (
            {OPTIONS: "Prune=false, Replace=true"},
            [("Prune=false", False), ("Replace=true", True)],
            "each option counts",
        ),
        ({OPTIONS: "ServerSideApply=true"}, [("ServerSideApply=true", False)], "no known option"),
        ({COMPARE: "a, b"}, [("a, b", False)], "only sync-options are a list"),
        ({WAVE: ""}, [("", False)], "the mere presence counts"),
        ({OPTIONS: "x" * 81}, [("x" * 79 + "…", False)], "a long value is cut"),
    ],
)
def test_what_steers_argo_cd_is_found(
    annotations: Any, found: list[tuple[str, bool]], reason: str
) -> None:
    steering = list(steering_annotations(thing(annotations)))

    assert [(one.value, one.is_dangerous) for one in steering] == found, reason


def test_what_argo_cd_does_is_told_with_how_to_stop_it() -> None:
    prune, own = steering_annotations(thing({OPTIONS: "Prune=false,Own=true"}))

    assert str(prune) == (
        f"{OPTIONS}: Prune=false steers Argo CD: Argo CD does not prune the object, so the end of"
        " its order waits"
    )
    assert own.effect == "Argo CD syncs the object otherwise than those of other orders"
    assert own.hint == f"take {OPTIONS} out of the annotations; commit and push"


@pytest.mark.parametrize(
    ("annotations", "told"),
    [
        ({HOOK: "PreSync"}, f"{HOOK}: PreSync"),
        ({HELM_HOOK: ""}, f"{HELM_HOOK}: "),
        ({HELM_HOOK: "test", HOOK: "Skip"}, f"{HOOK}: Skip"),
        ({HOOK: "x" * 99}, f"{HOOK}: " + "x" * (79 - len(f"{HOOK}: ")) + "…"),
        ({f"{HOOK}-delete-policy": "HookSucceeded"}, ""),
        ("text", ""),
        (None, ""),
    ],
)
def test_a_hook_is_known_by_its_annotation(annotations: Any, told: str) -> None:
    pod = thing(annotations)
    refused = f"Pod a is a hook of Argo CD ({told.strip()}), and an order has no hooks"

    assert hook_annotation(pod) == told.strip()
    assert hook_refusal(pod) == (refused if told else "")


def test_a_hook_without_a_name_is_refused_by_its_kind() -> None:
    assert hook_refusal(thing({HOOK: "Sync"}, name=None)).startswith("Pod is a hook of Argo CD")


@pytest.mark.parametrize(
    ("finalizers", "types"),
    [
        (None, []),
        (["resources-finalizer.argocd.argoproj.io"], []),
        ([FINALIZERS["PreDelete"]], ["PreDelete"]),
        ([f"{FINALIZERS['PostDelete']}/cleanup"], ["PostDelete"]),
        ([FINALIZERS["PostDelete"], FINALIZERS["PreDelete"]], ["PreDelete", "PostDelete"]),
    ],
)
def test_hooks_of_a_deletion_are_known_by_finalizers(
    finalizers: list[str] | None, types: list[str]
) -> None:
    application = thing({}, finalizers=finalizers)
    told = f"manifests/ holds a hook of Argo CD ({', '.join(types)}), and an order has no hooks"

    assert delete_hooks(application) == types
    assert found_hooks(application) == (told if types else "")
