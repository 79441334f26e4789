"""
Wait until a layer of the platform is ready at a commit of the pack repository.

Ready is: the commit, or a later one that contains it, is applied, and the layer's Application is
healthy.
"""

from __future__ import annotations

from ground.argocd.delivery_obstacles import pinned
from ground.argocd.health import Health, HealthStatus, health_of
from ground.errors import IncompleteError
from ground.names import CommitSha
from ground.objects.kube_objects import Kind, Manifest, ObjectKey, dig
from orderkit.core.order import order_state
from orderkit.core.order.order_state import short
from orderkit.flows.argocd.refreshing import (
    Ancestry,
    StuckOperationEnder,
    application_key,
    end_older_operation,
    nudge,
)
from orderkit.flows.platform import Platform, get_object
from orderkit.flows.repeating import until
from orderkit.ports.cluster import Cluster

ROOT_NAME = "root"
"""The Application that delivers the layers' Applications."""


def await_layer(platform: Platform, name: str, commit: CommitSha | None, timeout_s: float) -> None:
    """
    Wait until a layer is ready; at a commit, if one is given.

    Raises:
        IncompleteError: It timed out, or Argo CD gave the commit up; the message says why.
    """
    if commit is not None:
        nudge(platform.cluster, ROOT_NAME, commit)
        nudge(platform.cluster, name, commit)
    ancestry = Ancestry(platform.forge, platform.pack_repo)
    until(
        platform.clock,
        lambda: _look(platform.cluster, name, commit, ancestry),
        lambda waiting: not waiting,
        timeout_s=timeout_s,
        goal=f"layer {name} becoming ready" + (f" at {short(commit)}" if commit else ""),
        why_not=str,
    )


def await_taken_up(platform: Platform, commit: CommitSha, timeout_s: float) -> None:
    """
    Wait until the root applies a commit that brings, changes or removes a layer's Application.

    Raises:
        IncompleteError: It timed out, or there is no root.
    """
    # the root's operation keeps its commit and waits for the health of each layer: for one that is
    # gone from Git it would wait for ever and block later commits (observed on Argo CD 3.2.11)
    urging = StuckOperationEnder(platform, platform.pack_repo, commit)
    nudge(platform.cluster, ROOT_NAME, commit)
    until(
        platform.clock,
        lambda: _root_waits(platform.cluster, urging),
        lambda waiting: not waiting,
        timeout_s=timeout_s,
        goal=f"the Application {ROOT_NAME} applying {short(commit)}",
        why_not=str,
    )


def _root_waits(cluster: Cluster, urging: StuckOperationEnder) -> str:
    root = get_object(cluster, application_key(ROOT_NAME))
    if root is None:
        raise IncompleteError(
            f"the Application {ROOT_NAME} does not exist, so no layer is delivered",
            hint="'orderkit bootstrap' creates it again and continues",
        )
    urging.look(root)
    applied = dig(root, "status", "operationState", "syncResult", "revision", default="")
    in_step = urging.has_compared(root) and dig(root, "status", "sync", "status") == "Synced"
    if in_step or urging.reached(pinned(root) or str(applied)):
        return ""
    return order_state.undelivered(root, None) or "Argo CD has not compared it with the cluster yet"


def _look(cluster: Cluster, name: str, commit: CommitSha | None, ancestry: Ancestry) -> str:
    """
    Say what a layer waits for; empty when it is ready.

    Raises:
        IncompleteError: Argo CD gave this commit up.
    """
    application = get_object(cluster, application_key(name))
    if application is None:
        return "Argo CD has not created its Application"
    at = commit and _commit_to_judge(application, commit, ancestry)
    if commit and dig(application, "status", "operationState", "retryCount", default=0):
        end_older_operation(cluster, application, str(at))
    waiting = _unapplied(application, at)
    reason = order_state.delivery_failure(application) or _unhealthy_object(cluster, application)
    if waiting and _ended(application, at) in ("Failed", "Error"):
        raise IncompleteError(f"Argo CD gave {short(str(at))} up: {reason}")
    if waiting:
        return f"{waiting}: {reason}" if reason else waiting
    health = dig(application, "status", "health", "status", default="Unknown")
    return "" if health == "Healthy" else f"its health is {health}" + (reason and f": {reason}")


def _unapplied(application: Manifest, at: str | None) -> str:
    """Say what is not applied; an object that may not be pruned does not count."""
    return (
        "" if _ended(application, at) == "Succeeded" else order_state.undelivered(application, at)
    )


def _ended(application: Manifest, at: str | None) -> str:
    """Return how the sync of the commit that Argo CD compared last ended; empty if it did not."""
    operation = dig(application, "status", "operationState", default={})
    revision = dig(application, "status", "sync", "revision")
    synced_revision = dig(operation, "syncResult", "revision")
    is_compared = dig(application, "status", "sync", "status") in ("Synced", "OutOfSync")
    if (
        "operation" in application
        or not is_compared
        or synced_revision != revision
        or at not in (None, synced_revision)
    ):
        return ""
    return str(operation.get("phase", ""))


def _commit_to_judge(application: Manifest, commit: CommitSha, ancestry: Ancestry) -> str:
    """Return the commit to judge: a later one that Argo CD compared and that contains this one."""
    revision = str(dig(application, "status", "sync", "revision", default="") or "")
    return revision if ancestry.contains(revision, commit) else commit


def _unhealthy_object(cluster: Cluster, application: Manifest) -> str:
    """Name the first object of a layer that is not healthy, and why."""
    for entry in dig(application, "status", "resources", default=()):
        kind = Kind(entry.get("group", ""), entry.get("version", ""), entry["kind"])
        live = get_object(cluster, ObjectKey(kind, entry["name"], entry.get("namespace", "")))
        verdict = health_of(live) if live is not None else Health(HealthStatus.MISSING)
        if verdict is not None and verdict.status is not HealthStatus.HEALTHY:
            message = f": {verdict.message}" if verdict.message else ""
            return f"{kind.kind} {entry['name']} is {verdict.status}{message}"
    return ""
