"""
Find what of an outcome follows from Secrets, or from a future uid, however stations computed it.

An outcome is assembled again with other values in every Secret that stations see, once of the same
length and once longer. What differs follows from a Secret: a copy, a part, a hash, a length, or a
resource that is composed only for some values. If stations cannot work with other values, nothing
is known, and every value counts.

Keys that the kit declares public keep their values: nothing follows from those.

`with_guesses` finds by the same method the fields that only the cluster can determine: those
derived from a future uid. A generated name depends on the uid of the XR, and a station may use that
uid too. So an XR that does not exist yet is assembled a second time with another uid, and every
difference is a guess. This finds every use that a station makes of the uid, without tracing it.

The uids of resources other than XRs are assumed not to matter.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from string import ascii_lowercase, ascii_uppercase, digits
from typing import Any

from compositions.composed import Lookup
from compositions.station import Selector
from ground.objects.kube_objects import Manifest, annotations_of, metadata
from ground.objects.values import Steps
from orderkit.core.order.change import ABSENT, differences
from orderkit.core.plan.assembly import Assembly, Guess, SecretField, SecretTraces, selector_text
from orderkit.core.plan.composed_tree import AssemblyContext, assemble
from orderkit.core.secret_values import (
    APPLIED,
    as_json,
    decoded,
    entries_of,
    is_searched,
    is_secret,
    names_public,
    secrets_in,
    values_of,
)

_SALT = "another"


def with_guesses(
    assembly: Assembly,
    xr: Manifest,
    workshop: AssemblyContext,
    observed: Mapping[str, Manifest],
    *,
    attributed: Mapping[str, str] | None = None,
) -> Assembly:
    """
    Return an assembly with its guesses.

    Args:
        observed: The objects in the cluster, whatever the assembly was made with.
        attributed: The step that composed each of them, as `assemble` takes it.
    """
    if metadata(xr).get("uid") and not _new_xrs(assembly, workshop, observed):
        return assembly
    salted = replace(workshop, salt=_SALT)
    other = assemble(xr, salted, observed=observed, attributed=attributed)
    guesses = tuple(sorted(set(_guesses(assembly, other))))
    return replace(assembly, guesses=guesses, unknowns=(*assembly.unknowns, *guess_texts(guesses)))


def _new_xrs(
    assembly: Assembly, workshop: AssemblyContext, observed: Mapping[str, Manifest]
) -> bool:
    new = (manifest for path, manifest in assembly.observed.items() if path not in observed)
    return any(workshop.blueprint(manifest) is not None for manifest in new)


def _guesses(assembly: Assembly, other: Assembly) -> Iterator[Guess]:
    for path in assembly.resources.keys() | other.resources.keys():
        manifest, other_manifest = (
            _plain(side.resources.get(path, {})) for side in (assembly, other)
        )
        for field in differences(manifest, other_manifest, into_lists=True):
            yield Guess(path, field.path)
    status, other_status = ({"status": side.xr.get("status") or {}} for side in (assembly, other))
    for field in differences(status, other_status, into_lists=True):
        yield Guess("", field.path)


def _plain(manifest: Manifest) -> Manifest:
    """Remove values that are nothing but a uid."""
    meta: dict[str, Any] = dict(metadata(manifest))
    for key in ("uid", "ownerReferences"):
        meta.pop(key, None)
    return {**manifest, "metadata": meta} if meta else manifest


def guess_texts(guesses: Iterable[Guess]) -> Iterator[str]:
    """Yield the sentences about guesses."""
    for guess in guesses:
        field = ".".join(segment for segment in (guess.path, guess.field) if segment)
        yield f"{field} follows from a uid that only the cluster gives"


_LONGER = "x7"
_FIXED = re.compile(
    r"""-{5}[A-Z ]{1,40}-{5}|^[ \t]*[\w."'-]{1,80}[ \t]*(?:=|:[ \t])|[a-z][a-z0-9+.-]{0,20}://|\\.""",
    re.MULTILINE,
)
"""What programs need in order to read a value: names of fields, schemes of URLs, PEM's marks."""

_OTHER = str.maketrans(
    f"{ascii_lowercase}{ascii_uppercase}{digits}",
    f"{ascii_lowercase[1:]}a{ascii_uppercase[1:]}A1234567891",
)
"""Another character of the same class for each; no number begins with a zero."""


def with_secret_traces(
    assembly: Assembly,
    xr: Manifest,
    workshop: AssemblyContext,
    observed: Mapping[str, Manifest],
    *,
    attributed: Mapping[str, str] | None = None,
    before: Assembly | None = None,
    public: frozenset[str] | None = None,
) -> Assembly:
    """
    Return an assembly with what follows from Secrets.

    Args:
        xr, workshop, observed, attributed: What the assembly was made with.
        before: The assembly whose outcome `observed` is, if it is one.
        public: Keys of Secrets from which nothing follows that is secret; None: those that the kit
            declares public.
    """
    objects = [*workshop.existing, *observed.values(), *_looked_up(assembly, workshop)]
    public = workshop.laws.public_keys_of(xr) if public is None else public
    values = frozenset(values_of(objects, public=public))
    known = before.secret_traces if before is not None else SecretTraces()
    if not (known.outcomes or any(secrets_in(objects))):
        return replace(assembly, secret_traces=SecretTraces(public_keys=public))
    outcomes: list[Mapping[str, Manifest]] = []
    fields: set[SecretField] = set()
    keys: set[SecretField] = set()
    texts: set[str] = set()
    complete = known.complete
    # once of the same length and once longer: else what follows from a length would not differ
    for number, suffix in enumerate(("", _LONGER)):
        disguise = _Disguise(suffix, public)
        seen = known.outcomes[number] if known.outcomes else disguise.all(observed)
        other = assemble(xr, disguise.workshop(workshop), observed=seen, attributed=attributed)
        outcomes.append(other.observed)
        if _fails_only(other, assembly):
            complete = complete and bool(suffix)  # a longer value may well be refused
            continue
        differing = dict(_differing(assembly, other))
        fields |= differing.keys()
        keys |= {field for field, is_key in differing.items() if is_key}
        texts |= _texts(assembly) - _texts(other) - {*guess_texts(_shared(assembly.guesses, other))}
    traces = SecretTraces(
        values,
        frozenset(fields),
        frozenset(keys),
        frozenset(texts),
        complete,
        tuple(outcomes),
        frozenset(_easy(objects, public)),
        public,
    )
    return replace(assembly, secret_traces=traces)


def _easy(objects: Iterable[Manifest], public: frozenset[str]) -> Iterator[str]:
    for key, text in entries_of(objects):
        if key not in public and not names_public(key) and not is_searched(text, key):
            yield text


def secret_fields(assembly: Assembly, live: Mapping[str, Manifest]) -> frozenset[SecretField]:
    """
    Return the fields of live objects that follow from a Secret, or may: no recording has them.

    Beside traced fields, these are the fields that are not as the assembly has them: somebody else
    wrote them, or a station that saw a Secret as it was then.

    Args:
        live: By path; the XR at ''.
    """
    traces = assembly.secret_traces
    if not traces.outcomes:
        return frozenset()
    if not traces.complete:
        return traces.fields | {("", ("status",)), *((path, ()) for path in live if path)}
    predicted = {**assembly.observed, "": assembly.xr}
    return traces.fields | {
        (path, field.steps)
        for path, manifest in live.items()
        for field in differences(manifest, predicted.get(path, {}), into_lists=True)
        if field.old is not ABSENT and _is_content(path, field.steps)
    }


def _is_content(path: str, steps: Steps) -> bool:
    """Return whether a station may have written a field: no metadata, no provider's status."""
    if not path:
        return steps[0] == "status" and steps[:2] != ("status", "conditions")
    return steps[0] not in {"apiVersion", "kind", "metadata", "status"}


def _looked_up(assembly: Assembly, workshop: AssemblyContext) -> Iterator[Manifest]:
    if workshop.lookup is not None:
        for selector in assembly.requirements:
            yield from workshop.lookup(selector)


@dataclass(frozen=True, slots=True)
class _Disguise:
    """Gives Secrets other values of the same form."""

    suffix: str
    """What makes values longer."""
    public: frozenset[str]
    """Keys that keep their values."""

    def workshop(self, workshop: AssemblyContext) -> AssemblyContext:
        """Return the workshop with other values in its Secrets."""
        existing = [self.manifest(manifest) for manifest in workshop.existing]
        lookup = _DisguisedLookup(workshop.lookup, self) if workshop.lookup is not None else None
        return replace(workshop, existing=existing, lookup=lookup)

    def all(self, objects: Mapping[str, Manifest]) -> dict[str, Manifest]:
        return {path: self.manifest(manifest) for path, manifest in objects.items()}

    def manifest(self, value: Any) -> Any:
        """Return an object with other values in its Secrets; without one, the same object."""
        if next(secrets_in(value), None) is None:
            return value
        if isinstance(value, list):
            return [self.manifest(entry) for entry in value]
        if not is_secret(value):
            return {key: self.manifest(entry) for key, entry in value.items()}
        secret = dict(value)
        for name, other in (("data", _other_data), ("stringData", _other_text)):
            if isinstance(secret.get(name), dict):
                secret[name] = {
                    key: text if key in self.public else other(str(text), self.suffix)
                    for key, text in secret[name].items()
                }
        applied = annotations_of(secret).get(APPLIED)
        if applied:
            notes = {**annotations_of(secret), APPLIED: _other_text(applied, self.suffix)}
            secret["metadata"] = {**metadata(secret), "annotations": notes}
        return secret


class _DisguisedLookup:
    """Looks up objects with other values in their Secrets; disguises each once."""

    def __init__(self, lookup: Lookup, disguise: _Disguise) -> None:
        self._lookup, self._disguise = lookup, disguise
        self._answers: dict[str, Sequence[Manifest]] = {}

    def __call__(self, selector: Selector) -> Sequence[Manifest]:
        name = selector_text(selector)
        if name not in self._answers:
            objects = self._lookup(selector)
            self._answers[name] = [self._disguise.manifest(each) for each in objects]
        return self._answers[name]


def _other_data(text: str, suffix: str) -> str:
    plain = decoded(text)
    if not plain:
        return base64.b64encode(_other_text(text, suffix).encode()).decode()
    return base64.b64encode(_other_text(plain, suffix).encode()).decode()


def _other_text(text: str, suffix: str) -> str:
    """Return another value of the same form; with a suffix, a longer one."""
    data = as_json(text) if text.lstrip()[:1] in {"{", "["} else None
    if isinstance(data, (dict, list)):
        return json.dumps(_other_leaves(data, suffix))
    pieces, end = [], 0
    for match in _FIXED.finditer(text):
        pieces += [text[end : match.start()].translate(_OTHER), match[0]]
        end = match.end()
    other = "".join([*pieces, text[end:].translate(_OTHER)])
    longer = "\n".join(f"{line}{suffix}" if line else line for line in other.split("\n"))
    return longer if longer != text else f"{text}x"


def _other_leaves(value: Any, suffix: str) -> Any:
    if isinstance(value, dict):
        return {key: _other_leaves(entry, suffix) for key, entry in value.items()}
    if isinstance(value, list):
        return [_other_leaves(entry, suffix) for entry in value]
    if isinstance(value, str):
        return _other_text(value, suffix)
    return value + 1 if isinstance(value, (int, float)) and not isinstance(value, bool) else value


def _fails_only(other: Assembly, assembly: Assembly) -> bool:
    """Return whether a pipeline fails with other values and not with the real ones."""
    return bool(other.stuck - assembly.stuck)


def _differing(assembly: Assembly, other: Assembly) -> Iterator[tuple[SecretField, bool]]:
    """Yield fields with other values, and whether they exist for some values only."""
    xrs = [{"": {"status": side.xr.get("status") or {}}} for side in (assembly, other)]
    for objects, others in (
        (assembly.resources, other.resources),
        (assembly.observed, other.observed),
        xrs,
    ):
        for path, manifest in objects.items():
            if path not in others:
                yield (path, ()), True
                continue
            for field in differences(manifest, others[path], into_lists=True):
                if field.old is not ABSENT:
                    yield (path, field.steps), field.new is ABSENT


def _shared(guesses: Collection[Guess], other: Assembly) -> Iterator[Guess]:
    """Yield the guesses about fields that an assembly has, too: nobody looked for its own."""
    objects = {**other.resources, "": {"status": other.xr.get("status") or {}}}
    places = {guess.path for guess in guesses} & objects.keys()
    fields = {path: {f.path for f in differences(objects[path], {})} for path in places}
    return (guess for guess in guesses if guess.field in fields.get(guess.path, ()))


def _texts(assembly: Assembly) -> set[str]:
    """Return the sentences of an outcome, and the paths of what it composes."""
    return {
        *(fault.message for fault in assembly.faults),
        *(note.message for note in assembly.notes),
        *assembly.unknowns,
        *assembly.missing,
        *assembly.resources,
    }
