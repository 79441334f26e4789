"""
Random schemas with CEL rules, objects that nearly fit, and changes of them.

Every list, map and text has a bound, so that the server's cost estimate accepts the rules.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

from tests.conformance.validate.cases import Case

Schema = dict[str, Any]
SHARED = 3
"""How many objects and how many changes are tried on each schema."""

INTEGERS = (-3, 0, 1, 2, 3, 4, 5, 7, 10, 80)
TEXTS = ("", "a", "ab", "abc", "x", "b-1", "a-b-c", "A", "1", "1Gi", "500m", "10.0.0.1", "é", "zz9")
TIMES = ("2020-01-01T00:00:00Z", "2021-06-01T12:30:00.5+02:00", "2019-12-31T23:59:59Z", "soon")
SPANS = ("1s", "90s", "1h", "1.5h", "2d", "fast")
KEYS = ("a", "b", "c", "a-b", "long-key")

RULES: dict[str, tuple[str, ...]] = {
    "integer": (
        "self > 1", "self % 2 == 0", "self in [1, 2, 3]", "self < 2.5", "self >= oldSelf",
        "self == oldSelf", "self - oldSelf <= 1", "10 / self > 1", "self > 0 && self < 6",
        "string(self) != '3'", "type(self) == int", "double(self) * 1.5 < 5.0", "-self < 1",
        "self == 1 || self / 0 == 1", "self + 9223372036854775800 > 0", "uint(self) > 1u",
        "self == oldSelf || self == oldSelf + 1", "self != 4 ? self < 6 : self > 6",
    ),
    "number": (
        "self > 1.5", "self >= oldSelf", "self < 3", "int(self) < 3", "self == oldSelf",
        "self * 2.0 < 9.0", "string(self) != '0.5'", "type(self) == double",
    ),
    "boolean": ("self", "self || oldSelf", "!self", "self == oldSelf", "!oldSelf || self"),
    "string": (
        "self.startsWith('a')", "size(self) < 3", "self.matches('^[a-z]+$')", "self == oldSelf",
        "self.contains('-')", "self in ['a', 'ab', 'x']", "self.lowerAscii() == self",
        "self.split('-').size() < 3", "self.find('[0-9]+') == ''", "isQuantity(self)",
        "quantity(self).isGreaterThan(quantity('1'))", "isIP(self)", "!isIP(self)",
        "self.replace('a', 'b') != 'b'", "self.indexOf('b') < 1", "'%s!'.format([self]) != 'a!'",
        "self.substring(1) != 'b'", "self.charAt(0) == 'a'", "int(self) > 0",
        "size(self.trim()) > 1",
        "self < 'b'", "self.findAll('[a-c]').size() < 2", "self + 'x' != 'ax'",
        "self.upperAscii() != 'AB'", "self.lastIndexOf('-') < 2", "oldSelf.startsWith(self)",
        "!format.dns1123Label().validate(self).hasValue()", "self.matches('(?i)^A')",
        "self == '' || quantity(self).isInteger()", "self.endsWith('1')",
        "ip(self).family() == 4", "cidr('10.0.0.0/8').containsIP(self)",
    ),
    "date-time": (
        "self > timestamp('2020-06-01T00:00:00Z')", "self >= oldSelf", "self.getFullYear() > 2019",
        "self - timestamp('2020-01-01T00:00:00Z') < duration('24h')", "self.getHours() != 10",
    ),
    "duration": ("self <= duration('1h')", "self.getSeconds() > 60", "self >= oldSelf"),
    "int-or-string": (
        "self == 1 || self == 'a'", "type(self) == int", "self != oldSelf", "self > 1",
    ),
    "integers": (
        "self.all(x, x > 0)", "self.exists(x, x == 1)", "self.isSorted()", "self.sum() < 10",
        "self.max() < 5", "size(self) < 3", "self.all(i, x, i < 2)", "self == oldSelf",
        "self.map(x, x * 2).exists(y, y > 6)", "self.filter(x, x > 1).size() < 2",
        "self.indexOf(1) < 1", "self[0] > 0", "oldSelf.all(x, x in self)", "self.min() > -1",
        "self.distinct().size() == self.size()", "sets.contains(self, [1])", "1 in self",
        "self.sort() == self", "self.exists_one(x, x == 2)", "self + [1] != [1, 1]",
        "self.slice(0, 1) == [1]", "self.reverse()[0] > 1", "self.lastIndexOf(2) > 0",
        "[self, [9]].flatten().size() < 3", "self[?1].orValue(0) < 3", "lists.range(2) != self",
    ),
    "strings": (
        "self.all(x, size(x) < 3)", "self.join('-') != 'a-b'", "self.exists(x, x.matches('[0-9]'))",
        "self.isSorted()", "size(self) > 1", "self.all(x, x in ['a', 'ab', 'abc'])", "'a' in self",
    ),
    "set": (
        "self.all(x, size(x) < 3)", "self == oldSelf", "oldSelf.all(x, x in self)", "'a' in self",
        "self.exists_one(x, x == 'a')", "size(self) >= size(oldSelf)", "self + ['a'] == self",
        "self != oldSelf",
    ),
    "keyed": (
        "self.all(e, e.name != 'x')", "self.exists_one(e, has(e.port) && e.port == 80)",
        "oldSelf.all(o, self.exists(n, n.name == o.name))", "self == oldSelf",
        "self.all(e, e.port > 1)", "size(self) < 3",
        "self.filter(e, has(e.port)).all(e, e.port < 80)", "self.all(e, e.?port.orValue(80) > 2)",
    ),
    "map": (
        "self.all(k, size(k) < 4)", "'a' in self", "self['a'] > 0", "self.all(k, v, v > 0)",
        "self.transformList(k, v, v).sum() < 5", "self == oldSelf", "size(self) < 3",
        "has(self.a)", "self.exists(k, self[k] == 3)", "self.transformMap(k, v, v + 1) != {'a': 2}",
        "self[?'b'].hasValue()", "oldSelf.all(k, k in self)",
    ),
    "object": (
        "!has(self.i) || self.i > 1", "has(self.s)", "self.i > 1", "self.?i.orValue(3) > 2",
        "has(self.i) == has(oldSelf.i)", "self == oldSelf", "!has(oldSelf.s) || has(self.s)",
        "self.x__dash__y > 2", "has(self.__in__) || has(self.s)", "self.s == 'a' && self.i == 1",
        "self.?s.hasValue() || self.?i.hasValue()", "dyn(self).i == 1.0",
    ),
}  # fmt: skip

BROKEN = (
    ("integer", "self == 1.0"), ("integer", "self.zz > 1"), ("integer", "self +"), ("integer", "1"),
    ("integer", "self == 'a'"), ("integer", "self.size() > 1"), ("integer", "other > 1"),
    ("string", "self > 1"), ("string", "self.matches('(')"), ("string", "self"), ("string", ""),
    ("string", "self == null"), ("string", "self in [1]"), ("string", "self.reverse() == 'a'"),
    ("string", "has(self)"), ("string", "['a', 1] == [self]"), ("string", "math.abs(1) == 1"),
    ("string", "duration('x') > duration('1s')"), ("string", "timestamp('x') == timestamp('y')"),
    ("string", "self == oldself"), ("string", "authorizer.path('/').check('get').allowed()"),
    ("object", "self.zz == 1"), ("object", "self.i == self.s"), ("object", "size(self) > 1"),
    ("object", "has(self.zz)"), ("object", "self['i'] == 1"), ("object", "self.`x-y` > 1"),
    ("object", "self.in == 1"), ("object", "self.map(k, k) == []"), ("object", "self.x-y > 1"),
    ("integers", "self.all(x, x.y > 1)"), ("integers", "self.sum() > 'a'"),
    ("integers", "self.all(x, x)"),
    ("integers", "self['a'] == 1"), ("strings", "self.sum() == ''"), ("map", "self[1] == 1"),
    ("map", "self.all(k, k > 1)"), ("keyed", "self.all(e, e.zz)"), ("boolean", "self > 1"),
    ("date-time", "self > '2020-01-01'"), ("duration", "self > 1"),
    ("set", "self.all(x, x > oldSelf)"),
    ("number", "self == 1"), ("boolean", "semver(self).major() == 1"),
    ("string", "ip(self) == self"),
    ("string", "quantity(self) > quantity('1')"), ("string", "self.find(1) == ''"),
    ("string", "format.named('dns1123Label') == self"), ("string", "cel.bind(x, 1, x == 1)"),
    ("string", "base64.encode(b'a') == self"), ("integers", "self.max() == 'a'"),
)  # fmt: skip
"""Shape and a rule the server refuses on it."""


def shape(kind: str, random_: random.Random) -> Schema:
    """Return a schema of that kind, with some structural rules of its own."""
    text: Schema = {"type": "string", "maxLength": 12}
    whole: Schema = {"type": "integer"}
    bounds: tuple[Schema, ...] = ({}, {"minimum": 0}, {"maximum": 9}, {"default": 3})
    limits: tuple[Schema, ...] = (
        {},
        {"pattern": "^[a-z0-9.-]*$"},
        {"minLength": 1},
        {"default": "ab"},
        {"nullable": True},
    )
    made: dict[str, Schema] = {
        "integer": {**whole, **random_.choice(bounds)},
        "number": {"type": "number"},
        "boolean": {"type": "boolean"},
        "string": {**text, **random_.choice(limits)},
        "date-time": {"type": "string", "format": "date-time"},
        "duration": {"type": "string", "format": "duration"},
        "int-or-string": {"x-kubernetes-int-or-string": True},
        "integers": {"type": "array", "maxItems": 4, "items": whole},
        "strings": {"type": "array", "maxItems": 4, "items": text},
        "set": {"type": "array", "maxItems": 4, "x-kubernetes-list-type": "set", "items": text},
        "keyed": {
            "type": "array",
            "maxItems": 4,
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["name"],
            "items": {
                "type": "object",
                "required": ["name"],
                "properties": {"name": text, "port": {**whole, "default": 8}},
            },
        },
        "map": {"type": "object", "maxProperties": 4, "additionalProperties": whole},
        "object": {
            "type": "object",
            **random_.choice(({}, {"default": {}}, {"required": ["i"]})),
            "properties": {"i": whole, "s": {**text, "default": "a"}, "x-y": whole, "in": text},
        },
    }
    return made[kind]


def with_rules(schema: Schema, kind: str, random_: random.Random) -> Schema:
    """Return the schema with one to three rules, told in all the ways there are."""
    rules = []
    for source in random_.sample(RULES[kind], random_.choice((1, 1, 2))):
        rule: dict[str, Any] = {"rule": source}
        if random_.random() < 0.2:
            rule["message"] = "told so"
        if random_.random() < 0.15:
            rule["reason"] = random_.choice(("FieldValueForbidden", "FieldValueRequired"))
        if kind == "string" and random_.random() < 0.2:
            rule["messageExpression"] = random_.choice(("'not ' + self", "self"))
        if kind == "object" and random_.random() < 0.3:
            rule["fieldPath"] = random_.choice((".i", ".x-y"))
        rules.append(rule)
    if kind == "integer" and random_.random() < 0.3:
        optional = "!oldSelf.hasValue() || self >= oldSelf.value()"
        rules.append({"rule": optional, "optionalOldSelf": True})
    return {**schema, "x-kubernetes-validations": rules}


def value(kind: str, random_: random.Random) -> Any:
    """Return a value that mostly has the right type."""
    if random_.random() < 0.04:
        # A list for a text with a format is left out: the server lets it pass, we do not.
        return random_.choice((None, 1, "a", {}, True))
    some = random_.randint(0, 4)
    values: dict[str, Any] = {
        "integer": random_.choice(INTEGERS),
        "number": random_.choice((0, 0.5, 1, 1.75, 2.5, 3, 6.25)),
        "boolean": random_.random() < 0.5,
        "string": random_.choice(TEXTS),
        "date-time": random_.choice(TIMES),
        "duration": random_.choice(SPANS),
        "int-or-string": random_.choice((1, 2, "a", "1")),
        "integers": random_.choices(INTEGERS[1:7], k=some),
        "strings": random_.choices(TEXTS[1:7], k=some),
        "set": random_.sample(TEXTS[1:7], k=some),
        "keyed": [_entry(name, random_) for name in random_.sample(TEXTS[1:7], k=some)],
        "map": {key: random_.choice(INTEGERS) for key in random_.sample(KEYS, k=some)},
        "object": {
            key: random_.choice(INTEGERS if key in {"i", "x-y"} else TEXTS)
            for key in random_.sample(("i", "s", "x-y", "in", "extra"), k=some)
        },
    }
    return values[kind]


def _entry(name: str, random_: random.Random) -> dict[str, Any]:
    entry: dict[str, Any] = {"name": name}
    if random_.random() < 0.6:
        entry["port"] = random_.choice((1, 2, 80))
    if random_.random() < 0.1:
        entry["colour"] = "red"
    return entry


def generated(random_: random.Random, schemas: int) -> Iterator[Case]:
    """Yield cases: per schema some objects to create and some changes."""
    for number in range(schemas):
        kinds = random_.sample(sorted(RULES), 2)
        fields = {
            f"f{i}": with_rules(shape(kind, random_), kind, random_) for i, kind in enumerate(kinds)
        }
        schema: Schema = {"type": "object", "properties": fields}
        if random_.random() < 0.3:
            schema["x-kubernetes-validations"] = [{"rule": "has(self.f0) || !has(self.f1)"}]
        for turn in range(2 * SHARED):
            new = _object(kinds, random_)
            old = None
            if turn >= SHARED:
                old = _object(kinds, random_)
                if random_.random() < 0.5:
                    new = {**old, "f0": value(kinds[0], random_)}
            yield Case(f"generated {number}.{turn}", "random", schema, new, old)


def _object(kinds: list[str], random_: random.Random) -> dict[str, Any]:
    made = {f"f{i}": value(kind, random_) for i, kind in enumerate(kinds) if random_.random() < 0.7}
    if random_.random() < 0.1:
        made["unknown"] = 1
    return made


def refused_rules(random_: random.Random) -> Iterator[Case]:
    """Yield schemas of which each has one rule that the server refuses."""
    for number, (kind, rule) in enumerate(BROKEN):
        field = {**shape(kind, random_), "x-kubernetes-validations": [{"rule": rule}]}
        field.pop("default", None)
        schema = {"type": "object", "properties": {"f0": field}}
        yield Case(f"rule {number}", f"{rule!r} on {kind}", schema, {}, None)
