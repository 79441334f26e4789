"""
The values of Secrets: where they are in objects, and whether a text contains one.

A Secret counts at any depth of an object: composed, wrapped in a provider's Object, or observed in
its status. Texts are compared with every value that is hard to guess and its encodings
(``ground.secrets``), and with such parts of a value that is JSON, a URL, or lines of ``name:
value``. What is easy to guess stands in texts that have nothing to do with the Secret: it is found
by where it comes from (``plan.secret_traces``), or not at all.

`is_searched` judges whether a value is long and random enough to be searched for in texts. A Secret
also has values that everyone knows: ``username: postgres``, ``port: 5432``. Whoever searches for
such a value finds images, names and keys. A value is searched for only if

- it has at least `SHORTEST_SEARCHED` characters, and
- a guess has to decide at least `BITS_MIN` bits, by `guess_bits`.

A letter that usually follows the letter before counts 1.5 bits, as in English words. Any other
letter counts 4.7, a digit 3.3, a change of case 1, a separator 1, any other character 4.

So ``postgres`` has 15 bits, ``administrator`` 22, ``hunter2-hunter2`` 38, eight random letters and
digits 33 on average. Of 20,000 random values each, these had too few bits: none with 12 letters and
digits, 1 with 12 hexadecimal digits, 2 % with 8 letters and digits, 13 % with 8 hexadecimal digits.

Under a key that names something public (`PUBLIC_NAME`), a long value may be just an address. There,
only a random word counts, and none in a host name.
"""

from __future__ import annotations

import base64
import binascii
import copy
import json
import marshal
import re
from collections.abc import Collection, Iterable, Iterator
from contextlib import suppress
from itertools import islice
from typing import Any
from urllib.parse import unquote, urlsplit

from ground.objects.kube_objects import Kind, Manifest, annotations_of
from ground.secrets import MASK, SHORTEST, forms_of

SHORTEST_SEARCHED = 8
"""Characters."""
BITS_MIN = 24.0
_WORD_BITS_MIN = 2.5
"""Per character, of a random word."""
_JUDGED_MAX = 200
"""Characters of a long value that are judged."""
PUBLIC_NAME = re.compile(
    r"(?:^|[^a-z])(?:user|user-?name|host|host-?name|address|end-?point|port|data-?base|db|db-?name"
    r"|region|zone|bucket|engine|protocol|scheme|ssl-?mode|name|namespace|type|version)$"
)
"""Last word of a key, in lower case with dashes, whose value is usually known to everyone."""
SECRET_NAME = re.compile(
    r"pass(word|wd|phrase)|secret|token|api[-_]?key|private[-_]?key|credential|access[-_]?key",
    re.IGNORECASE,
)
"""Part of a key whose value is usually a secret."""
_SEPARATORS = frozenset("-_./:@,= \t\n")
_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|[._ ]")
_HOST = re.compile(r"(?:[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?\.)+[a-z]{2,63}(?::\d{1,5})?/?")
_FOLLOWING = {
    "a": "bcdgiklmnprstuvy", "b": "abeiloy", "c": "aehklort", "d": "adeimosuy",
    "e": "acdeflmnpqrstvxy", "f": "aioru", "g": "aeior", "h": "aeio", "i": "cdefglmnorstv",
    "k": "eisu", "l": "adeilosuy", "m": "adeilmopq", "n": "acdegiost", "o": "bcdefklmnoprstuvw",
    "p": "aeiloprstu", "q": "lu", "r": "acdegikmnostuvy", "s": "acehikopqst", "t": "aefghiorstu",
    "u": "belnprst", "v": "aei", "w": "aehinor", "x": "rt", "y": "as",
}  # fmt: skip
"""The letters that often follow a letter in English and in names of programs."""


def is_searched(value: str, key: str = "") -> bool:
    """
    Return whether texts are searched for a value.

    Args:
        key: Of the Secret, or of a part of its value; empty: not known.
    """
    if len(value) < SHORTEST_SEARCHED or guess_bits(value) < BITS_MIN:
        return False
    return not names_public(key) or has_random_word(value)


def names_public(key: str) -> bool:
    """Return whether a key of a Secret names something that everyone may know."""
    words = _HUMP.sub("-", key).lower()
    return bool(PUBLIC_NAME.search(words)) and not SECRET_NAME.search(words)


def has_random_word(value: str) -> bool:
    """Return whether a word of a value is random; words of a host name are not judged."""
    plain = _HOST.sub("", value.strip()) if "://" not in value else _without_host(value)
    words = re.split(r"[^A-Za-z0-9+!#$%&*^~]+", plain[:_JUDGED_MAX])
    return any(
        len(word) >= SHORTEST_SEARCHED
        and not word.isdigit()
        and guess_bits(word) >= max(BITS_MIN, len(word) * _WORD_BITS_MIN)
        for word in words
    )


def _without_host(address: str) -> str:
    """Return the parts of an address that may be secret: user, password, path and query."""
    try:
        parts = urlsplit(address.strip())
    except ValueError:
        return address
    user, at, _host = parts.netloc.rpartition("@")
    return f"{user}{at} {parts.path} {parts.query} {parts.fragment}"


def guess_bits(value: str) -> float:
    """Estimate how many bits a guess of a value has to decide."""
    bits, previous = 0.0, ""
    for character in value[:_JUDGED_MAX]:
        bits += _bits_after(previous, character)
        previous = character
    return bits


def _bits_after(previous: str, character: str) -> float:
    if character.isdigit():
        return 3.3
    if not character.isalpha():
        return 1.0 if character in _SEPARATORS else 4.0
    is_usual = character.lower() in _FOLLOWING.get(previous.lower(), "")
    is_other_case = previous.isalpha() and previous.isupper() != character.isupper()
    return (1.5 if is_usual else 4.7) + is_other_case


SECRET = Kind("", "v1", "Secret")
_API_VERSION = SECRET.api_version
_KIND = marshal.dumps(SECRET.kind, 2)[1:]
"""The word as ``marshal`` writes it, with its length, and without the mark of its type."""
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
    with suppress(ValueError):  # it holds something that is not plain
        # plans look through everything that they handle, and most of it does not hold the word
        if _KIND not in marshal.dumps(value, 2):
            return
    pending: list[Any] = [value] if isinstance(value, (dict, list)) else []
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
    for secret in secrets_in([*objects]):
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
    for secret in secrets_in([*objects]):
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
        # the longest first: an alternative that matches earlier would leave the rest of a longer
        # one
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
