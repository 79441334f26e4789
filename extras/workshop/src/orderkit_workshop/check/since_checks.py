"""
Compare a kit with an earlier version: would live orders break, move, or lose data?

Names and schemas are compared as text; composed resources by running earlier orders through both
pipelines.

`tightened` compares two schemas of one field: which formerly allowed values are refused now.
Patterns and rules cannot be compared: any change of them is reported.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import PurePosixPath
from typing import Any

from ground.objects.kube_objects import Kind, Manifest, dig
from kubeschema.validate import Validator
from kubeschema.validate.findings import Located
from kubeschema.xrd import scope_of
from orderkit.core.kit.model import Kit
from orderkit_workshop.check.behaviour_rule_codes import SinceRule
from orderkit_workshop.check.kit_under_check import Doc, KitUnderCheck, finding_at, misshapen
from orderkit_workshop.check.rule_codes import Coded
from orderkit_workshop.check.trial_runs import Order, Run, orders_of, runs_of

Schema = Mapping[str, Any]
Tightening = tuple[SinceRule, str, str]
"""Rule, path in the schema, sentence."""

_LEAST = ("minimum", "minLength", "minItems", "minProperties")
_MOST = ("maximum", "maxLength", "maxItems", "maxProperties")
_LOGIC = ("oneOf", "anyOf", "allOf", "not")
_LISTS = ("x-kubernetes-list-type", "x-kubernetes-list-map-keys", "x-kubernetes-map-type")
_RULES = "x-kubernetes-validations"
_OPEN = "x-kubernetes-preserve-unknown-fields"


def tightened(old: Schema, new: Schema, path: str, name: str = "") -> Iterator[Tightening]:
    """
    Yield how `new` allows less than `old`.

    Args:
        path: Path of `new` in its document.
        name: What messages call the field.
    """
    title = name or "spec"
    if _types(old) != _types(new):
        message = f"{title} was {_types_text(_types(old))} and is {_types_text(_types(new))}"
        yield SinceRule.TYPE, f"{path}.type", message
        return
    yield from _values(old, new, path, title)
    yield from _bounds(old, new, path, title)
    yield from _openness(old, new, path, title)
    yield from _rules(old, new, path, title)
    if old.get("default") != new.get("default"):
        message = f"the default of {title} was {old.get('default')!r} and is {new.get('default')!r}"
        yield SinceRule.DEFAULT, f"{path}.default", message
    yield from _properties(old, new, path, name)
    for key in ("items", "additionalProperties"):
        if isinstance(old.get(key), Mapping) and isinstance(new.get(key), Mapping):
            yield from tightened(old[key], new[key], f"{path}.{key}", f"{title}[]")


def _types(schema: Schema) -> tuple[str, bool]:
    return str(schema.get("type") or ""), bool(schema.get("x-kubernetes-int-or-string"))


def _types_text(types: tuple[str, bool]) -> str:
    return "an integer or a string" if types[1] else types[0] or "anything"


def _values(old: Schema, new: Schema, path: str, title: str) -> Iterator[Tightening]:
    if new.get("enum"):
        before = old.get("enum") or []
        lost_values = [value for value in before if value not in new["enum"]]
        if lost_values or not before:
            message = f"{title} may no longer be {', '.join(map(str, lost_values))}"
            message = (
                message if lost_values else f"{title} took any value and is limited to an enum now"
            )
            yield SinceRule.ENUM, f"{path}.enum", message
    for key in ("pattern", "format"):
        if new.get(key) and new.get(key) != old.get(key):
            message = f"{key} of {title} was {old.get(key)!r} and is {new[key]!r}"
            yield SinceRule.PATTERN, f"{path}.{key}", message


def _bounds(old: Schema, new: Schema, path: str, title: str) -> Iterator[Tightening]:
    for key in (*_LEAST, *_MOST):
        if key in new and (key not in old or _is_narrower(key, old[key], new[key])):
            was = f"was {old[key]}" if key in old else "was not set"
            message = f"{key} of {title} {was} and is {new[key]}"
            yield SinceRule.BOUNDS, f"{path}.{key}", message
    for key in ("exclusiveMinimum", "exclusiveMaximum", "uniqueItems"):
        if new.get(key) and not old.get(key):
            yield SinceRule.BOUNDS, f"{path}.{key}", f"{key} of {title} is new"
    step, before = new.get("multipleOf"), old.get("multipleOf")
    if step and (not before or before % step):
        yield SinceRule.BOUNDS, f"{path}.multipleOf", f"{title} must be a multiple of {step} now"


def _is_narrower(key: str, before: float, after: float) -> bool:
    return after > before if key in _LEAST else after < before


def _openness(old: Schema, new: Schema, path: str, title: str) -> Iterator[Tightening]:
    for key in (_OPEN, "nullable"):
        if old.get(key) and not new.get(key):
            yield SinceRule.CLOSED, path, f"{title} no longer has {key}"
    if old.get("additionalProperties") and not new.get("additionalProperties"):
        yield SinceRule.CLOSED, path, f"{title} no longer takes additional keys"
    for key in _LOGIC:
        if new.get(key) and new.get(key) != old.get(key):
            yield SinceRule.LOGIC, f"{path}.{key}", f"{key} of {title} is new or changed"
    for key in _LISTS:
        if new.get(key) != old.get(key):
            yield SinceRule.LOGIC, f"{path}.{key}", f"{key} of {title} changed"


def _rules(old: Schema, new: Schema, path: str, title: str) -> Iterator[Tightening]:
    old_rules = {_tightening_text(rule) for rule in old.get(_RULES) or ()}
    for index, rule in enumerate(new.get(_RULES) or ()):
        text = _tightening_text(rule)
        if text not in old_rules and "oldSelf" not in text:
            yield SinceRule.CEL, f"{path}.{_RULES}[{index}]", f"{title}: rule '{text}'"


def _tightening_text(rule: object) -> str:
    return str(rule.get("rule") or "") if isinstance(rule, Mapping) else ""


def _properties(old: Schema, new: Schema, path: str, name: str) -> Iterator[Tightening]:
    before, after = old.get("properties") or {}, new.get("properties") or {}
    is_open = bool(new.get(_OPEN) or new.get("additionalProperties"))
    for field, schema in before.items():
        inner = f"{name}.{field}" if name else field
        if field in after:
            yield from tightened(schema, after[field], f"{path}.properties.{field}", inner)
        elif not is_open:
            yield SinceRule.FIELD_GONE, f"{path}.properties", f"{inner} was removed"
    for field in new.get("required") or ():
        inner = f"{name}.{field}" if name else field
        missing = "default" not in (after.get(field) or {})
        if field not in (old.get("required") or ()) and missing:
            yield SinceRule.REQUIRED, f"{path}.required", f"{inner} is required now"


_REFUSING = {
    SinceRule.FIELD_GONE,
    SinceRule.TYPE,
    SinceRule.ENUM,
    SinceRule.PATTERN,
    SinceRule.BOUNDS,
    SinceRule.REQUIRED,
    SinceRule.CLOSED,
}
"""Rules that explain already why an order is refused."""
_COMPOSITE_REF = ("spec", "compositeTypeRef")


def check_since(old: KitUnderCheck, new: KitUnderCheck) -> tuple[Located, ...]:
    """
    Return what changed in a kit, sorted by file and line.

    If the earlier kit is unreadable, only its readable parts are compared.
    """
    entries = [*_definitions(old, new), *_compositions(old, new)]
    explained = any(getattr(entry.about, "reason", None) in _REFUSING for entry in entries)
    if old.kit is not None and new.kit is not None:
        entries += _naming(new, old.kit, new.kit)
        refused, accepted = _orders(old, new, old.kit, new.kit)
        entries += [] if explained else refused
        entries += _resources(old, new, accepted)
    entries.sort(key=lambda entry: (str(entry.file), entry.line or 0, str(entry.about)))
    return tuple(dict.fromkeys(entries))


def kit_is_gone(old: KitUnderCheck, ref: str) -> Located:
    """Return the finding for a kit that is no longer in the pack."""
    message = f"kit '{old.name}' was in the pack at {ref}"
    return old.in_file(SinceRule.KIT, PurePosixPath("pack.yaml"), message)


def _definitions(old: KitUnderCheck, new: KitUnderCheck) -> Iterator[Located]:
    before, after = old.definition, new.definition
    if before is None or after is None:
        return
    if misshapen(before.manifest) or misshapen(after.manifest):
        return
    yield from _identity(before.manifest, after)
    yield from _versions(before.manifest, after)


def _identity(before: Manifest, after: Doc) -> Iterator[Located]:
    identity = (("spec", "group"), ("spec", "names", "kind"), ("spec", "names", "plural"))
    for steps in identity:
        was, now = dig(before, *steps), dig(after.manifest, *steps)
        if was != now:
            yield finding_at(SinceRule.IDENTITY, after, ".".join(steps), f"was {was} and is {now}")
    names = ("singular", "listKind", "shortNames", "categories")
    for name in names:
        was, now = dig(before, "spec", "names", name), dig(after.manifest, "spec", "names", name)
        if was != now:
            message = f"{name} was {was} and is {now}"
            yield finding_at(SinceRule.NAMES, after, f"spec.names.{name}", message)
    if scope_of(before) != scope_of(after.manifest):
        message = f"was {scope_of(before)} and is {scope_of(after.manifest)}"
        yield finding_at(SinceRule.SCOPE, after, "spec.scope", message)


def _versions(before: Manifest, after: Doc) -> Iterator[Located]:
    now = {version["name"]: (n, version) for n, version in enumerate(_list(after.manifest))}
    for version in _list(before):
        name = version["name"]
        if name not in now or (version.get("served") and not now[name][1].get("served")):
            if version.get("served"):
                yield finding_at(
                    SinceRule.VERSION, after, "spec.versions", f"{name} is no longer served"
                )
            continue
        index, current = now[name]
        if version.get("referenceable") and not current.get("referenceable"):
            path = f"spec.versions[{index}].referenceable"
            yield finding_at(SinceRule.REFERENCEABLE, after, path, f"{name} was referenceable")
        at = f"spec.versions[{index}].schema.openAPIV3Schema.properties.spec"
        for rule, path, message in tightened(_spec(version), _spec(current), at):
            yield finding_at(rule, after, path, message)


def _list(xrd: Manifest) -> list[dict[str, Any]]:
    found_versions: list[dict[str, Any]] = xrd["spec"]["versions"]
    return found_versions


def _spec(version: Mapping[str, Any]) -> Mapping[str, Any]:
    found_spec = dig(version, "schema", "openAPIV3Schema", "properties", "spec")
    return found_spec if isinstance(found_spec, Mapping) else {}


def _compositions(old: KitUnderCheck, new: KitUnderCheck) -> Iterator[Located]:
    now = {doc.name: doc for doc in new.compositions}
    for doc in old.compositions:
        current = now.get(doc.name)
        if current is None:
            definition = new.definition
            if definition is not None:
                message = f"Composition {doc.name} was removed"
                yield finding_at(SinceRule.COMPOSITION, definition, "spec", message)
        elif dig(doc.manifest, *_COMPOSITE_REF) != dig(current.manifest, *_COMPOSITE_REF):
            message = f"Composition {doc.name} now has another compositeTypeRef"
            yield finding_at(SinceRule.COMPOSITION, current, "spec.compositeTypeRef", message)


def _naming(new: KitUnderCheck, old: Kit, now: Kit) -> Iterator[Located]:
    for key, was, name in (
        ("nameFrom", old.name_from, now.name_from),
        ("xrName", old.xr_name, now.xr_name),
    ):
        if was != name:
            message = f"{key} was {_text(was)} and is {_text(name)}"
            yield new.in_kit(SinceRule.ORDER_NAME, f"spec.{key}", message)
    if old.team_from != now.team_from:
        message = f"teamFrom was {_text(old.team_from)} and is {_text(now.team_from)}"
        yield new.in_kit(SinceRule.TEAM, "spec.teamFrom", message)
    fields = set(old.spec_schema.get("properties") or {})
    for field in sorted(fields & set(now.spec_schema.get("properties") or {})):
        if old.parameter(field) != now.parameter(field):
            message = f"{field} was '{old.parameter(field)}' and is '{now.parameter(field)}'"
            yield new.in_kit(SinceRule.PARAMETER, "spec.aliases", message)
    if old.unfold != now.unfold:
        message = f"unfold was {_text(old.unfold)} and is {_text(now.unfold)}"
        yield new.in_kit(SinceRule.PARAMETER, "spec.unfold", message)


def _text(value: object) -> str:
    return ", ".join(value) if isinstance(value, tuple) and value else str(value or "not set")


def _orders(
    old: KitUnderCheck, new: KitUnderCheck, before: Kit, now: Kit
) -> tuple[list[Located], list[Order]]:
    """Return the earlier orders that the new XRD refuses, and the others with new defaults."""
    refused: list[Located] = []
    accepted: list[Order] = []
    definition = new.definition
    if before.kind != now.kind or definition is None:
        return refused, accepted
    validator = Validator(now.xrd)
    for order in orders_of(old, before).orders:
        report = validator.check(order.xr)
        if report.valid:
            accepted.append(Order(order.label, report.result, varied=order.varied))
        else:
            message = f"{order.label}: {report.findings[0]}"
            refused.append(
                finding_at(SinceRule.ORDER_REFUSED, definition, "spec.versions", message)
            )
    return refused, accepted


def _resources(old: KitUnderCheck, new: KitUnderCheck, orders: list[Order]) -> Iterator[Located]:
    """Run the earlier orders through both pipelines."""
    runs = {run.key: run for run in runs_of(old, orders, twice=False)}
    told_already: set[tuple[Coded, str]] = set()
    for run in runs_of(new, orders, twice=False):
        earlier = runs.get(run.key)
        if earlier is None or not (earlier.simulation.settled and run.simulation.settled):
            continue
        for rule, message in _moved(earlier, run):
            if (rule, message) not in told_already:
                told_already.add((rule, message))
                yield finding_at(rule, run.doc, "spec.pipeline", f"{run.order.label}: {message}")


def _moved(earlier: Run, run: Run) -> Iterator[tuple[Coded, str]]:
    for name, was in earlier.simulation.observed.items():
        now = run.simulation.observed.get(name)
        if now is None:
            kind = Kind.of(was).kind
            yield (
                SinceRule.RESOURCE_GONE,
                f"'{name}' ({kind}) is no longer composed under this name",
            )
        elif (Kind.of(now).group, now["kind"]) != (Kind.of(was).group, was["kind"]):
            message = f"'{name}' was a {Kind.of(was)} and is a {Kind.of(now)}"
            yield SinceRule.RESOURCE_KIND, message
        elif _place(was) != _place(now):
            yield SinceRule.RESOURCE_NAME, f"'{name}' was {_place(was)} and is {_place(now)}"


def _place(manifest: Manifest) -> str:
    meta = manifest["metadata"]
    return f"{meta['namespace']}/{meta['name']}" if meta.get("namespace") else str(meta["name"])
