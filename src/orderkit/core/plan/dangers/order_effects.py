"""
Effects of the order's own fields: defaults, teams, Compositions, names, and what it takes over.

Kept names and dropped parts are told too. An order takes over resources of the cloud that it
observed and begins to manage: the danger is what that changes there.
"""

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
from orderkit.core.order.change import ABSENT, differences, value_at
from orderkit.core.order.observed_parts import takeover_differences
from orderkit.core.plan.assembly import Assembly, key_text
from orderkit.core.plan.dangers.danger_codes import Code, Danger, DangerContext

_MACHINERY = (
    "compositionRef", "compositionSelector", "compositionRevisionRef",
    "compositionRevisionSelector", "compositionUpdatePolicy",
)  # fmt: skip


def order_dangers(
    before: Assembly, after: Assembly, fresh: Assembly, context: DangerContext
) -> Iterator[Danger]:
    """Yield the dangers of the order's own fields and of the pipeline that reads them."""
    yield from _defaults(before, after)
    yield from _team(before, after, context)
    yield from _composition(before, after)
    yield from _dropped(before, after)
    yield from _kept_names(before, after, fresh)
    yield from _missing(before, after)
    yield from (
        Danger(note.path, Code(note.code), note.message)
        for note in after.notes
        if note not in before.notes
    )


def _defaults(before: Assembly, after: Assembly) -> Iterator[Danger]:
    set_fields = {
        field.steps for field in differences(_spec(before.input_xr), _spec(after.input_xr))
    }
    if not before.input_xr:
        return
    for field in differences(_spec(before.xr), _spec(after.xr)):
        unset = (
            field.steps not in set_fields and value_at(_spec(after.input_xr), field.steps) is ABSENT
        )
        if unset and field.old is not ABSENT:
            message = (
                f"spec.{field.path} is {shown(field.new)} by default, was {shown(field.old)}: "
                "nobody set it; an order that is already stored in the cluster keeps the old "
                "value until it is recreated"
            )
            yield Danger("", Code.DEFAULT, message)


def _spec(xr: object) -> dict[str, object]:
    spec = dig(xr, "spec", default=None)
    return {k: v for k, v in spec.items() if k != "crossplane"} if isinstance(spec, dict) else {}


def _team(before: Assembly, after: Assembly, context: DangerContext) -> Iterator[Danger]:
    kind = Kind.of(after.xr)
    path = context.laws.team_fields.get((kind.group, kind.kind))
    if not path or not _spec(before.xr):
        return
    was, now = (dig(_spec(assembly.xr), *path.split(".")) for assembly in (before, after))
    if was != now:
        message = (
            f"the order moves from team {was} to {now}, but its repository, Application and "
            "limits stay with the old team"
        )
        yield Danger("", Code.TEAM, message)


def _composition(before: Assembly, after: Assembly) -> Iterator[Danger]:
    for name in _MACHINERY:
        for steps in (("spec", "crossplane", name), ("spec", name)):
            was, now = (value_at(assembly.input_xr, steps) for assembly in (before, after))
            if was is ABSENT:  # then the XRD's default is stored
                was = value_at(before.xr, steps)
                now = was if now is ABSENT else now
            if was != now and before.input_xr:
                effect = _effect(name, now, before, after)
                message = f"{'.'.join(steps)} {shown(was)} → {shown(now)}: {effect}"
                yield Danger("", Code.COMPOSITION, message)


def _effect(name: str, chosen: object, before: Assembly, after: Assembly) -> str:
    """Return what a change of Crossplane's fields does to the order."""
    if name != "compositionRef" or not after.resources:
        return "the order may be assembled by another Composition or revision than in this plan"
    if pinned := after.pinned.get(""):
        return f"the order stays as it is, because {pinned}"
    removed, added = (
        len(one.resources.keys() - other.resources.keys())
        for one, other in ((before, after), (after, before))
    )
    return (
        f"Composition {dig(chosen, 'name')} assembles the order from then on. Crossplane deletes "
        f"{removed} parts that only the other one makes, creates {added}, and keeps those that "
        "have the same name in both"
    )


def _dropped(before: Assembly, after: Assembly) -> Iterator[Danger]:
    """Yield resources that a Composition or station drops although the order did not change."""
    removed = sorted(before.resources.keys() - after.resources.keys())
    if removed and not after.resources and len(removed) > 1:
        message = (
            "the pipeline composes nothing any more: Crossplane deletes all composed "
            "resources and reports Ready"
        )
        yield Danger("", Code.EMPTIED, message)
        return
    if not before.input_xr or differences(_spec(before.xr), _spec(after.xr)):
        return
    for path in removed:
        message = (
            f"{key_text(before.resources[path])} is no longer composed, although the order did "
            "not change"
        )
        yield Danger(path, Code.DROPPED, message)


def _kept_names(before: Assembly, after: Assembly, fresh: Assembly) -> Iterator[Danger]:
    for path in before.resources.keys() & after.resources.keys() & fresh.resources.keys():
        kept_key, fresh_key = (
            ObjectKey.of(assembly.resources[path]) for assembly in (after, fresh)
        )
        same_kind = kept_key.kind == fresh_key.kind
        if same_kind and (kept_key.namespace, kept_key.name) != (
            fresh_key.namespace,
            fresh_key.name,
        ):
            message = (
                f"{key_text(after.resources[path])} keeps its name; a new object would be "
                f"{key_text(fresh.resources[path])}"
            )
            yield Danger(path, Code.KEEPS_NAME, message)


def _missing(before: Assembly, after: Assembly) -> Iterator[Danger]:
    for text in after.missing:
        if text not in before.missing and before.input_xr:
            message = f"{text} is required now and does not exist"
            yield Danger("", Code.MISSING_FACT, message)


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
