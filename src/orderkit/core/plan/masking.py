"""
Take the values of Secrets out of a plan, before any view sees it.

Masked is: everything that a Secret holds, at any depth of an object, and the copy that ``kubectl
apply`` keeps; every field that follows from a Secret (``secret_traces``); every field that contains
the value of one in any encoding, if it is hard to guess (``secret_values``); and such values in
sentences. A sentence about a resource has no text of its masked fields either, easy to guess or
not. Keys of Secrets that the kit declares public are shown, and so is what follows from them. A
field is masked whole, so that neither length nor place of a value shows. Whether a masked field
changes is said in the words of ``kubectl diff``. Counts, dangers and faults are those of the real
values. A field of the plan that this module does not know is masked text by text; only those in
`_OPEN` are left alone.

The fields of the order itself are not compared with Secrets: they are in Git, and the requester
chose them.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, fields, is_dataclass, replace
from enum import Enum
from typing import Any, TypeVar

from ground.objects.kube_objects import Manifest, metadata
from ground.objects.values import ABSENT, Step, Steps, path_text, same
from ground.secrets import MASK
from orderkit.core.order.change import FieldDifference
from orderkit.core.plan.assembly import Assembly, Fault, Guess, Note, SecretField, SecretTraces
from orderkit.core.plan.comparison import Drift, Plan, ResourceChange, plan_with_secrets
from orderkit.core.plan.dangers import Danger, DangerContext
from orderkit.core.plan.secret_traces import guess_texts
from orderkit.core.secret_values import (
    APPLIED,
    OPEN_FIELDS,
    SecretTexts,
    is_secret,
    leaves,
    secrets_in,
    values_of,
)

BEFORE, AFTER = f"{MASK} (before)", f"{MASK} (after)"
"""Both sides of a masked field that changes."""
FOLLOWS = "not shown, because it follows from a Secret"
"""What stands for a sentence that cannot be shown."""
_VALUES = ("data", "stringData")
"""The maps of a Secret whose keys a kit may declare public."""
_IDENTITY: set[Steps] = {
    ("apiVersion",), ("kind",), ("metadata", "name"), ("metadata", "namespace"),
}  # fmt: skip
"""Fields by which a plan names a resource."""
_OPEN = frozenset({(Fault, "code"), (Note, "code"), (Plan, "costs")})
"""
Fields that are left alone: codes of ours, and costs, which are computed from the masked plan.
"""
_Record = TypeVar("_Record")
_BRACKETS = re.compile(r"[\[\].]+")


def compare(
    before: Assembly,
    after: Assembly,
    *,
    fresh: Assembly | None = None,
    context: DangerContext | None = None,
    drift: tuple[Drift, ...] = (),
    paused: Mapping[str, str] | None = None,
) -> Plan:
    """
    Compare an order before and after a change.

    Args:
        after: Assembled with the existing resources, so that everything keeps its name.
        fresh: Assembled without them; shows which names the stations would give now.
        context: Further facts by which dangers are judged.
        drift, paused: How the live state differs from what it should be, and what is paused.
    """
    plan = plan_with_secrets(before, after, fresh=fresh, context=context)
    plan = replace(plan, drift=drift, paused=paused or {})
    return masked(plan, context, fresh=fresh)


def masked(
    plan: Plan, context: DangerContext | None = None, *, fresh: Assembly | None = None
) -> Plan:
    """
    Return a plan without the values of Secrets. Without Secrets it is the same plan.

    Args:
        context, fresh: What it was made with: dangers may quote them.
    """
    sides = [plan.before, plan.after, *([fresh] if fresh else [])]
    objects = [*(context.existing if context else ())]
    for side in sides:
        objects += [*side.resources.values(), *side.observed.values(), side.xr]
    values = {value for side in sides for value in side.secret_traces.values}
    traced = any(side.secret_traces.fields for side in sides)
    if not (values or traced or any(secrets_in(objects))):
        return plan
    public = _public_keys(sides)
    return _mask_for(sides, {*values, *values_of(objects, public=public)}).plan(plan)


def masked_assembly(assembly: Assembly, existing: Collection[Manifest]) -> Assembly:
    """Return an assembly without the values of Secrets, as `masked` does with a plan's sides."""
    objects = [*existing, *assembly.resources.values(), *assembly.observed.values(), assembly.xr]
    public = assembly.secret_traces.public_keys
    values = {*assembly.secret_traces.values, *values_of(objects, public=public)}
    return _mask_for((assembly,), values).assembly(assembly)


def _public_keys(sides: Collection[Assembly]) -> frozenset[str]:
    return frozenset(key for side in sides for key in side.secret_traces.public_keys)


def _mask_for(sides: Collection[Assembly], values: Collection[str]) -> _PlanMask:
    traces = [side.secret_traces for side in sides]
    fields = frozenset(place for trace in traces for place in trace.fields)
    public = {name for side in sides for name in _open_names(side, fields)}
    texts = SecretTexts(values, public=public)
    mask = _PlanMask(
        texts,
        texts,
        fields,
        frozenset(place for trace in traces for place in trace.keys),
        frozenset(text for trace in traces for text in trace.texts),
        frozenset(text for side in sides for text in leaves(side.input_xr.get("spec"))),
        _public_keys(sides),
        complete=all(trace.complete for trace in traces),
    )
    hidden = [pair for side in sides for pair in mask.hidden_texts(side)]
    sentences = SecretTexts({*values, *(text for _, text in hidden)}, public=public)
    about: dict[str, set[str]] = {}
    for path, text in hidden:
        about.setdefault(path, set()).add(text)
    shown = {path: " ".join(mask.shown_texts(sides, path)) for path in about}
    words = {path: {t for t in texts if t not in shown[path]} for path, texts in about.items()}
    specific = {path: sentences.with_words(texts) for path, texts in words.items() if texts}
    return replace(mask, sentences=sentences, about=specific)


def _open_names(assembly: Assembly, fields: Collection[SecretField]) -> Iterator[str]:
    """Yield names that follow from no Secret: everybody sees them."""
    for path, manifest in {"": assembly.xr, **assembly.resources}.items():
        for name in ("name", "namespace"):
            if not {(path, ()), (path, ("metadata", name))} & set(fields):
                yield str(metadata(manifest).get(name) or "")


@dataclass(frozen=True, slots=True)
class _Place:
    """A place in a resource; `hidden` if everything there is secret."""

    path: str
    steps: Steps = ()
    hidden: bool = False
    in_secret: bool = False
    """It is the ``data`` or ``stringData`` of a Secret."""


@dataclass(frozen=True, slots=True)
class _PlanMask:
    texts: SecretTexts
    sentences: SecretTexts
    """With the contents of hidden fields, which messages may quote."""
    fields: frozenset[SecretField]
    keys: frozenset[SecretField]
    messages: frozenset[str]
    """Sentences, and paths of resources, that follow from a Secret."""
    open_texts: frozenset[str]
    """The fields of the order itself."""
    public_keys: frozenset[str]
    """Keys of Secrets that the kit declares public."""
    about: Mapping[str, SecretTexts] = field(default_factory=dict)
    """For sentences about one resource, by its path: with all contents of its hidden fields."""
    complete: bool = field(kw_only=True)

    def plan(self, plan: Plan) -> Plan:
        xr, was = plan.after.xr, plan.before.xr
        return self.rest(
            plan,
            before=self.assembly(plan.before),
            after=self.assembly(plan.after),
            fields=tuple(self.difference("", f, ("spec",), (xr, was)) for f in plan.fields),
            changes=tuple(map(self.change, plan.changes)),
            status=tuple(self.difference("", f, ("status",), (xr, was)) for f in plan.status),
            dangers=tuple(dict.fromkeys(map(self.danger, plan.dangers))),
            accepted=tuple(self.rest(a, danger=self.danger(a.danger)) for a in plan.accepted),
            drift=tuple(self.drift(plan, drift) for drift in plan.drift),
            paused={self.path(path): self.text(text) for path, text in plan.paused.items()},
        )

    def at(self, path: str) -> _PlanMask:
        """Return the mask for sentences about one resource."""
        return replace(self, sentences=self.about[path]) if path in self.about else self

    def danger(self, danger: Danger) -> Danger:
        return self.at(danger.path).rest(danger, path=self.path(danger.path))

    def drift(self, plan: Plan, drift: Drift) -> Drift:
        sides = [
            side.resources.get(drift.path) if drift.path else side.xr
            for side in (plan.before, plan.after)
        ]
        manifests = (sides[0], sides[1])
        differing = tuple(self.difference(drift.path, f, (), manifests) for f in drift.fields)
        return self.at(drift.path).rest(drift, path=self.path(drift.path), fields=differing)

    def assembly(self, assembly: Assembly) -> Assembly:
        def objects(by_path: Mapping[str, Manifest]) -> dict[str, Manifest]:
            return {self.path(path): self.manifest(path, m) for path, m in by_path.items()}

        return self.rest(
            assembly,
            xr=self.manifest("", assembly.xr),
            input_xr=self.manifest("", assembly.input_xr),
            resources=objects(assembly.resources),
            observed=objects(assembly.observed),
            kept=objects(assembly.kept),
            waves=tuple(tuple(map(self.path, wave)) for wave in assembly.waves),
            faults=tuple(self.at(f.path).fault(assembly, f) for f in assembly.faults),
            requirements=(),
            waits=tuple(map(self.path, assembly.waits)),
            settings={
                self.text(path): self.rest(
                    setting, value=self._value(_Place("", ("status",)), setting.value, ABSENT, MASK)
                )
                for path, setting in assembly.settings.items()
            },
            at_once={},
            pinned={self.path(path): self.text(text) for path, text in assembly.pinned.items()},
            assumed=(),
            guesses=tuple(map(self.guess, assembly.guesses)),
            notes=tuple(self.at(n.path).rest(n, path=self.path(n.path)) for n in assembly.notes),
            made_by={self.path(path): self.text(made) for path, made in assembly.made_by.items()},
            stuck=frozenset(map(self.path, assembly.stuck)),
            secret_traces=SecretTraces(),
        )

    def guess(self, guess: Guess) -> Guess:
        """Return a guess without what follows from a Secret: its field may be named by one."""
        named = {"field": MASK} if not self.messages.isdisjoint(guess_texts([guess])) else {}
        return self.rest(guess, path=self.path(guess.path), **named)

    def change(self, change: ResourceChange) -> ResourceChange:
        path, old, new = change.path, change.old, change.new
        return self.rest(
            change,
            path=self.path(path),
            old=None if old is None else self.manifest(path, old, new or ABSENT, BEFORE),
            new=None if new is None else self.manifest(path, new, old or ABSENT, AFTER),
            fields=tuple(self.difference(path, f, (), (new, old)) for f in change.fields),
        )

    def difference(
        self,
        path: str,
        difference: FieldDifference,
        above: Steps,
        manifests: tuple[Manifest | None, Manifest | None],
    ) -> FieldDifference:
        """Return a difference without secrets; the manifests say which fields are a Secret's."""
        places = [
            self._place(path, manifest, (*above, *difference.steps)) for manifest in manifests
        ]
        place = next((place for place in places if place.hidden), places[0])
        steps = tuple(
            self._key(_Place(path, (*above, *difference.steps[:depth])), step)
            for depth, step in enumerate(difference.steps)
        )
        old, new = difference.old, difference.new
        return FieldDifference(
            steps, self._value(place, old, new, BEFORE), self._value(place, new, old, AFTER)
        )

    def manifest(
        self, path: str, manifest: Manifest, other: Any = ABSENT, mark: str = MASK
    ) -> Manifest:
        """Return an object without secrets; `mark` stands where it differs from `other`."""
        masked_manifest: Manifest = self._value(self._place(path), manifest, other, mark)
        return masked_manifest

    def fault(self, assembly: Assembly, fault: Fault) -> Fault:
        """Return a fault without the value of a field that is masked."""
        manifest = assembly.resources.get(fault.path) if fault.path else assembly.xr
        if self._hides_field(fault, manifest or {}):
            rule = self.text(fault.rule)
            message = f"the value follows from a Secret and breaks the rule: {rule}"
            value = MASK
        else:
            message, value = self.text(fault.message), self.text(fault.value)
        return self.rest(fault, path=self.path(fault.path), message=message, value=value)

    def rest(self, record: _Record, **masked: Any) -> _Record:
        """Return a record with these fields, and the secrets taken out of its other fields."""
        for each in fields(record):  # type: ignore[arg-type]  # a dataclass, which no type says
            if each.name not in masked and (type(record), each.name) not in _OPEN:
                masked[each.name] = self.anything(getattr(record, each.name))
        return replace(record, **masked)  # type: ignore[type-var]  # as above

    def anything(self, value: Any) -> Any:
        """
        Return a value without secrets, whatever it is made of.

        Raises:
            TypeError: Nothing is known of its type.
        """
        if value is None or value is ABSENT or isinstance(value, (bool, int, float, Enum)):
            return value
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, Mapping):
            return _numbered((self.anything(key), self.anything(v)) for key, v in value.items())
        if isinstance(value, (list, tuple, set, frozenset)):
            return type(value)(map(self.anything, value))
        if is_dataclass(value):
            return self.rest(value)
        raise TypeError(f"a plan holds a {type(value).__name__}, which may hold a secret")

    def path(self, path: str) -> str:
        """Return a resource's path without what follows from a Secret."""
        if path in self.messages:
            return MASK
        parts = path.split("/")
        return "/".join(MASK if self.texts.in_text(p) else p for p in parts)

    def text(self, text: str) -> str:
        """Return a sentence without secrets."""
        return FOLLOWS if text in self.messages else self.sentences.redact(text)

    def hidden_texts(self, assembly: Assembly) -> Iterator[tuple[str, str]]:
        """Yield the texts of hidden fields, each with the path of its resource."""
        objects = {"": {"status": assembly.xr.get("status") or {}}, **assembly.resources}
        for path, manifest in objects.items():
            if (path, ()) not in self.fields:
                for place, text in self._texts(self._place(path), manifest):
                    if self._hides(place, text):
                        yield path, text

    def shown_texts(self, sides: Collection[Assembly], path: str) -> Iterator[str]:
        """Yield what everybody sees of one resource."""
        for side in sides:
            manifest = side.resources.get(path, {}) if path else side.xr
            for place, text in self._texts(self._place(path), manifest):
                yield from map(str, place.steps)
                if not self._hides(place, text):
                    yield text

    def _texts(self, place: _Place, value: Any) -> Iterator[tuple[_Place, str]]:
        if isinstance(value, dict):
            for key, entry in value.items():
                yield from self._texts(self._inside(place, value, key), entry)
        elif isinstance(value, list):
            for index, entry in enumerate(value):
                yield from self._texts(self._inside(place, value, index), entry)
        elif isinstance(value, str):
            yield place, value

    def _hides_field(self, fault: Fault, manifest: Manifest) -> bool:
        """Return whether a fault is about a hidden field."""
        if not fault.field:
            return False
        name = _flat(fault.field)
        traced = (_flat(path_text(steps)) for path, steps in self.fields if path == fault.path)
        if any(_is_within(name, other) or _is_within(other, name) for other in traced):
            return True
        return any(_is_within(name, other) for other in self._secret_fields(manifest)) or bool(
            fault.value and fault.path and self.texts.in_text(fault.value)
        )

    def _secret_fields(self, value: Any, above: str = "") -> Iterator[str]:
        """Yield the paths of everything that Secrets in an object hold."""
        for key, entry in value.items() if isinstance(value, dict) else ():
            path = f"{above}.{key}".strip(".")
            if is_secret(value) and key in _VALUES and isinstance(entry, dict):
                yield from (f"{path}.{name}" for name in entry if name not in self.public_keys)
            elif is_secret(value) and key not in OPEN_FIELDS:
                yield path
            else:
                yield from self._secret_fields(entry, path)

    def _place(self, path: str, manifest: Any = None, steps: Steps = ()) -> _Place:
        """Return a place and whether everything there is hidden."""
        place = _Place(path, (), (path, ()) in self.fields)
        value = manifest
        for step in steps:
            place = self._inside(place, value, step)
            if isinstance(value, dict):
                value = value.get(step)
            elif isinstance(value, list) and isinstance(step, int) and step < len(value):
                value = value[step]
            else:
                value = None
        return place

    def _inside(self, place: _Place, value: Any, step: Step) -> _Place:
        steps = (*place.steps, step)
        is_public = place.in_secret and step in self.public_keys
        hidden = (
            (place.hidden and not is_public)
            or (place.path, steps) in self.fields
            or (is_secret(value) and step not in OPEN_FIELDS)
            or step == APPLIED
        )
        in_secret = is_secret(value) and step in _VALUES and not place.hidden
        return _Place(place.path, steps, hidden, in_secret)

    def _value(self, place: _Place, value: Any, other: Any, mark: str) -> Any:
        if isinstance(value, dict):
            others = other if isinstance(other, dict) else {}
            pairs = (
                (
                    self._key(place, key),
                    self._value(
                        self._inside(place, value, key), entry, others.get(key, ABSENT), mark
                    ),
                )
                for key, entry in value.items()
            )
            return _numbered(pairs)
        if isinstance(value, list):
            there = other if isinstance(other, list) else []
            return [
                self._value(self._inside(place, value, index), entry, other_entry, mark)
                for index, (entry, other_entry) in enumerate(
                    itertools.zip_longest(value, there[: len(value)], fillvalue=ABSENT)
                )
            ]
        if value is ABSENT or value is None or not self._hides(place, value):
            return value
        return MASK if other is ABSENT or same(value, other) else mark

    def _hides(self, place: _Place, value: Any) -> bool:
        steps, is_named = place.steps, place.steps in _IDENTITY
        if steps in (("apiVersion",), ("kind",)):
            return False
        if place.hidden:
            return True
        if not place.path and steps[:1] != ("status",):
            return False
        if not (self.complete or is_named):
            return True
        is_open = not isinstance(value, str) or value in self.open_texts
        return not is_open and self.texts.in_text(value)

    def _key(self, place: _Place, key: Step) -> Step:
        if isinstance(key, int) or (not place.path and place.steps[:1] == ("spec",)):
            return key
        follows = (place.path, (*place.steps, key)) in self.keys
        return MASK if follows or self.texts.in_text(key) else key


def _numbered(pairs: Iterator[tuple[Step, Any]]) -> dict[Step, Any]:
    """Return a map in which masked names stay apart."""
    entries: dict[Step, Any] = {}
    for key, value in pairs:
        entries[f"{key} ({len(entries)})" if key in entries else key] = value
    return entries


def _flat(path: str) -> str:
    return _BRACKETS.sub(".", path).strip(".")


def _is_within(path: str, other: str) -> bool:
    return path == other or path.startswith(f"{other}.") or not other
