"""
Secrets where everybody may read them: in ConfigMaps, annotations, arguments, the order's status.

Two ways to notice: a value of a known Secret appears elsewhere, or a key of a ConfigMap is called
as secrets are. Short values are left out, because they would be found everywhere. Values are never
written into the danger.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Collection, Iterable, Iterator

from orderkit.core.objects.kube_objects import Kind, Manifest
from orderkit.core.plan.assembly import Assembly, key_text
from orderkit.core.plan.dangers.danger_codes import Code, Danger, DangerContext
from orderkit.core.plan.outcome_objects import parts_of, wrapped

_SHORTEST = 8
_CALLED = re.compile(
    r"pass(word|wd|phrase)|secret|token|api[-_]?key|private[-_]?key|credential|access[-_]?key",
    re.IGNORECASE,
)
_REFERS = re.compile(r"(name|ref|path|file|url|key-?name)s?\Z", re.IGNORECASE)


def secrets_of(before: Assembly, after: Assembly, mind: DangerContext) -> frozenset[str]:
    """Return every value of a Secret that is known, decoded."""
    return frozenset({*_values(before), *_values(after), *_of(mind.existing)})


def exposures(before: Assembly, after: Assembly, known: Collection[str]) -> Iterator[Danger]:
    """Yield secrets that stand somewhere now and did not before."""
    was = dict(_places(before)) if known else {}
    for place, texts in _places(after) if known else ():
        path, field = place
        found, had = (_holds(each, known) for each in (texts, was.get(place, [])))
        if found and not had:
            about = after.resources.get(path, after.xr)
            told = f"{key_text(about)}: {field} holds what a Secret holds"
            yield Danger(path, Code.EXPOSED, told)
    for path, manifest in after.resources.items():
        yield from _called(path, manifest, before.resources.get(path))


def _holds(texts: Iterable[str], known: Collection[str]) -> bool:
    return any(value in text for text in texts for value in known)


def _values(assembly: Assembly) -> Iterator[str]:
    yield from _of(part.manifest for part in parts_of(assembly))
    yield from _of(assembly.observed.values())


def _of(manifests: Iterable[Manifest]) -> Iterator[str]:
    """Yield the values of Secrets, decoded."""
    for manifest in manifests:
        kind = Kind.of(manifest)
        if (kind.group, kind.kind) != ("", "Secret"):
            continue
        texts = [str(value) for value in (manifest.get("stringData") or {}).values()]
        texts += [_decoded(str(value)) for value in (manifest.get("data") or {}).values()]
        yield from (text for text in texts if len(text) >= _SHORTEST)


def _decoded(text: str) -> str:
    try:
        return base64.b64decode(text, validate=True).decode()
    except (binascii.Error, ValueError):
        return ""


def _places(assembly: Assembly) -> Iterator[tuple[tuple[str, str], list[str]]]:
    """Yield texts that everybody may read, by path and first fields."""
    for part in parts_of(assembly):
        if part.kind.kind == "Secret" or wrapped(part.manifest) is not None:
            continue
        for key, value in part.manifest.items():
            if key not in {"apiVersion", "kind"}:
                yield (part.path, part.field(key)), list(_texts(value))
    yield ("", "status"), list(_texts(assembly.xr.get("status") or {}))


def _texts(value: object) -> Iterator[str]:
    if isinstance(value, dict):
        for entry in value.values():
            yield from _texts(entry)
    elif isinstance(value, list):
        for entry in value:
            yield from _texts(entry)
    elif isinstance(value, str):
        yield value


def _called(path: str, manifest: Manifest, old: Manifest | None) -> Iterator[Danger]:
    kind = Kind.of(manifest)
    if (kind.group, kind.kind) != ("", "ConfigMap"):
        return
    had = (old or {}).get("data") or {}
    for key, value in (manifest.get("data") or {}).items():
        named = _CALLED.search(str(key)) and not _REFERS.search(str(key))
        if named and value and key not in had:
            told = f"{key_text(manifest)}: data.{key} is called as secrets are"
            yield Danger(path, Code.EXPOSED, told)
