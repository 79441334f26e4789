"""
The values of Secrets: where they are in objects, and whether a text contains one.

A Secret counts at any depth of an object: composed, wrapped in a provider's Object, or observed in
its status. Texts are compared with every value that is hard to guess (``guessable_values``) and its
encodings (``ground.secrets``), and with such parts of a value that is JSON, a URL, or lines of
``name: value``. What is easy to guess stands in texts that have nothing to do with the Secret: it
is found by where it comes from (``plan.secret_traces``), or not at all.
"""

from __future__ import annotations

import base64
import binascii
import copy
import json
import re
from collections.abc import Collection, Iterable, Iterator
from itertools import islice
from typing import Any
from urllib.parse import unquote, urlsplit

from ground.objects.kube_objects import Kind, Manifest, annotations_of
from ground.secrets import MASK, SHORTEST, forms_of
from orderkit.core.guessable_values import SHORTEST_SEARCHED, is_searched

SECRET = Kind("", "v1", "Secret")
_API_VERSION = SECRET.api_version
OPEN_FIELDS = {"apiVersion", "kind", "metadata", "type", "immutable"}
"""What a Secret shows. Everything else is secret, also a misspelt ``stringdata``."""
APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
"""Where ``kubectl apply`` keeps a second copy of the whole object, including secrets."""
_COMPARED_MAX = 1_000
"""Characters of a long value that are compared."""
_PARTS_MAX = 200
"""Of one value: a whole configuration file may be in a Secret."""
_NAME = re.compile(r"""[\w."'-]+""")


def is_secret(value: object) -> bool:
    """Return whether a part of an object is a Secret."""
    return (
        isinstance(value, dict)
        and value.get("kind") == SECRET.kind
        and value.get("apiVersion") == _API_VERSION
    )


def secrets_in(value: Any) -> Iterator[Manifest]:
    """Yield the Secrets in an object, at any depth."""
    pending: list[Any] = [value] if isinstance(value, (dict, list)) else []
    # without recursion, because plans look through everything that they handle
    while pending:
        part = pending.pop()
        if is_secret(part):
            yield part
            continue
        entries = reversed(part.values() if isinstance(part, dict) else part)
        pending += [entry for entry in entries if isinstance(entry, (dict, list))]


def values_of(objects: Iterable[Any], *, public: Collection[str] = ()) -> Iterator[str]:
    """
    Yield the values of all Secrets in objects that texts are searched for, decoded.

    A value that is not text is yielded as it stands.

    Args:
        public: Keys of Secrets that are declared public.
    """
    for manifest in objects:
        for secret in secrets_in(manifest):
            for name, values in secret.items():
                for key, text in leaves_by_key(values) if name not in OPEN_FIELDS else ():
                    value = (decoded(text) if name == "data" else "") or text
                    if key not in public and may_be_searched(value, key):
                        yield value
            applied = annotations_of(secret).get(APPLIED)
            if applied:
                yield from values_of([as_json(applied)], public=public)


def entries_of(objects: Iterable[Any]) -> Iterator[tuple[str, str]]:
    """Yield the keys and decoded texts of all Secrets in objects."""
    for manifest in objects:
        for secret in secrets_in(manifest):
            for name in ("data", "stringData"):
                values = secret.get(name)
                for key, text in values.items() if isinstance(values, dict) else ():
                    yield str(key), decoded(str(text)) if name == "data" else str(text)


def may_be_searched(value: str, key: str) -> bool:
    """Return whether texts are searched for a value of a Secret, or for a part of it."""
    return is_searched(value, key) or any(_searched_parts(value))


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

    def __init__(
        self, values: Iterable[str], *, public: Collection[str] = (), words: Iterable[str] = ()
    ) -> None:
        """
        Take values. Those that are easy to guess are not searched for.

        Args:
            public: Texts that everybody knows, such as names of objects: no secrets.
            words: Values to take out wherever they stand as whole words, easy to guess or not.
        """
        secret = set(values)
        parts = {text for value in secret for text in _searched_parts(value)}
        searched = {*filter(is_searched, secret), *parts} - {*public}
        forms = {form for text in searched for form in forms_of(text[:_COMPARED_MAX])}
        self._forms = sorted(forms, key=lambda form: (-len(form), form))
        self._public = frozenset(public)
        self._words(words)

    def _words(self, words: Iterable[str]) -> None:
        short = {word for word in words if len(word) >= SHORTEST} - self._public
        escaped = sorted(map(re.escape, short), key=lambda form: (-len(form), form))
        self._word = re.compile(rf"(?<![A-Za-z0-9])(?:{'|'.join(escaped)})(?![A-Za-z0-9])")
        self._has_words = bool(escaped)

    def with_words(self, words: Iterable[str]) -> SecretTexts:
        """Return the same values, and these as whole words in place of the words so far."""
        texts = copy.copy(self)
        texts._words(words)  # noqa: SLF001 - of this class
        return texts

    def __bool__(self) -> bool:
        return bool(self._forms) or self._has_words

    def in_text(self, text: str) -> bool:
        """Return whether a text contains a value."""
        return any(form in text for form in self._forms) or (
            self._has_words and bool(self._word.search(text))
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


def _searched_parts(value: str) -> Iterator[str]:
    parts = islice(_parts(value), _PARTS_MAX)
    return (text for key, text in parts if is_searched(text, key))


def _parts(value: str) -> Iterator[tuple[str, str]]:
    """Yield the texts inside a structured value that may be secrets of their own, with a key."""
    structure = as_json(value) if value.lstrip()[:1] in {"{", "[", '"'} else None
    yield from ((key, text) for key, text in leaves_by_key(structure) if _is_long(text))
    for line in value.splitlines():
        for separator in ("=", ": "):
            name, _, rest = line.partition(separator)
            text = rest.strip().strip("\"'")
            if _is_long(text) and _NAME.fullmatch(name.strip()):
                yield name.strip(), text
    if "://" in value:
        try:
            yield "password", unquote(urlsplit(value.strip()).password or "")
        except ValueError:
            return


def _is_long(text: str) -> bool:
    return len(text) >= SHORTEST_SEARCHED


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


def leaves_by_key(value: Any, key: str = "") -> Iterator[tuple[str, str]]:
    """Yield all texts in a value, at any depth, with the nearest key above."""
    if isinstance(value, str):
        yield key, value
    elif isinstance(value, dict):
        for name, entry in value.items():
            yield from leaves_by_key(entry, str(name))
    elif isinstance(value, list):
        for entry in value:
            yield from leaves_by_key(entry, key)
