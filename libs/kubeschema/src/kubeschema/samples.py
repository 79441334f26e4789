"""
Generate values that a schema allows: a first one, and others that differ from it in one field.

Small on purpose: it tries enums, defaults, bounds, the words of a pattern and a list of common
texts, and gives up where none fits; then the kit needs examples. Rules in CEL and the like are met
by trial (`valid_samples`).
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from kubeschema.re2_patterns import PatternError, compile_pattern

__all__ = [
    "NoSampleError",
    "alternatives",
    "fits",
    "long_text",
    "longest",
    "sample",
    "several",
    "valid_samples",
]

Schema = Mapping[str, Any]

_TEXTS = (
    *("example", "team-a", "a1b2c3", "abc", "a", "A", "ABC", "Example", "1", "10", "000000"),
    *("example.org", "https://example.org", "user@example.org", "group:default/team-a"),
    *("10.0.0.0/16", "10.0.0.1", "1Gi", "10Gi", "100Mi", "500m", "1.0.0", "v1.0.0", "1.30"),
    *("2026-01-01", "2026-01-01T00:00:00Z", "12h", "30d", "60s", "eu-west-1", "europe-west1-b"),
    *("team-a/example", "example:1.0.0", "EUR", "de", "+49301234567"),
)
_FORMATS = {
    "date": "2026-01-01",
    "date-time": "2026-01-01T00:00:00Z",
    "email": "user@example.org",
    "hostname": "example.org",
    "ipv4": "10.0.0.1",
    "ipv6": "2001:db8::1",
    "cidr": "10.0.0.0/16",
    "uri": "https://example.org",
    "uuid": "6ba7b810-9dad-11d1-80b4-00c04fd430c8",
    "duration": "1h",
    "byte": "YQ==",
    "mac": "00:00:5e:00:53:01",
}
_NUMBERS = (-1, 0, 1, 2, 3, 7, 10, 100, 1000, 1024, 4096)
_TRIALS_MAX = 150
_BETWEEN_WORDS = re.compile(r"[\^$()|?]+")
_CHARACTER = re.compile(
    r"(?:\\(?P<kind>[dw])|\\(?P<escaped>.)|\[(?P<group>[^\]^][^\]]*)\]|(?P<plain>[^\\^$|?*+{}()\[\]]))"
    r"(?:(?P<any>[?*])|\{(?P<least>[0-9]+)(?:,[0-9]*)?\})?"
)
"""A character of a pattern, and how often it stands there."""
_LONG = ("a", "0", "A", "a0")


class NoSampleError(ValueError):
    """No valid value was found."""


def sample(schema: Schema) -> Any:
    """
    Return a value that the schema allows: its default, or a small simple one.

    Raises:
        NoSampleError: None of the common texts matches a pattern.
    """
    if "default" in schema:
        return schema["default"]
    if schema.get("enum"):
        return schema["enum"][0]
    if schema.get("x-kubernetes-int-or-string"):
        return 1
    return _BY_TYPE.get(str(schema.get("type")), _anything)(schema)


def valid_samples(schema: Schema, *, complete: bool = False) -> Iterator[dict[str, Any]]:
    """
    Yield objects that may meet rules beyond the schema's keywords, the simplest first.

    After the sample: with one more or another field, with all fields, with two changes.

    Args:
        complete: Begin with all fields.

    Raises:
        NoSampleError: None of the common texts matches a pattern.
    """
    plain: dict[str, Any] = sample({key: schema[key] for key in schema if key != "default"})
    full = {**_complete(schema), **plain}
    queue = [plain, *(value for _, value in alternatives(schema, plain)), full]
    queue = [full, *queue] if complete else queue
    queue += [value for _, value in alternatives(schema, full)]
    tried: list[dict[str, Any]] = []
    while queue and len(tried) < _TRIALS_MAX:
        candidate = queue.pop(0)
        if candidate in tried:
            continue
        tried.append(candidate)
        yield candidate
        if len(queue) < _TRIALS_MAX:
            queue += [value for _, value in alternatives(schema, candidate)]


def _complete(schema: Schema) -> dict[str, Any]:
    """Return a sample of each field for which there is one."""
    fields = {}
    for name, inner in (schema.get("properties") or {}).items():
        with contextlib.suppress(NoSampleError):
            fields[name] = sample(inner)
    return fields


def alternatives(schema: Schema, value: Mapping[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """
    Yield variations with their descriptions: other enum values and booleans, more or fewer fields.

    Varies the fields of objects, but not the entries of lists and maps.
    """
    required = set(schema.get("required") or ())
    for name, inner in (schema.get("properties") or {}).items():
        for variation, other in _other_values(inner, value.get(name), present=name in value):
            yield f"{name}{variation}", {**value, name: other}
        if name in value and name not in required and "default" not in inner:
            yield f"without {name}", {key: entry for key, entry in value.items() if key != name}


def several(schema: Schema, texts: Iterable[str] = ()) -> Iterator[Any]:
    """
    Yield several values of a field, so that a rule about it meets more than one of them.

    Every entry of an enum, both booleans, numbers at and between the bounds, common texts.

    Args:
        texts: More texts to try.
    """
    if schema.get("enum"):
        yield from schema["enum"]
    elif schema.get("type") == "boolean":
        yield from (False, True)
    elif schema.get("type") in {"integer", "number"}:
        yield from _numbers(schema)
    elif schema.get("type") == "string":
        yield from (text for text in (*_example(schema), *texts, *_TEXTS) if fits(schema, text))
    else:
        with contextlib.suppress(NoSampleError):
            yield sample(schema)


def _numbers(schema: Schema) -> Iterator[float]:
    lowest, highest = schema.get("minimum", -1000), schema.get("maximum", 100_000)
    step = schema.get("multipleOf") or 1
    tried = {lowest, highest, *(number * step for number in _NUMBERS)}
    tried |= {2.5 * step} if schema.get("type") == "number" else set()
    yield from (n for n in sorted(tried) if lowest <= n <= highest and (step == 1 or n % step == 0))


def _other_values(schema: Schema, value: Any, *, present: bool) -> Iterator[tuple[str, Any]]:
    if not present:
        with contextlib.suppress(NoSampleError):
            yield " given", sample(schema)
    elif schema.get("enum"):
        yield from ((f"={entry}", entry) for entry in schema["enum"] if entry != value)
    elif schema.get("type") == "boolean":
        yield f"={str(not value).lower()}", not value
    elif schema.get("type") == "object" and isinstance(value, Mapping):
        yield from ((f".{variation}", other) for variation, other in alternatives(schema, value))


def longest(schema: Schema, limit: int) -> int:
    """Return the maximum length of a value's text, at most `limit`."""
    if schema.get("enum"):
        return min(limit, max(len(str(entry)) for entry in schema["enum"]))
    if schema.get("type") in {"integer", "number"}:
        bounds = [schema[key] for key in ("minimum", "maximum") if key in schema]
        return min(limit, max(len(str(bound)) for bound in bounds)) if bounds else limit
    cap = min(limit, int(schema.get("maxLength", limit)))
    return next((length for length in range(cap, 0, -1) if long_text(schema, length)), 0)


def long_text(schema: Schema, length: int) -> str | None:
    """Return a text of this length that matches the pattern; None if none was found."""
    texts = [(letters * length)[:length] for letters in _LONG]
    with contextlib.suppress(NoSampleError):
        texts += _stretched(_text(schema), length)
    return next((text for text in texts if fits(schema, text)), None)


def _stretched(text: str, length: int) -> Iterator[str]:
    """Yield the text extended to this length by repeating one of its characters."""
    missing_length = length - len(text)
    for index in range(len(text) if missing_length >= 0 else 0):
        yield text[: index + 1] + text[index] * missing_length + text[index + 1 :]


def fits(schema: Schema, text: str) -> bool:
    """Say whether a text matches the length and pattern of a schema."""
    pattern = schema.get("pattern")
    shortest_allowed, longest_allowed = int(schema.get("minLength", 0)), schema.get("maxLength")
    if len(text) < shortest_allowed or (
        longest_allowed is not None and len(text) > longest_allowed
    ):
        return False
    try:
        if pattern is not None and compile_pattern(str(pattern)).search(text) is None:
            return False
    except PatternError:
        return False
    if text not in (schema.get("enum") or (text,)):
        return False
    choices = [schema[key] for key in ("oneOf", "anyOf") if schema.get(key)]
    return all(any(fits(branch, text) for branch in branches) for branches in choices)


def _text(schema: Schema) -> str:
    format_sample = _FORMATS.get(str(schema.get("format")))
    common = [format_sample] if format_sample else list(_TEXTS)
    candidates = [
        *_example(schema),
        *common,
        *_words(schema),
        _spelled(str(schema.get("pattern") or "")),
        "x" * int(schema.get("minLength", 0)),
    ]
    for candidate in candidates:
        if fits(schema, candidate):
            return candidate
    raise NoSampleError(f"no text for pattern {schema.get('pattern')!r}")


def _example(schema: Schema) -> list[str]:
    return [str(schema["example"])] if "example" in schema else []


def _words(schema: Schema) -> list[str]:
    """Return the words that stand in a pattern, or in the patterns and enums to choose from."""
    branches = [branch for key in ("oneOf", "anyOf", "allOf") for branch in schema.get(key) or ()]
    words = [word for branch in branches for word in map(str, branch.get("enum") or ())]
    for part in (schema, *branches):
        pattern = str(part.get("pattern") or "")
        words += [word.replace("\\", "") for word in _BETWEEN_WORDS.split(pattern) if word]
    return words


def _spelled(pattern: str) -> str:
    """
    Return the shortest text of a pattern, if it has no choices and groups.

    Of digits it takes none that is 0: a number of them may have to be at least 1.
    """
    text = ""
    for found in _CHARACTER.finditer(pattern):
        group = found["group"] or {"d": "1", "w": "a"}.get(found["kind"] or "", "")
        letter = found["escaped"] or found["plain"] or (group.lstrip("0-\\") or "]")[0]
        text += letter * (0 if found["any"] else int(found["least"] or 1))
    return text


def _integer(schema: Schema) -> int:
    lowest = int(schema.get("minimum", min(1, int(schema.get("maximum", 1)))))
    step = int(schema.get("multipleOf", 1)) or 1
    if schema.get("exclusiveMinimum") is True:
        lowest += 1
    return -(-lowest // step) * step


def _number(schema: Schema) -> float:
    return _integer(schema)


def _object(schema: Schema) -> dict[str, Any]:
    properties = schema.get("properties") or {}
    return {
        name: sample(properties[name])
        for name in schema.get("required") or ()
        if name in properties
    }


def _list(schema: Schema) -> list[Any]:
    return [sample(schema.get("items") or {}) for _ in range(int(schema.get("minItems", 0)))]


def _boolean(_: Schema) -> bool:
    return False


def _anything(_: Schema) -> Any:
    return {}


_BY_TYPE: Mapping[str, Callable[[Schema], Any]] = {
    "string": _text,
    "integer": _integer,
    "number": _number,
    "boolean": _boolean,
    "array": _list,
    "object": _object,
}
