"""
Why a part fails that does not say it itself, and texts without the values of Secrets.

`closer_state` finds the reason. A StatefulSet, a claim and an XR whose objects the API server
refused give their reason in events only, and a workload's reason may be its Pods'. Whoever may not
read events or Pods sees less.

`in_words` says what a selector asks for that matches nothing, and what there is instead. Crossplane
and its providers only write that nothing matched. `in_words` only reads; what may not be read is
left out.

`without_secrets` keeps the values of Secrets out of what stations and providers say about an order.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any

from ground.errors import AccessError
from ground.objects.kube_objects import (
    CLUSTER_SCOPED_HOME,
    COMPOSITION,
    EVENT,
    Kind,
    Manifest,
    controller,
    dig,
    metadata,
)
from orderkit.core.order.order_state import OrderState
from orderkit.core.order.order_view import PartState
from orderkit.core.order.part_failures import (
    UNSYNCED,
    PartFailure,
    event_failure,
    part_failure,
    part_state,
)
from orderkit.core.selector_words import NO_COMPOSITION, labels_text, what_there_is
from orderkit.flows.composing.on_demand import order_secrets
from orderkit.flows.platform import Platform
from orderkit.ports.cluster import Cluster, NoSuchKindError

CROSSPLANES_OWN = ("Unready resources: ", "Unsynced resources: ")
"""How texts begin that no station wrote, and that most orders have for a while."""


def without_secrets(platform: Platform, xr: Manifest | None, state: OrderState) -> OrderState:
    """Return an order's state without the values of its Secrets in the reason."""
    messages = {entry.get("message") for entry in dig(xr, "status", "conditions") or ()}
    if xr is None or state.reason not in messages or state.reason.startswith(CROSSPLANES_OWN):
        return state
    return replace(state, reason=order_secrets(platform, xr).redact(state.reason))


_REFERENTS = re.compile(
    r"mg\.Spec\.ForProvider\.(?:[\w\[\]]+\.)*(\w+).*: no resources matched selector"
)
_VALUE_OF = re.compile(r"(?:Ids?|Arns?|Names?|Ref|Links?)\Z")


def is_unmatched(reason: str) -> bool:
    """Say whether a reason is that a selector matches nothing."""
    return NO_COMPOSITION in reason or _REFERENTS.search(reason) is not None


def in_words(cluster: Cluster, manifest: Manifest, reason: str) -> str:
    """Return the reason, with what the selector asks for and what there is."""
    with suppress(AccessError, NoSuchKindError):
        if NO_COMPOSITION in reason:
            return f"{reason}: {_of_compositions(cluster, manifest)}"
    if found := _REFERENTS.search(reason):
        for stem, selector in _selectors(dig(manifest, "spec", default={})):
            if found[1].lower() in (stem.lower(), f"{stem}s".lower()):
                return f"{reason}: {_of_referents(cluster, manifest, stem, selector)}"
    return reason


def _of_compositions(cluster: Cluster, xr: Manifest) -> str:
    kind = Kind.of(xr)
    selector = dig(xr, "spec", "crossplane", "compositionSelector", default=None) or dig(
        xr, "spec", "compositionSelector", default={}
    )
    wanted = {"apiVersion": kind.api_version, "kind": kind.kind}
    candidates = [
        each
        for each in cluster.list(COMPOSITION).items
        if dig(each, "spec", "compositeTypeRef", default=None) == wanted
    ]
    labels = dig(selector, "matchLabels", default=None) or {}
    return what_there_is(f"Composition of {kind.kind}", labels, candidates)


def _selectors(value: Any) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield the selectors of a managed resource, each with the field that it fills."""
    if isinstance(value, list):
        for entry in value:
            yield from _selectors(entry)
    elif isinstance(value, dict):
        for name, inner in value.items():
            if name.endswith("Selector") and isinstance(inner, dict):
                yield name.removesuffix("Selector"), inner
            else:
                yield from _selectors(inner)


def _of_referents(
    cluster: Cluster, managed: Manifest, stem: str, selector: Mapping[str, Any]
) -> str:
    labels = dig(selector, "matchLabels", default=None) or {}
    own = controller(managed) if selector.get("matchControllerRef") else None
    whose = f" of the same {own.get('kind')}" if own else ""
    name = _VALUE_OF.sub("", stem)
    # of kind Subnet, for example, or VPC
    for word in (name[:1].upper() + name[1:], name.upper()):
        kind = Kind(Kind.of(managed).group, Kind.of(managed).version, word)
        with suppress(AccessError, NoSuchKindError):
            candidates = [
                each
                for each in cluster.list(kind).items
                if own is None or (controller(each) or {}).get("uid") == own.get("uid")
            ]
            return what_there_is(word + whose, labels, candidates)
    asked = f"the labels {labels_text(labels)}" if labels else "no labels"
    return f"{stem}Selector asks for {asked}{whose and ', and for an object' + whose}"


POD = Kind("", "v1", "Pod")
_WORKLOADS = {
    ("apps", "Deployment"): ("readyReplicas", "replicas"),
    ("apps", "StatefulSet"): ("readyReplicas", "replicas"),
    ("apps", "ReplicaSet"): ("readyReplicas", "replicas"),
    ("apps", "DaemonSet"): ("numberReady", "desiredNumberScheduled"),
}
"""Kinds whose Pods explain them: how many are ready, and how many there are to be."""
_SILENT = frozenset({*_WORKLOADS, ("", "PersistentVolumeClaim"), ("batch", "Job")})


def closer_state(cluster: Cluster, manifest: Manifest) -> PartState:
    """Return the state of an object, with the reason that only its events or its Pods have."""
    state = part_state(manifest)
    if metadata(manifest).get("deletionTimestamp"):
        return state
    if is_unmatched(state.reason):
        return replace(state, reason=in_words(cluster, manifest, state.reason))
    is_unsynced = state.reason.startswith(UNSYNCED)
    if is_unsynced or (not state.fails_from and _is_silent(manifest)):
        for failure in _hidden(cluster, manifest, is_unsynced=is_unsynced):
            return replace(state, reason=failure.sentence, fails_from=failure.counts_from)
    return state


def is_worth_a_look(part: PartState) -> bool:
    """Say whether events or Pods may tell more about a part than its own state does."""
    kind = (part.key.kind.group, part.key.kind.kind)
    if is_unmatched(part.reason):
        return True
    return part.reason.startswith(UNSYNCED) or (not part.fails_from and kind in _SILENT)


def _is_silent(manifest: Manifest) -> bool:
    """Say whether an object is unready without a reason of its own."""
    kind, status = Kind.of(manifest), manifest.get("status") or {}
    if (kind.group, kind.kind) in _WORKLOADS:
        ready, wanted = _WORKLOADS[kind.group, kind.kind]
        default = 1 if wanted == "replicas" else 0
        spec = dig(manifest, "spec", wanted, default=default)
        total = spec if wanted == "replicas" else status.get(wanted, 0)
        return bool(status.get(ready, 0) < total)
    if (kind.group, kind.kind) == ("", "PersistentVolumeClaim"):
        return status.get("phase") == "Pending"
    is_job = (kind.group, kind.kind) == ("batch", "Job")
    return is_job and not status.get("succeeded") and not status.get("completionTime")


def _hidden(cluster: Cluster, manifest: Manifest, *, is_unsynced: bool) -> Iterator[PartFailure]:
    with suppress(AccessError, NoSuchKindError):
        yield from _of_events(cluster, manifest)
    if not is_unsynced:
        with suppress(AccessError, NoSuchKindError):
            yield from _of_pods(cluster, manifest)


def _of_events(cluster: Cluster, manifest: Manifest) -> Iterator[PartFailure]:
    meta = metadata(manifest)
    home = meta.get("namespace") or CLUSTER_SCOPED_HOME
    events = [
        event
        for event in cluster.list(EVENT, namespace=home).items
        if dig(event, "involvedObject", "uid") == meta.get("uid")
    ]
    if failure := event_failure(events):
        yield failure


def _of_pods(cluster: Cluster, manifest: Manifest) -> Iterator[PartFailure]:
    labels: Any = dig(manifest, "spec", "selector", "matchLabels")
    if isinstance(labels, dict) and labels:
        home = metadata(manifest).get("namespace", "")
        pods = cluster.list(POD, namespace=home, labels=labels).items
        yield from filter(None, map(part_failure, pods))
