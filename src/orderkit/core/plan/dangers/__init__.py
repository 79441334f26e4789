"""
Find what a person should check before merging: losses, traps, changes that will not work.

Each `Danger` has a stable code. The rules follow what Kubernetes and Crossplane do: a composed
resource that is no longer desired is deleted at once; one whose kind changes under the same
logical name is left behind; a name given by a station counts only when the resource is created;
fields that Kubernetes holds immutable fail the resource, not the change.

One module per subject; called by ``core.plan.comparison``.
"""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from dataclasses import replace

from orderkit.core.order.change import same
from orderkit.core.plan.assembly import Assembly
from orderkit.core.plan.dangers.danger_codes import Code, Danger, DangerContext
from orderkit.core.plan.dangers.exposure import (
    access_dangers,
    exposure_dangers,
    guard_dangers,
    secret_values,
)
from orderkit.core.plan.dangers.immutable_fields import immutable_dangers
from orderkit.core.plan.dangers.losses import loss_dangers
from orderkit.core.plan.dangers.order_effects import order_dangers, takeover_dangers
from orderkit.core.plan.dangers.workloads import restart_dangers, selector_dangers

__all__ = ["Code", "Danger", "DangerContext", "dangers_of"]


def dangers_of(
    before: Assembly, after: Assembly, fresh: Assembly, context: DangerContext | None = None
) -> tuple[Danger, ...]:
    """
    Return every danger of a change, by path.

    Args:
        fresh: The outcome as if nothing existed: the names that stations would give now.
    """
    context = context or DangerContext()
    changed = {
        path
        for path in before.resources.keys() | after.resources.keys()
        if not same(before.resources.get(path), after.resources.get(path))
    }
    old, new = (_only(changed, assembly) for assembly in (before, after))
    dangers = {*restart_dangers(old, new), *order_dangers(before, after, fresh, context)}
    if changed:
        dangers |= {
            *loss_dangers(old, new, context),
            *immutable_dangers(old, new, context),
            *access_dangers(old, new),
            *guard_dangers(old, new),
            *takeover_dangers(old, new, context),
        }
        dangers |= {*selector_dangers(before, after)}
    if changed or not same(before.xr.get("status"), after.xr.get("status")):
        dangers |= {*exposure_dangers(old, new, secret_values(before, after, context))}
    lossy_paths = {danger.path for danger in dangers if danger.code is Code.DATA_LOSS}
    return tuple(
        sorted(
            danger
            for danger in dangers
            if not (danger.code is Code.DROPPED and danger.path in lossy_paths)
            and not (danger.code in _REFUSED and _is_refused(danger, after))
        )
    )


_REFUSED = (Code.IMMUTABLE, Code.REPLACES)


def _is_refused(danger: Danger, after: Assembly) -> bool:
    """Return whether a fault of the outcome says the same."""
    return any(
        fault.path == danger.path and fault.field and f"{fault.field} " in f"{danger.message} "
        for fault in after.faults
    )


def _only(paths: AbstractSet[str], assembly: Assembly) -> Assembly:
    """Return an assembly with only these resources: most changes touch few."""
    kept = {path: manifest for path, manifest in assembly.resources.items() if path in paths}
    return replace(assembly, resources=kept)
