"""Hooks of Argo CD that a member pushes into an order, and what they would make outside of it."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import PurePosixPath
from typing import Any

import roguery
import yaml
from commands import Command
from rogues import XGARAGE

from ground.argocd.sync_rules import HELM_HOOK, HINT, HOOK, delete_hooks
from ground.errors import OrderkitError
from ground.names import CommitSha
from ground.objects.kube_objects import (
    CONFIG_MAP,
    CRD,
    Kind,
    Manifest,
    ObjectKey,
    annotations_of,
    dig,
    metadata,
)
from orderkit.core.order.ledger import OrderEntry, team_application
from orderkit.core.order.order_file import MANIFESTS
from orderkit.flows.argocd.refreshing import application_key, nudge, refresh
from orderkit.flows.end.destroying import destroy
from orderkit.flows.end.end_request import EndRequest
from orderkit.flows.order import order_damage
from orderkit.flows.order.order_report import list_orders
from orderkit.flows.platform import Platform, write_ledger
from orderkit.flows.repeating import until
from orderkit.ports.cluster import NoSuchKindError
from orderkit.ports.forge import FileChange, Operation

_WHILE_S = 8.0
"""How long it is watched that nothing happens: a refresh and a deletion take less than two."""
STEPS = ("marked", "emptying", "removing", "unregistering", "waiting")
"""When somebody pushes during an end: after each step, and again and again while it waits."""
MALLORY = "user:default/mallory"
BINDING = Kind("rbac.authorization.k8s.io", "v1", "ClusterRoleBinding")
ROLE = Kind("rbac.authorization.k8s.io", "v1", "Role")
ON_DELETION = (
    {HOOK: "PostDelete"},
    {HOOK: "PreDelete"},
    {HELM_HOOK: "post-delete"},
    {HELM_HOOK: "pre-delete"},
    {HOOK: "PreSync, PostDelete", HELM_HOOK: "pre-delete,post-delete"},
)
ALL: tuple[Mapping[str, str], ...] = (
    *ON_DELETION,
    *({HOOK: type_} for type_ in ("PreSync", "Sync", "PostSync", "SyncFail", "Skip", "Whatever")),
    *(
        {HELM_HOOK: type_}
        for type_ in (
            *("pre-install", "post-install", "pre-upgrade", "post-upgrade", "pre-rollback"),
            *("post-rollback", "test", "test-success", "crd-install"),
        )
    ),
)
_BODIES: Mapping[Kind, Mapping[str, Any]] = {
    BINDING: {
        "roleRef": {
            "apiGroup": "rbac.authorization.k8s.io",
            "kind": "ClusterRole",
            "name": "cluster-admin",
        },
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "mallory"}],
    },
    ROLE: {"rules": [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}]},
    CONFIG_MAP: {"data": {"taken": "over"}},
}


def outside(hooks: Sequence[Mapping[str, str]], mark: str) -> list[Manifest]:
    """Return objects outside an order, each kind with each hook. `mark` begins their names."""
    return [
        made
        for number, annotations in enumerate(hooks)
        for made in _objects(f"{mark}-{number}", annotations)
    ]


def _objects(name: str, annotations: Mapping[str, str]) -> Iterator[Manifest]:
    for kind, body in _BODIES.items():
        meta: dict[str, Any] = {"name": name, "annotations": dict(annotations)}
        if kind != BINDING:
            meta["namespace"] = "kube-system"
        yield {
            "apiVersion": kind.api_version,
            "kind": kind.kind,
            "metadata": meta,
            **copy.deepcopy(dict(body)),
        }
    plural = f"{name.replace('-', '')}s"
    yield {
        "apiVersion": CRD.api_version,
        "kind": CRD.kind,
        "metadata": {"name": f"{plural}.example.org", "annotations": dict(annotations)},
        "spec": {
            "group": "example.org",
            "scope": "Cluster",
            "names": {"kind": plural.capitalize(), "plural": plural},
            "versions": [
                {
                    "name": "v1",
                    "served": True,
                    "storage": True,
                    "schema": {"openAPIV3Schema": {"type": "object"}},
                }
            ],
        },
    }


def made_outside(platform: Platform, objects: Sequence[Manifest]) -> list[str]:
    """Return which of these objects exist."""
    found = []
    for key in map(ObjectKey.of, objects):
        with suppress(NoSuchKindError):
            if platform.cluster.get(key) is not None:
                found.append(str(key))
    return found


def push(platform: Platform, entry: OrderEntry, files: Mapping[str, str | None]) -> CommitSha:
    """Write, or remove, files beside an order's XR, as somebody who may push; Argo CD looks."""
    head = platform.forge.head(entry.repository)
    assert head is not None
    blobs = platform.forge.tree(entry.repository, head)
    changes = [
        FileChange(path, None if text is None else text.encode(), blobs.get(path))
        for name, text in files.items()
        if text is not None or MANIFESTS / name in blobs
        for path in (MANIFESTS / PurePosixPath(name),)
    ]
    operation = Operation(f"hooks-{head[:10]}", MALLORY, "by hand")
    commit = platform.forge.write(entry.repository, changes, operation).commit
    refresh(platform.cluster, entry.order)
    return commit


def push_objects(
    platform: Platform, entry: OrderEntry, objects: Sequence[Manifest], name: str = "hooks.yaml"
) -> CommitSha:
    return push(platform, entry, {name: yaml.safe_dump_all(objects)})


def push_in_spite(platform: Platform, entry: OrderEntry, objects: Sequence[Manifest]) -> None:
    """Push as long as that is possible: an end archives or deletes the repository."""
    with suppress(OrderkitError, AssertionError):
        push_objects(platform, entry, objects, f"more-{platform.clock.monotonic_s()}.yaml")


def await_application(
    platform: Platform, entry: OrderEntry, goal: str, commit: CommitSha, *, hooks: bool
) -> Manifest:
    """Wait until Argo CD has compared a commit, with or without hooks of a deletion."""
    found: Manifest = until(
        platform.clock,
        lambda: platform.cluster.get(application_key(entry.order)) or {},
        lambda live: (
            dig(live, "status", "sync", "revision") == commit and bool(delete_hooks(live)) is hooks
        ),
        timeout_s=120,
        goal=goal,
        why_not=lambda live: f"{metadata(live).get('finalizers')} {dig(live, 'status')}",
        on_look=lambda live: (
            None
            if dig(live, "status", "sync", "revision") == commit
            or "argocd.argoproj.io/refresh" in annotations_of(live)
            else refresh(platform.cluster, entry.order) and None
        ),
    )
    return found


# -- attacks, on any platform: nothing is made outside the order, and the order stays what it was

RULE = "and an order has no hooks"


def attack_live_order(platform: Platform, entry: OrderEntry, orderkit: Command) -> None:
    """Push every hook; every command tells it, and taking it back heals the order."""
    uid = _uid(platform, entry)
    objects = outside(ALL, "live")

    commit = push_objects(platform, entry, objects)
    await_application(platform, entry, "Argo CD sees the hooks", commit, hooks=True)
    report = order_damage.status(platform, entry.order).state
    listed = next(row for row in list_orders(platform) if row.entry == entry).state
    doctor = orderkit("doctor", "--json").json["findings"]
    healed = push(platform, entry, {"hooks.yaml": None})
    await_application(platform, entry, "Argo CD sees no hook any more", healed, hooks=False)

    assert (report.phase, listed.phase) == ("Failing", "Failing")
    assert RULE in report.reason
    assert RULE in listed.reason
    assert report.advice == listed.advice == HINT
    assert RULE in next(entry["detail"] for entry in doctor if entry["what"] == "orders")
    roguery.ready(platform, entry)
    assert (made_outside(platform, objects), _uid(platform, entry)) == ([], uid)


def attack_own_xr(platform: Platform, entry: OrderEntry, annotations: Mapping[str, str]) -> None:
    """Call the order's XR a hook, and bring a sync about: Argo CD replaces what a hook names."""
    uid = _uid(platform, entry)
    ((path, (data, _)),) = roguery.manifests(platform.forge, entry).items()
    xr = yaml.safe_load(data)
    hook = copy.deepcopy(xr)
    hook["metadata"].setdefault("annotations", {}).update(annotations)
    other = copy.deepcopy(xr)
    other["metadata"]["name"] = f"{entry.order}-x"

    files = {path.name: yaml.safe_dump(hook), "other.yaml": yaml.safe_dump(other)}
    commit = push(platform, entry, files)
    until(
        platform.clock,
        lambda: platform.cluster.get(application_key(entry.order)) or {},
        lambda live: (
            dig(live, "status", "sync", "revision") == commit
            and bool(dig(live, "status", "operationState", "retryCount"))
        ),
        timeout_s=120,
        goal="Argo CD tries the sync again",
        why_not=lambda live: str(dig(live, "status")),
        on_look=lambda live: (
            None
            if dig(live, "status", "sync", "revision") == commit
            else refresh(platform.cluster, entry.order) and None
        ),
    )
    report = order_damage.status(platform, entry.order).state
    seen = _uid(platform, entry)
    healed = push(platform, entry, {path.name: data.decode(), "other.yaml": None})
    nudge(platform.cluster, entry.order, healed)

    assert report.phase == "Failing"
    assert RULE in report.reason
    assert seen == uid
    roguery.ready(platform, entry)
    assert _uid(platform, entry) == uid


def attack_by_replacement(platform: Platform, entry: OrderEntry) -> None:
    """Have Argo CD replace the order's XR by force: it deletes, and makes it again."""
    uid = _uid(platform, entry)
    ((path, (data, _)),) = roguery.manifests(platform.forge, entry).items()
    forced = yaml.safe_load(data)
    options = {"argocd.argoproj.io/sync-options": "Force=true,Replace=true"}
    forced["metadata"].setdefault("annotations", {}).update(options)

    commit = push(platform, entry, {path.name: yaml.safe_dump(forced)})
    tried = until(
        platform.clock,
        lambda: platform.cluster.get(application_key(entry.order)) or {},
        lambda live: "Argo CD deletes nothing of it" in str(dig(live, "status", "operationState")),
        timeout_s=120,
        goal="the deletion is refused",
        why_not=lambda live: str(dig(live, "status")),
    )
    seen = _uid(platform, entry)
    report = order_damage.status(platform, entry.order).state
    healed = push(platform, entry, {path.name: data.decode()})
    nudge(platform.cluster, entry.order, healed)

    assert dig(tried, "status", "sync", "revision") == commit
    assert seen == uid
    assert report.phase != "Ready"
    assert "Force=true steers Argo CD" in report.reason
    roguery.ready(platform, entry)
    assert _uid(platform, entry) == uid


def attack_deleted_application(
    platform: Platform, entry: OrderEntry, annotations: Mapping[str, str]
) -> None:
    """Delete the Application by hand while there are hooks; take them out; all is as before."""
    uid = _uid(platform, entry)
    objects = outside([annotations], "deleted")
    commit = push_objects(platform, entry, objects)
    await_application(platform, entry, "Argo CD sees the hooks", commit, hooks=True)

    platform.cluster.delete(application_key(entry.order))
    platform.clock.sleep(_WHILE_S)
    seen = made_outside(platform, objects)
    healed = push(platform, entry, {"hooks.yaml": None})
    await_application(platform, entry, "the Application is back", healed, hooks=False)

    assert (seen, made_outside(platform, objects)) == ([], [])
    roguery.ready(platform, entry)
    assert _uid(platform, entry) == uid


def attack_removed_entry(platform: Platform, entry: OrderEntry) -> None:
    """Remove the order from the ledger while there are hooks: it lives on, and nothing runs."""
    uid = _uid(platform, entry)
    objects = outside(ON_DELETION, "removed")
    commit = push_objects(platform, entry, objects)
    await_application(platform, entry, "Argo CD sees the hooks", commit, hooks=True)

    operation = Operation(f"lost-{entry.order}", MALLORY, "lost")
    write_ledger(platform, {entry.application_path: None}, operation)
    refresh(platform.cluster, team_application(entry.team))
    platform.clock.sleep(_WHILE_S)

    assert made_outside(platform, objects) == []
    assert _uid(platform, entry) == uid


def attack_end(
    platform: Platform, entry: OrderEntry, *, before: bool, steps: Sequence[str], refreshes: bool
) -> None:
    """End an order whose repository has hooks, or gets some at each of these steps."""
    objects = outside(ON_DELETION, "end")
    if before:
        commit = push_objects(platform, entry, objects)
        await_application(platform, entry, "Argo CD sees the hooks", commit, hooks=True)
    pushes = 0

    def push_again(moment: str) -> None:
        nonlocal pushes
        if moment in steps:
            push_in_spite(platform, entry, objects)
            pushes += 1
        if moment in steps and refreshes:
            refresh(platform.cluster, entry.order)

    request = EndRequest(entry.order, MALLORY, timeout_s=120.0)
    ended = destroy(
        platform,
        request,
        on_step=lambda step, _: push_again(step),
        on_wait=lambda _: push_again("waiting"),
    )

    assert ended.changed
    assert bool(pushes) is bool(steps)
    assert platform.cluster.get(application_key(entry.order)) is None
    assert platform.cluster.get(ObjectKey(XGARAGE, entry.order)) is None
    assert made_outside(platform, objects) == []


def _uid(platform: Platform, entry: OrderEntry) -> object:
    return metadata(platform.cluster.get(ObjectKey(XGARAGE, entry.order)) or {}).get("uid")
