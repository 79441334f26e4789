"""
The values of Secrets: where they are in objects, and whether a text contains one.

A Secret counts at any depth of an object: composed, wrapped in a provider's Object, or observed in
its status. Texts are compared with every value and its encodings (``ground.secrets``), and with the
parts of a value that is JSON, a URL, or lines of ``name: value``.
"""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections.abc import Collection, Iterable, Iterator
from itertools import islice
from typing import Any
from urllib.parse import unquote, urlsplit

from ground.objects.kube_objects import Kind, Manifest, annotations_of
from ground.secrets import MASK, SHORTEST, forms_of

SECRET = Kind("", "v1", "Secret")
OPEN_FIELDS = {"apiVersion", "kind", "metadata", "type", "immutable"}
"""What a Secret shows. Everything else is secret, also a misspelt ``stringdata``."""
APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
"""Where ``kubectl apply`` keeps a second copy of the whole object, including secrets."""
SHORTEST_INSIDE = 8
"""Shorter values are found only as whole words: inside words they would be everywhere."""
_COMPARED_MAX = 1_000
"""Characters of a long value that are compared."""
_WORDS = {"true", "false", "null", "none"}
"""Values that are not secret, and stand in most objects."""
_PARTS_MAX = 200
"""Of one value: a whole configuration file may be in a Secret."""
_NAME = re.compile(r"""[\w."'-]+""")


def is_secret(value: object) -> bool:
    """Return whether a part of an object is a Secret."""
    return isinstance(value, dict) and (
        (value.get("apiVersion"), value.get("kind")) == (SECRET.api_version, SECRET.kind)
    )


def secrets_in(value: Any) -> Iterator[Manifest]:
    """Yield the Secrets in an object, at any depth."""
    pending = [value]  # plans look through everything they handle, so without recursion
    while pending:
        part = pending.pop()
        if is_secret(part):
            yield part
        elif isinstance(part, dict | list):
            entries = part if isinstance(part, list) else part.values()
            pending += [entry for entry in reversed(entries) if isinstance(entry, dict | list)]


def values_of(objects: Iterable[Any]) -> Iterator[str]:
    """Yield the values of all Secrets in objects, decoded; one that is not text as it stands."""
    for manifest in objects:
        for secret in secrets_in(manifest):
            for name, values in secret.items():
                for text in leaves(values) if name not in OPEN_FIELDS else ():
                    yield (decoded(text) if name == "data" else "") or text
            applied = annotations_of(secret).get(APPLIED)
            if applied:
                yield from values_of([as_json(applied)])


def decoded(text: str) -> str:
    """Return what base64 text encodes; empty if it encodes no text."""
    try:
        return base64.b64decode("".join(text.split()), validate=True).decode()
    except (binascii.Error, ValueError):
        return ""


def as_json(text: str) -> Any:
    """Return what a JSON text says; None if it is none."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


class SecretTexts:
    """Values that no view may show, in all their forms."""

    def __init__(self, values: Iterable[str], *, public: Collection[str] = ()) -> None:
        """
        Take values.

        Args:
            public: Texts that everybody knows, such as names of objects: no secrets.
        """
        secret = {value for value in values if len(value) >= SHORTEST} - {*public, *_WORDS}
        parts = {part for value in secret for part in islice(_parts(value), _PARTS_MAX)} - {*public}
        long = {text for text in secret | parts if len(text) >= SHORTEST_INSIDE}
        forms = {form for text in long for form in forms_of(text[:_COMPARED_MAX])}
        self._forms = sorted(forms, key=lambda form: (-len(form), form))
        words = sorted(re.escape(form) for text in secret - long for form in forms_of(text))
        self._word = re.compile(rf"(?<![A-Za-z0-9])(?:{'|'.join(words)})(?![A-Za-z0-9])")
        self._has_words = bool(words)

    def __bool__(self) -> bool:
        return bool(self._forms) or self._has_words

    def in_text(self, text: str, *, long_only: bool = False) -> bool:
        """Return whether a text contains a value."""
        return any(form in text for form in self._forms) or (
            self._has_words and not long_only and bool(self._word.search(text))
        )

    def redact(self, text: str) -> str:
        """Return a message without values, also those that were cut where the message ends."""
        for form in self._forms:
            text = text.replace(form, MASK)
        text = self._word.sub(MASK, text) if self._has_words else text
        return self._without_cut(text) if "…" in text else text

    def _without_cut(self, text: str) -> str:
        """Remove the beginning of a value before each ellipsis."""
        *beginnings, end = text.split("…")
        return "…".join([*map(self._without_end, beginnings), end])

    def _without_end(self, text: str) -> str:
        beginnings = (
            length
            for form in self._forms
            for length in range(SHORTEST, min(len(form), len(text)) + 1)
            if text.endswith(form[:length])
        )
        length = max(beginnings, default=0)
        return text[:-length] + MASK if length else text


NO_SECRETS = SecretTexts(())


def _parts(value: str) -> Iterator[str]:
    """Yield the texts inside a structured value that may be secrets of their own."""
    yield from (text for text in leaves(as_json(value)) if len(text) >= SHORTEST_INSIDE)
    for line in value.splitlines():
        for separator in ("=", ": "):
            name, _, rest = line.partition(separator)
            text = rest.strip().strip("\"'")
            if len(text) >= SHORTEST_INSIDE and _NAME.fullmatch(name.strip()):
                yield text
    if "://" in value:
        try:
            yield unquote(urlsplit(value.strip()).password or "")
        except ValueError:
            return


def leaves(value: Any) -> Iterator[str]:
    """Yield all texts in a value, at any depth."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for entry in value.values():
            yield from leaves(entry)
    elif isinstance(value, list):
        for entry in value:
            yield from leaves(entry)
