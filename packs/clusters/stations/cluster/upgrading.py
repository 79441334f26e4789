"""
Which version of Kubernetes each piece of a cluster is asked for now.

Kubernetes supports one minor version at a time for the control plane, and no node newer than that.
So the control plane goes first, and takes its next step once all pools run its version. Nobody has
to come back: each reconciliation asks for the next step that what was observed allows.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from .clouds import ClusterFacts


@dataclass(frozen=True, slots=True)
class Versions:
    """What is asked for now, and what is left to do."""

    control_plane: str
    """A minor version."""
    pools: Mapping[str, str] = field(default_factory=dict)
    """By the pool's name; as exact as the cloud's control plane says it."""
    running: str = ""
    """The minor version that the control plane runs, as far as known."""
    upgrade: str = ""
    """What happens now, if not everything runs the version ordered."""


def minor(version: str) -> str:
    """Return the minor version of ``1.33.5-gke.100``: ``1.33``; empty for an empty text."""
    return ".".join(version.lstrip("v").split(".")[:2])


def versions(
    ordered: str, control_plane: ClusterFacts, pools: Mapping[str, tuple[str, str]]
) -> Versions:
    """
    Return the versions to ask for.

    Args:
        ordered: The minor version to end up with. An older one than what runs changes nothing.
        pools: For each pool the version that it runs and the one that was asked for last; empty
            texts for a pool that does not exist, or of which nothing is known.
    """
    running = minor(control_plane.version)
    target = _next_control_plane(ordered, control_plane, pools)
    by_pool = {
        name: _next_pool(running_pool, asked_pool, control_plane, target)
        for name, (running_pool, asked_pool) in pools.items()
    }
    return Versions(target, by_pool, running, _upgrade(target, running, pools))


def _next_control_plane(
    ordered: str, control_plane: ClusterFacts, pools: Mapping[str, tuple[str, str]]
) -> str:
    running, asked_version = minor(control_plane.version), minor(control_plane.asked_version)
    if not running:
        return asked_version or ordered  # what exists stays as it is while nothing is known of it
    current = max(running, asked_version, key=_number)
    behind = any(
        name_version[0] and _is_older(name_version[0], current) for name_version in pools.values()
    )
    unknown = any(asked_pool and not pool for pool, asked_pool in pools.values())
    if current != running or behind or unknown or _number(ordered) <= _number(current):
        return current
    return _after(current)


def _next_pool(
    running: str, asked_version: str, control_plane: ClusterFacts, control_plane_target: str
) -> str:
    """Return the next step of a pool: at most the version that the control plane runs."""
    newest = control_plane.version
    if not newest or (asked_version and not running):
        return asked_version or control_plane_target
    if not running:
        return newest
    if not _is_older(running, newest):
        return asked_version or running
    step = _after(minor(running))
    if _number(step) < _number(newest):
        return asked_version if minor(asked_version) == step else step
    return asked_version if minor(asked_version) == minor(newest) else newest


def _upgrade(target: str, running: str, pools: Mapping[str, tuple[str, str]]) -> str:
    if not running:
        return ""
    if target != running:
        return f"the control plane goes from {running} to {target}"
    behind = sorted(name for name, (pool, _) in pools.items() if pool and _is_older(pool, running))
    if behind:
        return f"pools go to {running}: {', '.join(behind)}"
    return ""


def _number(version: str) -> tuple[int, ...]:
    return tuple(int(piece) for piece in minor(version).split(".") if piece.isdigit())


def _is_older(version: str, other: str) -> bool:
    return _number(version) < _number(other)


def _after(version: str) -> str:
    major, number = _number(version)
    return f"{major}.{number + 1}"
