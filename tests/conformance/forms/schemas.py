"""Random schemas as forms have them, with random values that nearly fit."""

from __future__ import annotations

import random
from typing import Any

Schema = dict[str, Any]

PATTERNS = (
    "^[a-z][a-z0-9-]{2,28}$", "^[a-z]+$", "a|b", r"^\d{1,3}$", r"^[\w.-]+@[\w.-]+$", r"^\S+$",
    "^(?!xx).*$", r"\s",
    "^([a-z0-9]+-)*[a-z0-9]+$", r"^[^\s/]+$", "é", ".", "^.{2,3}$", r"^[A-Z_]+\.ts$", "^$",
    r"^v\d+(\.\d+){0,2}$",
    r"^(stage1|stage2)$", r"\bcat\b", "^[a-z]{1,3}?x", r"^[\u00e0-\u00ff]+$", r"^(a|b)\/c$",
    r"^\_$", "a{", r"^\p{L}+$",
    "[", "(?<n>a)", r"(a)?\1b", "^[]$", "^[^]+$",
)  # fmt: skip
FORMATS = (
    "date", "date-time", "time", "email", "hostname", "ipv4", "uuid", "uri", "password", "textarea",
    "entity-ref", "ipv6", "duration", "uri-reference", "color", "float", "int32", "regex",
)  # fmt: skip
TEXTS = (
    "", "a", "ab", "abc", "abcd", "cart", "Team A", "stage1", "stage3", "12", "123", "1.5", "xx1",
    "é", "日本", "😀", "😀😀",
    "a\n", "\n", " ", "a b", "team-a", "team-", "a@b.c", "jane@example.com", "v1.2.3", "_", "a/c",
    "true", "x" * 29, "cat",
    "2026-11-21", "2026-02-29", "2024-02-29", "0000-02-29", "2026-13-01", "2026-00-10", "2026-1-1",
    "2026-11-31",
    "2026-11-21T10:00:00Z", "2026-11-21t10:00:00.5+02:00", "2026-11-21 10:00:00z",
    "2026-11-21T24:00:00Z",
    "2026-11-21T10:00:00", "2026-11-21T23:59:60Z", "2026-11-21T10:00:60Z",
    "2026-11-21T10:00:00+0200", "10:00:00",
    "24:00:00", "23:59:60", "10:00:60", "10:00:00Z", "10:00", "jane.doe+x@sub.example.co", "a@b",
    "a@-b.c", "a@b-.c",
    "a@[1.2.3.4]", ".a@b.c", "a..b@c.d", "ä@b.c", "a@" + "b" * 64 + ".c", "a@" + "b" * 63 + ".c",
    "example.com", "example.com.",
    "-a.b", "a-.b", "a..b", "a" * 63, "a" * 64, ".".join(["a" * 63] * 4), ".".join(["a" * 60] * 4),
    "1.2.3.4", "01.2.3.4", "256.1.1.1",
    "1.2.3", "1.2.3.4\n", "::1", "6ba7b810-9dad-11d1-80b4-00c04fd430c8",
    "6BA7B810-9DAD-11D1-80B4-00C04FD430C8",
    "urn:uuid:6ba7b810-9dad-11d1-80b4-00c04fd430c8", "6ba7b8109dad11d180b400c04fd430c8",
    "http://example.com/a?b=c#d",
    "https://u:p@h:80/x//y", "mailto:a@b.c", "http:", "http:/", "http://", "http:///x", "a:b",
    "a:?q", "//x/y", "/x", "http://a b",
    "http://ä.de", "http://a/%41", "http://a/%4", "urn:a:b", "x:/@:80/y", "http://a:b/",
    "http://a@b@c/", "http://a/{b}", "P1D", "#fff",
)  # fmt: skip
NUMBERS = (
    0, 1, 2, 3, 5, 10, -1, 100, 1.5, 2.0, 0.1, 0.3, 0.7, 1e10, 2**53, -0.5, 0.30000000000000004,
    1e-7, 19.99,
)  # fmt: skip
NAMES = ("name", "stage", "count", "on", "tags", "nested", "x-y")


class Forms:
    """A source of schemas and values."""

    def __init__(self, choices: random.Random) -> None:
        self._random = choices

    def schema(self) -> Schema:
        """Return the schema of a page."""
        return self._object(2)

    def _chance(self, share: float) -> bool:
        return self._random.random() < share

    def _any(self, depth: int) -> Schema:
        kinds = [self._text, self._text, self._number, self._boolean, self._choice]
        found = self._random.choice(kinds)() if depth <= 0 or self._chance(0.7) else None
        if found is None:
            found = self._random.choice((self._object, self._list, self._mixed))(depth - 1)
        if self._chance(0.2):
            found |= {
                "title": "T",
                "description": "d",
                "ui:widget": "x",
                "errorMessage": {"type": "own words"},
            }
        return found

    def _text(self) -> Schema:
        choose = self._random.choice
        found: Schema = {"type": "string"}
        optional: Schema = {
            "pattern": choose(PATTERNS[:-7] if self._chance(0.9) else PATTERNS),
            "minLength": choose((0, 1, 2, 3)), "maxLength": choose((0, 2, 5, 20)),
            "format": choose(FORMATS[:11] if self._chance(0.9) else FORMATS),
        }  # fmt: skip
        return found | {key: value for key, value in optional.items() if self._chance(0.35)}

    def _number(self) -> Schema:
        choose = self._random.choice
        optional: Schema = {
            "minimum": choose(NUMBERS), "maximum": choose(NUMBERS),
            "exclusiveMinimum": choose(NUMBERS),
            "exclusiveMaximum": choose(NUMBERS), "multipleOf": choose((1, 2, 0.1, 0.01, 0.25, 3)),
        }  # fmt: skip
        return {"type": choose(("number", "integer"))} | {
            key: value for key, value in optional.items() if self._chance(0.25)
        }

    def _boolean(self) -> Schema:
        return {"type": "boolean"}

    def _choice(self) -> Schema:
        pool: Any = self._random.choice(
            (
                TEXTS,
                TEXTS,
                NUMBERS,
                (1, "1", True, None, [], [1], {}, {"a": 1}),
            )
        )
        if self._chance(0.3):
            return {"const": self._random.choice(pool)}
        return {"enum": self._random.sample(pool, 3), "enumNames": ["A", "B", "C"]}

    def _list(self, depth: int) -> Schema:
        choose = self._random.choice
        found: Schema = {"type": "array"}
        optional: Schema = {
            "items": self._any(depth), "minItems": choose((0, 1, 2)), "maxItems": choose((0, 1, 3)),
            "uniqueItems": choose((True, False)), "contains": self._any(0),
        }  # fmt: skip
        found |= {key: value for key, value in optional.items() if self._chance(0.4)}
        if self._chance(0.1):
            found |= {
                "items": [self._any(0), self._any(0)],
                "additionalItems": choose((False, True, self._any(0))),
            }
        return found

    def _mixed(self, depth: int) -> Schema:
        choose = self._random.choice
        several = [self._any(depth) for _ in range(choose((1, 2, 3)))]
        return choose((
            {choose(("anyOf", "oneOf", "allOf")): several}, {"not": self._any(depth)},
            {"type": [choose(("string", "null", "number")), choose(("boolean", "object",
            "array"))]},
            {"if": self._any(depth), "then": self._any(depth), "else": self._any(depth)},
        ))  # fmt: skip

    def _object(self, depth: int) -> Schema:
        choose = self._random.choice
        names = self._random.sample(NAMES, choose((1, 2, 3, 4)))
        found: Schema = {"type": "object", "properties": {name: self._any(depth) for name in names}}
        other = choose(names)
        optional: Schema = {
            "required": self._random.sample(names, choose((0, 1, 1))),
            "additionalProperties": choose((False, True, self._any(0))),
            "minProperties": choose((0, 1, 2)), "maxProperties": choose((1, 2, 5)),
            "patternProperties": {choose(("^n", "e$", "^x-")): self._any(0)},
            "propertyNames": {"pattern": choose(("^[a-z]+$", "."))},
        }  # fmt: skip
        found |= {
            key: value
            for key, value in optional.items()
            if self._chance(0.25 if key in {"required", "additionalProperties"} else 0.06)
        }
        if self._chance(0.2):
            found["dependencies"] = {other: self._dependency(other)}
        if self._chance(0.15):
            branch = {
                "properties": {other: {"const": choose((*TEXTS[:8], True))}},
                "required": [other],
            }
            found |= {
                "if": branch,
                "then": {"required": [choose(NAMES)]},
                "else": {"properties": {choose(NAMES): self._any(0)}},
            }
        return found

    def _dependency(self, name: str) -> object:
        """What a form shows when `name` is answered: fields, or one of several branches."""
        choose = self._random.choice
        if self._chance(0.3):
            return [choose(NAMES)]
        if self._chance(0.3):
            return {"properties": {choose(NAMES): self._any(0)}, "required": [choose(NAMES)]}
        return {"oneOf": [
            {"properties": {name: {"enum": [value]},
            choose(NAMES): self._any(0)}} for value in (True, False)
        ]}  # fmt: skip

    def value(self, schema: object) -> Any:
        """Return a value that fits a schema more often than not."""
        if not isinstance(schema, dict) or self._chance(0.04):
            return self._stray()
        if "const" in schema or "enum" in schema:
            return self._random.choice([schema["const"]] if "const" in schema else schema["enum"])
        several = [item for key in ("anyOf", "oneOf", "allOf") for item in schema.get(key, ())]
        if several or ("then" in schema and "properties" not in schema):
            return self.value(self._random.choice(several or [schema["then"], schema.get("else")]))
        kind = schema.get("type")
        kind = self._random.choice(kind) if isinstance(kind, list) else kind
        return self._of_type(schema, kind)

    def _of_type(self, schema: Schema, kind: object) -> Any:
        if kind == "string":
            return self._random.choice(TEXTS[:16] if self._chance(0.5) else TEXTS)
        if kind in {"number", "integer"}:
            return self._random.choice(NUMBERS)
        if kind == "boolean":
            return self._chance(0.5)
        if kind == "array":
            items = schema.get("items")
            return [
                self.value(items[0] if isinstance(items, list) else items)
                for _ in range(self._random.randint(0, 3))
            ]
        if kind == "object":
            inner: dict[str, Any] = {
                n: self.value(s)
                for n, s in schema.get("properties", {}).items()
                if self._chance(0.85)
            }
            return inner | (
                {self._random.choice(NAMES): self._stray()} if self._chance(0.07) else {}
            )
        return self._stray()

    def _stray(self) -> Any:
        pool: tuple[Any, ...] = (
            *TEXTS[:12],
            *NUMBERS[:8],
            True,
            False,
            None,
            [],
            {},
            [1, 1],
            [True, 1],
            {"a": 1},
            ["x"],
        )
        return self._random.choice(pool)
