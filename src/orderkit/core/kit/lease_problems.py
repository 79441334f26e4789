"""What is wrong with the lease of a kit; part of ``core.kit.consistency``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import timedelta
from typing import Any
from zoneinfo import available_timezones

from ground.errors import InvalidInputError
from orderkit.core.durations import duration_text, parse_duration
from orderkit.core.kit.field_problems import KitProblem, Steps, nearest
from orderkit.core.kit.kit_file import How
from orderkit.core.kit.model import Kit
from orderkit.core.kit.order_terms import Values
from orderkit.core.kit.xrd_fields import FieldShape, KitFields

_LEASE: Steps = ("spec", "lease")


def lease_problems(kit: Kit, fields: KitFields, spec: Mapping[str, Any]) -> Iterator[KitProblem]:
    """
    Yield what is wrong.

    Args:
        fields: The fields of the kit's XRD.
        spec: ``spec`` of kit.yaml as it was written.
    """
    written = spec.get("lease")
    if not written:
        return
    if not any(written.get(key) for key in ("default", "maximum", "field")):
        yield KitProblem("kit", _LEASE, None, "does not say how long an order lives",
                      "give it a default, a maximum or a field")  # fmt: skip
        return
    try:
        yield from _lengths(kit, written)
    except InvalidInputError as error:
        yield KitProblem("kit", _LEASE, error.value, error.rule, error.hint)
        return
    yield from _field(kit, fields)
    yield from _pause(kit, fields)
    yield from _nightly(kit, fields)


def _lengths(kit: Kit, written: Mapping[str, Any]) -> Iterator[KitProblem]:
    lease = kit.lease
    maximum = _duration(lease.maximum)
    if maximum:
        for steps, text in ((("default",), lease.default), (("extend", "by"), lease.extend.by)):
            length = _duration(text)
            if length and length > maximum:
                yield KitProblem("kit", (*_LEASE, *steps), text,
                              f"is longer than the maximum, {lease.maximum}")  # fmt: skip
    default = _duration(lease.default)
    warnings = [(text, parse_duration(text, field="warn")) for text in lease.warn]
    if not default:
        return
    for at, (text, length) in enumerate(warnings):
        if length >= default and "warn" in written:
            yield KitProblem("kit", (*_LEASE, "warn", at), text,
                          f"is not shorter than the lease, {lease.default}",
                          "warn later, or let orders live longer")  # fmt: skip
    if "warn" not in written and all(length >= default for _, length in warnings):
        yield KitProblem("kit", (*_LEASE, "default"), lease.default,
                      f"is not longer than the last warning, {lease.warn[-1]} before the end",
                      "declare shorter warnings: warn: [10m]")  # fmt: skip


def _field(kit: Kit, fields: KitFields) -> Iterator[KitProblem]:
    lease, steps = kit.lease, (*_LEASE, "field")
    if not lease.term_field:
        return
    field = fields.find(lease.term_field)
    if field is None:
        hint = nearest(lease.term_field, fields.paths)
        yield KitProblem("kit", steps, lease.term_field, "is not a field of the XRD", hint)
        return
    if field.shape is not FieldShape.TEXT or not field.visible:
        rule = f"cannot say how long: it is {field.shape}" if field.visible else "is not shown"
        yield KitProblem("kit", steps, lease.term_field, rule, "name a text such as 8h")
        return
    if not lease.default and not field.always:
        yield KitProblem("kit", steps, lease.term_field, "may be left out",
                      "give the lease a default, or make the field required")  # fmt: skip
    maximum = _duration(lease.maximum)
    shortest = min((parse_duration(text, field="warn") for text in lease.warn), default=None)
    for choice in field.schema.get("enum") or ():
        try:
            length = parse_duration(choice, field=lease.term_field)
        except InvalidInputError as error:
            yield KitProblem("kit", steps, choice, f"of its enum {error.rule}", error.hint)
            continue
        if maximum and length > maximum:
            rule = f"of its enum is longer than the maximum, {lease.maximum}"
            yield KitProblem("kit", steps, choice, rule)
        elif shortest is not None and length <= shortest:
            rule = f"of its enum is not longer than the last warning, {duration_text(shortest)}"
            yield KitProblem("kit", steps, choice, rule, "declare a shorter warning")


def _pause(kit: Kit, fields: KitFields) -> Iterator[KitProblem]:
    lease = kit.lease
    if lease.then == "pause" and not lease.pause:
        yield KitProblem("kit", (*_LEASE, "then"), "pause", "needs the values that pause an order",
                      "for example pause: {paused: true}")  # fmt: skip
    if lease.then != "pause" and lease.pause:
        yield KitProblem("kit", (*_LEASE, "pause"), None, "is for then: pause", "leave it out")
        return
    yield from _values(kit, fields, (*_LEASE, "pause"), lease.pause)


def _nightly(kit: Kit, fields: KitFields) -> Iterator[KitProblem]:
    nightly, steps = kit.lease.nightly, (*_LEASE, "nightly")
    if nightly is None:
        return
    if nightly.zone not in available_timezones():
        hint = "for example Europe/Berlin or UTC"
        yield KitProblem("kit", (*steps, "zone"), nightly.zone, "is not a time zone", hint)
    yield from _values(kit, fields, (*steps, "set"), nightly.values)
    for path in nightly.unless:
        if fields.find(path) is None:
            hint = nearest(path, fields.paths)
            yield KitProblem(
                "kit", (*steps, "unless", path), path, "is not a field of the XRD", hint
            )


def _values(
    kit: Kit, fields: KitFields, parent_steps: Steps, values: Values
) -> Iterator[KitProblem]:
    """Yield what is wrong with values that a sweep sets by itself."""
    for path, value in values.items():
        steps: Steps = (*parent_steps, path)
        field = fields.find(path)
        if field is None:
            hint = nearest(path, fields.paths)
            yield KitProblem("kit", steps, path, "is not a field of the XRD", hint)
            continue
        choices = field.schema.get("enum")
        if field.shape is FieldShape.BOOLEAN:
            choices = (True, False)
        if choices and value not in choices:
            rule = f"is not a value of '{path}'"
            yield KitProblem("kit", steps, value, rule, nearest(value, choices))
        if not any(path in change.fields and change.how is How.DIRECT for change in kit.changes):
            yield KitProblem("kit", steps, path, "is in no change that is committed directly",
                          "declare one in changes: nobody is there to review it")  # fmt: skip


def _duration(text: str) -> timedelta | None:
    return parse_duration(text, field="lease") if text else None
