"""URLs of the Kubernetes API: from a path to the kind, namespace, name and subresource."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from orderkit_standins.cluster.definitions import KindRegistry
from orderkit_standins.cluster.kinds import ServedKind

Subresource = Literal["", "status", "finalize"]
_NAMESPACES = "namespaces"


@dataclass(frozen=True, slots=True)
class RequestTarget:
    """What a request is about. `name` empty: the collection; `namespace` None: everywhere."""

    served: ServedKind
    namespace: str | None
    name: str
    subresource: Subresource

    @property
    def where(self) -> str:
        return self.namespace or ""


def find_target(registry: KindRegistry, path: str) -> RequestTarget | None:
    """Return what a path means, or None if nothing is served there."""
    match [step for step in path.split("/") if step]:
        case ["api", version, *steps_below]:
            group = ""
        case ["apis", group, version, *steps_below]:
            pass
        case _:
            return None
    match steps_below:
        case [plural, namespace, *below] if plural == _NAMESPACES and len(below) > 0:
            if not group and below[0] in {"status", "finalize"} and len(below) == 1:
                return _target(registry, (group, version, plural), None, [namespace, *below])
            return _target(registry, (group, version, below[0]), namespace, below[1:])
        case [plural, *below]:
            return _target(registry, (group, version, plural), None, below)
        case _:
            return None


def _target(
    registry: KindRegistry, resource: tuple[str, str, str], namespace: str | None, below: list[str]
) -> RequestTarget | None:
    served = registry.resource(*resource)
    if served is None or len(below) > 2:  # noqa: PLR2004 - name and subresource
        return None
    name, sub = [*below, "", ""][:2]
    if served.namespaced != (namespace is not None) and (name or not served.namespaced):
        return None
    match sub:
        case "":
            return RequestTarget(served, namespace, name, "")
        case "status" if served.has_status:
            return RequestTarget(served, namespace, name, "status")
        case "finalize" if served.plural == _NAMESPACES:
            return RequestTarget(served, namespace, name, "finalize")
        case _:
            return None
