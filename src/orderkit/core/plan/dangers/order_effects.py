"""Effects of the order's own fields: defaults, teams, Compositions, kept names, dropped parts."""

from __future__ import annotations

from collections.abc import Iterator

from ground.objects.kube_objects import Kind, ObjectKey, dig
from ground.objects.values import shown
from orderkit.core.order.change import ABSENT, differences, value_at
from orderkit.core.plan.assembly import Assembly
from orderkit.core.plan.dangers.danger_codes import Code, Danger, DangerContext
from orderkit.core.plan.object_texts import key_text

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
