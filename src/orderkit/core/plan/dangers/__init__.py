"""
What a person should think about before they merge: losses, traps, and things that will not work.

Each `Danger` has a stable code. The rules follow what Kubernetes and Crossplane do: a composed
resource that is no longer wanted is deleted at once; one whose kind changes under the same
logical name is left behind; a name given by a station counts only when the resource is made;
fields that Kubernetes holds immutable fail the resource, not the change.

``losses`` says what goes, ``holding`` which kinds hold data, ``immutables`` what cannot change,
``running`` what stops, ``reaching`` what selects and is referred to, ``access`` who may more,
``exposing`` where secrets stand, ``ordering`` what the order itself hides. Called by ``comparing``.
"""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from dataclasses import replace

from orderkit.core.order.change import same
from orderkit.core.plan.assembly import Assembly
from orderkit.core.plan.dangers.danger_codes import Code, Danger, DangerContext
from orderkit.core.plan.dangers.exposed_secrets import exposures, secrets_of
from orderkit.core.plan.dangers.immutable_fields import immutables
from orderkit.core.plan.dangers.losses import losses
from orderkit.core.plan.dangers.order_effects import orderings
from orderkit.core.plan.dangers.permissions import access
from orderkit.core.plan.dangers.restarts import running
from orderkit.core.plan.dangers.selectors import reaching

__all__ = ["Code", "Danger", "DangerContext", "dangers_of"]


def dangers_of(
    before: Assembly, after: Assembly, fresh: Assembly, mind: DangerContext | None = None
) -> tuple[Danger, ...]:
    """
    Return every danger of a change, by path.

    Args:
        fresh: The outcome without what exists: the names that stations would give now.
    """
    mind = mind or DangerContext()
    changed = {
        path
        for path in before.resources.keys() | after.resources.keys()
        if not same(before.resources.get(path), after.resources.get(path))
    }
    one, other = (_only(changed, each) for each in (before, after))
    found = {*running(one, other), *orderings(before, after, fresh, mind)}
    if changed:
        found |= {*losses(one, other, mind), *immutables(one, other, mind), *access(one, other)}
        found |= {*reaching(before, after)}
    if changed or not same(before.xr.get("status"), after.xr.get("status")):
        found |= {*exposures(one, other, secrets_of(before, after, mind))}
    lost = {each.path for each in found if each.code is Code.DATA_LOSS}
    return tuple(
        sorted(each for each in found if not (each.code is Code.DROPPED and each.path in lost))
    )


def _only(paths: AbstractSet[str], assembly: Assembly) -> Assembly:
    """Return an assembly with some of its resources: most changes touch few."""
    kept = {path: each for path, each in assembly.resources.items() if path in paths}
    return replace(assembly, resources=kept)
