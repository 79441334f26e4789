"""Resources of the cloud that an order observed and begins to manage: what it changes there."""

from __future__ import annotations

from collections.abc import Iterator

from compositions.managed_state import replacements
from ground.objects.kube_objects import (
    EXTERNAL_NAME,
    Kind,
    Manifest,
    ObjectKey,
    annotations_of,
    dig,
    only_observes,
)
from ground.objects.values import shown
from orderkit.core.order.observed_parts import takeover_differences
from orderkit.core.plan.assembly import Assembly
from orderkit.core.plan.dangers.danger_codes import Code, Danger, DangerContext
from orderkit.core.plan.object_texts import key_text

_SHOWN_MAX = 20


def takeover_dangers(before: Assembly, after: Assembly, context: DangerContext) -> Iterator[Danger]:
    """Yield what changes in the cloud once the order manages what it observed."""
    taken_parts = _taken_parts(after, context)
    for path, manifest in after.resources.items():
        if not isinstance(dig(manifest, "spec", "forProvider"), dict) or only_observes(manifest):
            continue
        old = before.resources.get(path)
        name = annotations_of(manifest).get(EXTERNAL_NAME)
        was_observed = old is not None and only_observes(old)
        if was_observed and old and name == annotations_of(old).get(EXTERNAL_NAME):
            yield from _changes(path, manifest, before.observed.get(path) or {}, context)
        elif path in taken_parts and (
            old is None or was_observed or name != annotations_of(old).get(EXTERNAL_NAME)
        ):
            message = (
                f"{key_text(manifest)} takes over '{taken_parts[path]}' without having observed "
                "it: what it changes there is not known"
            )
            yield Danger(path, Code.TAKES_OVER, message)


def _taken_parts(after: Assembly, context: DangerContext) -> dict[str, str]:
    """Return the parts that take something over, by the order's fields, with the external name."""
    kind = Kind.of(after.xr)
    imports = context.laws.imports.get((kind.group, kind.kind))
    names = {
        part_name: dig(after.xr, "spec", *path.split("."))
        for part_name, path in (imports.names.items() if imports else ())
    }
    return {part_name: str(name) for part_name, name in names.items() if name}


def _changes(
    path: str, manifest: Manifest, live: Manifest, context: DangerContext
) -> Iterator[Danger]:
    name = f"{ObjectKey.of(manifest).kind.kind} {annotations_of(manifest).get(EXTERNAL_NAME, '')}"
    if not dig(live, "status", "atProvider"):
        message = f"{key_text(manifest)}: nothing was observed of it yet; what changes is not known"
        yield Danger(path, Code.TAKES_OVER, message)
        return
    at_provider, order = live["status"]["atProvider"], manifest["spec"]["forProvider"]
    for field, old, new in replacements(
        context.laws.behaviour(Kind.of(manifest)).replaces, at_provider, order
    ):
        message = (
            f"{name.strip()} in the cloud has {field} {shown(old)}, and no update can make that "
            f"{shown(new)}: it stays unsynced until the order says what there is"
        )
        yield Danger(path, Code.REPLACES, message)
    differences = takeover_differences(live, manifest)
    for difference in differences[:_SHOWN_MAX]:
        message = f"{name.strip()} in the cloud changes: {difference}"
        yield Danger(path, Code.TAKES_OVER, message)
    if len(differences) > _SHOWN_MAX:
        message = f"{name.strip()}: {len(differences) - _SHOWN_MAX} more fields change in the cloud"
        yield Danger(path, Code.TAKES_OVER, message)
