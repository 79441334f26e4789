"""
Secrets in readable places: ConfigMaps, annotations, arguments, the order's status.

Two signs: the value of a known Secret appears elsewhere, or a key of a ConfigMap has the name of a
secret. Values that are easy to guess appear everywhere (``secret_values``): of those, only what
stations made of them counts. The value itself is never written into the message.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator

from ground.objects.kube_objects import Kind, Manifest, wrapped_object
from ground.objects.values import value_at
from orderkit.core.plan.assembly import Assembly
from orderkit.core.plan.dangers.danger_codes import Code, Danger, DangerContext
from orderkit.core.plan.object_texts import key_text
from orderkit.core.plan.outcome_objects import objects_of
from orderkit.core.secret_values import SECRET_NAME, SecretTexts, leaves, secrets_in, values_of

_REFERENCE_NAME = re.compile(r"(name|ref|path|file|url|key-?name)s?\Z", re.IGNORECASE)


def secret_values(before: Assembly, after: Assembly, context: DangerContext) -> frozenset[str]:
    """Return the decoded values of all known Secrets that are hard to guess."""
    public = before.secret_traces.public_keys | after.secret_traces.public_keys
    objects = [*context.existing, *before.observed.values(), *after.observed.values()]
    objects += [obj.manifest for side in (before, after) for obj in objects_of(side)]
    traced = before.secret_traces.values | after.secret_traces.values
    return frozenset({*values_of(objects, public=public), *traced})


def exposure_dangers(
    before: Assembly, after: Assembly, secrets: Collection[str]
) -> Iterator[Danger]:
    """Yield places that expose a secret now and did not before."""
    was = dict(_readable_texts(before)) if secrets else {}
    for field_key, texts in _readable_texts(after) if secrets else ():
        path, field = field_key
        is_exposed, was_exposed = (
            _holds(field_texts, secrets) for field_texts in (texts, was.get(field_key, []))
        )
        if is_exposed and not was_exposed:
            about = after.resources.get(path, after.xr)
            message = f"{key_text(about)}: {field} contains the value of a Secret"
            yield Danger(path, Code.EXPOSED, message)
    for path, field in sorted(set(_copies(after)) - set(_copies(before))):
        about = after.resources.get(path, after.xr)
        message = f"{key_text(about)}: {field} contains the value of a Secret"
        yield Danger(path, Code.EXPOSED, message)
    for path, manifest in after.resources.items():
        yield from _secret_like_keys(path, manifest, before.resources.get(path))


def _copies(assembly: Assembly) -> Iterator[tuple[str, str]]:
    """Yield path and top-level field where a value that is easy to guess was copied to."""
    values = SecretTexts((), words=assembly.secret_traces.easy)
    for path, steps in assembly.secret_traces.fields if values else ():
        manifest = assembly.resources.get(path, {}) if path else assembly.xr
        if steps and manifest and not any(secrets_in(manifest)):
            texts = leaves(value_at(manifest, steps))
            if any(map(values.in_text, texts)):
                yield path, str(steps[0])


def _holds(texts: Iterable[str], secrets: Collection[str]) -> bool:
    return any(value in text for text in texts for value in secrets)


def _readable_texts(assembly: Assembly) -> Iterator[tuple[tuple[str, str], list[str]]]:
    """Yield the texts that readers of an object see, by path and top-level field."""
    for obj in objects_of(assembly):
        if obj.kind.kind == "Secret" or wrapped_object(obj.manifest) is not None:
            continue
        for key, value in obj.manifest.items():
            if key not in {"apiVersion", "kind"}:
                yield (obj.path, obj.field(key)), list(_texts(value))
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


def _secret_like_keys(path: str, manifest: Manifest, old: Manifest | None) -> Iterator[Danger]:
    kind = Kind.of(manifest)
    if (kind.group, kind.kind) != ("", "ConfigMap"):
        return
    old_data = (old or {}).get("data") or {}
    for key, value in (manifest.get("data") or {}).items():
        is_secret_key = SECRET_NAME.search(str(key)) and not _REFERENCE_NAME.search(str(key))
        if is_secret_key and value and key not in old_data:
            message = f"{key_text(manifest)}: data.{key} is named like a secret"
            yield Danger(path, Code.EXPOSED, message)
