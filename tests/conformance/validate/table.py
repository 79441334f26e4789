"""Cases that were thought of, each for a reason."""

from __future__ import annotations

from typing import Any

from tests.conformance.validate.cases import Case

Schema = dict[str, Any]

TEXT: Schema = {"type": "string", "maxLength": 50}
WHOLE: Schema = {"type": "integer"}
NULLABLE: Schema = {**TEXT, "nullable": True}
SET: Schema = {"type": "array", "maxItems": 5, "x-kubernetes-list-type": "set", "items": TEXT}
WHOLES: Schema = {"type": "array", "maxItems": 9, "items": WHOLE}
MAP: Schema = {"type": "object", "maxProperties": 5, "additionalProperties": WHOLE}
IOS: Schema = {"x-kubernetes-int-or-string": True}
PRESERVED: Schema = {
    "type": "object",
    "x-kubernetes-preserve-unknown-fields": True,
    "properties": {"a": WHOLE},
}


def obj(**fields: Schema) -> Schema:
    return {"type": "object", "properties": fields}


def ruled(schema: Schema, *rules: str | dict[str, Any]) -> Schema:
    entries = [{"rule": rule} if isinstance(rule, str) else rule for rule in rules]
    return {**schema, "x-kubernetes-validations": entries}


def keyed(**fields: Schema) -> Schema:
    return {
        "type": "array",
        "maxItems": 5,
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["name"],
        "items": {**obj(name=TEXT, **fields), "required": ["name"]},
    }


Row = tuple[str, Schema, dict[str, Any]]

CREATED: list[Row] = [
    ("a rule holds", obj(i=ruled(WHOLE, "self > 0")), {"i": 1}),
    ("a scalar is shown in the message", obj(i=ruled(WHOLE, "self > 0")), {"i": 0}),
    ("a text is shown quoted", obj(s=ruled(TEXT, "self != 'x'")), {"s": "x"}),
    (
        "a large number is shown as Go does",
        obj(n=ruled({"type": "number"}, "self > 0")),
        {"n": -1e10},
    ),
    ("an object is not shown", ruled(obj(i=WHOLE), "!has(self.i) || self.i != 5"), {"i": 5}),
    (
        "the message replaces the rule",
        obj(i=ruled(WHOLE, {"rule": "self < 3", "message": " too big "})),
        {"i": 3},
    ),
    (
        "messageExpression replaces the message",
        obj(s=ruled(TEXT, {"rule": "false", "messageExpression": "'not ' + self", "message": "m"})),
        {"s": "x"},
    ),
    (
        "an empty messageExpression gives way to the message",
        obj(s=ruled(TEXT, {"rule": "false", "messageExpression": "''", "message": "m"})),
        {"s": "x"},
    ),
    (
        "a messageExpression with a line break gives way",
        obj(s=ruled(TEXT, {"rule": "false", "messageExpression": "'a\\nb'"})),
        {"s": "x"},
    ),
    (
        "a messageExpression that fails gives way",
        obj(s=ruled(TEXT, {"rule": "false", "messageExpression": "string(1 / 0)"})),
        {"s": "x"},
    ),
    (
        "reason Forbidden",
        obj(s=ruled(TEXT, {"rule": "false", "reason": "FieldValueForbidden"})),
        {"s": "x"},
    ),
    (
        "reason Required",
        obj(s=ruled(TEXT, {"rule": "false", "reason": "FieldValueRequired"})),
        {"s": "x"},
    ),
    (
        "reason Duplicate shows no message",
        obj(s=ruled(TEXT, {"rule": "false", "reason": "FieldValueDuplicate", "message": "m"})),
        {"s": "x"},
    ),
    (
        "fieldPath moves the fault",
        obj(o=ruled(obj(a=TEXT), {"rule": "false", "fieldPath": ".a"})),
        {"o": {"a": "b"}},
    ),
    (
        "fieldPath with a dash",
        obj(o=ruled(obj(**{"x-y": WHOLE}), {"rule": "self.x__dash__y > 0", "fieldPath": ".x-y"})),
        {"o": {"x-y": 0}},
    ),
    ("an absent field is an error", obj(o=ruled(obj(a=TEXT), "self.a == 'a'")), {"o": {}}),
    ("a nullable null is absent", obj(o=ruled(obj(a=NULLABLE), "has(self.a)")), {"o": {"a": None}}),
    ("no rule judges a null", obj(a=ruled(NULLABLE, "self != ''")), {"a": None}),
    ("a wrong type stops rules", ruled(obj(i=WHOLE), "false"), {"i": "x"}),
    (
        "a wrong format stops rules",
        ruled(obj(d={"type": "string", "format": "date-time"}), "false"),
        {"d": "x"},
    ),
    (
        "a wrong enum stops rules",
        ruled(obj(e={"type": "string", "enum": ["a"]}), "false"),
        {"e": "b"},
    ),
    ("a missing field stops rules", ruled({**obj(r=TEXT), "required": ["r"]}, "false"), {}),
    (
        "too long stops rules",
        ruled(obj(s={"type": "string", "maxLength": 2}), "false"),
        {"s": "abc"},
    ),
    ("too many stops rules", ruled(obj(l={**WHOLES, "maxItems": 1}), "false"), {"l": [1, 2]}),
    (
        "a wrong pattern does not stop rules",
        ruled(obj(p={"type": "string", "pattern": "^a"}), "false"),
        {"p": "b"},
    ),
    (
        "a bound does not stop rules",
        ruled(obj(i={"type": "integer", "maximum": 3}), "false"),
        {"i": 4},
    ),
    ("a duplicate does not stop rules", ruled(obj(l=SET), "false"), {"l": ["a", "a"]}),
    ("rules of list elements", obj(l={**WHOLES, "items": ruled(WHOLE, "self > 0")}), {"l": [1, 0]}),
    (
        "rules of map values",
        obj(m={**MAP, "additionalProperties": ruled(WHOLE, "self > 0")}),
        {"m": {"k": 0, "a.b": 0}},
    ),
    (
        "date-times are timestamps",
        obj(
            d=ruled(
                {"type": "string", "format": "date-time"},
                "self > timestamp('2020-01-01T00:00:00Z')",
            )
        ),
        {"d": "2019-01-01T00:00:00Z"},
    ),
    (
        "dates are timestamps",
        obj(
            d=ruled(
                {"type": "string", "format": "date"}, "self > timestamp('2020-01-01T00:00:00Z')"
            )
        ),
        {"d": "2021-01-01"},
    ),
    (
        "nanoseconds count",
        obj(
            d=ruled(
                {"type": "string", "format": "date-time"},
                "self > timestamp('2020-01-01T00:00:00.000000001Z')",
            )
        ),
        {"d": "2020-01-01T00:00:00.000000002Z"},
    ),
    (
        "durations with days",
        obj(d=ruled({"type": "string", "format": "duration"}, "self < duration('1h')")),
        {"d": "1d"},
    ),
    (
        "bytes are decoded",
        obj(b=ruled({"type": "string", "format": "byte", "maxLength": 20}, "self == b'ab'")),
        {"b": "YWI="},
    ),
    ("an integral number is a double", obj(n=ruled({"type": "number"}, "self < 1.5")), {"n": 1}),
    ("int-or-string of the other type", obj(v=ruled(IOS, "self > 1")), {"v": "x"}),
    ("int-or-string in equality", obj(v=ruled(IOS, "self == 1 || self == '1'")), {"v": "1"}),
    ("division by zero", obj(i=ruled(WHOLE, "1 / (self - 1) > 0")), {"i": 1}),
    ("overflow", obj(i=ruled(WHOLE, "self + 9223372036854775807 > 0")), {"i": 1}),
    ("no such element", obj(l=ruled(WHOLES, "self[5] > 0")), {"l": [1]}),
    ("no such key", obj(m=ruled(MAP, "self['x'] > 0")), {"m": {}}),
    ("no integer", obj(s=ruled(TEXT, "int(self) > 0")), {"s": "x"}),
    ("no quantity", obj(s=ruled(TEXT, "quantity(self).isInteger()")), {"s": "x"}),
    (
        "equal quantities written differently",
        obj(s=ruled(TEXT, "quantity(self) == quantity('1000m')")),
        {"s": "1"},
    ),
    (
        "binary against decimal suffix",
        obj(s=ruled(TEXT, "quantity(self).compareTo(quantity('1Gi')) == -1")),
        {"s": "1G"},
    ),
    ("no address", obj(s=ruled(TEXT, "ip(self).family() == 4")), {"s": "x"}),
    ("no network", obj(s=ruled(TEXT, "cidr(self).prefixLength() == 8")), {"s": "1"}),
    (
        "a network holds an address",
        obj(s=ruled(TEXT, "cidr('10.0.0.0/8').containsIP(self)")),
        {"s": "10.9.8.7"},
    ),
    (
        "IPv6 is written canonically",
        obj(s=ruled(TEXT, "ip.isCanonical(self)")),
        {"s": "2001:DB8::1"},
    ),
    (
        "parts of a URL",
        obj(s=ruled(TEXT, "url(self).getHostname() == 'a.b' && url(self).getPort() == '80'")),
        {"s": "https://a.b:80/p?q=1"},
    ),
    ("the greatest of nothing", obj(l=ruled(WHOLES, "self.max() > 0")), {"l": []}),
    (
        "sets are equal in any order",
        ruled(obj(x=SET, y=SET), "self.x == self.y"),
        {"x": ["a", "b"], "y": ["b", "a"]},
    ),
    (
        "sets compared with a list on the left",
        ruled(obj(x=SET), "['a', 'b'] == self.x"),
        {"x": ["b", "a"]},
    ),
    (
        "objects holding sets are compared regardless of order",
        ruled(obj(p=SET), "self == self"),
        {"p": ["a", "b"]},
    ),
    (
        "undeclared fields are invisible",
        obj(o=ruled(PRESERVED, "self == self && self.a == 1")),
        {"o": {"a": 1, "b": 2}},
    ),
    (
        "defaults come before rules",
        obj(o=ruled({**obj(i={**WHOLE, "default": 3}), "default": {}}, "self.i == 3")),
        {},
    ),
    ("unknown fields go before rules", ruled(obj(i=WHOLE), "!has(self.i)"), {"j": 1}),
    (
        "an error beside a true alternative is no error",
        obj(i=ruled(WHOLE, "self == 1 || self / 0 == 1")),
        {"i": 1},
    ),
    (
        "formats of several types in one list",
        obj(i=ruled(WHOLE, "'%d %s'.format([self, 'a']) != '1 a'")),
        {"i": 1},
    ),
    ("Unicode counts in code points", obj(s=ruled(TEXT, "size(self) == 2")), {"s": "é😀"}),
    (
        "a dynamic field that is absent",
        obj(o=ruled(obj(a=TEXT), "dyn(self).b == 1")),
        {"o": {"a": "a"}},
    ),
    (
        "lists of lists",
        obj(
            l=ruled(
                {"type": "array", "maxItems": 3, "items": {**WHOLES, "maxItems": 3}},
                "self.all(x, x.all(y, y > 0))",
            )
        ),
        {"l": [[1], [0]]},
    ),
    (
        "maps of maps",
        obj(
            m=ruled(
                {
                    "type": "object",
                    "maxProperties": 3,
                    "additionalProperties": {
                        "type": "object",
                        "maxProperties": 3,
                        "additionalProperties": {"type": "number"},
                    },
                },
                "self.all(k, self[k].all(l, self[k][l] > 0.5))",
            )
        ),
        {"m": {"a": {"b": 1, "c": 0.25}}},
    ),
    (
        "an embedded object shows kind and name",
        obj(
            e=ruled(
                {
                    "type": "object",
                    "x-kubernetes-embedded-resource": True,
                    "x-kubernetes-preserve-unknown-fields": True,
                },
                "self.kind == 'A' && self.metadata.name == 'n'",
            )
        ),
        {"e": {"apiVersion": "v1", "kind": "A", "metadata": {"name": "m"}, "x": 1}},
    ),
    ("a sign of a quantity", obj(s=ruled(TEXT, "sign(quantity(self)) == 1")), {"s": "-1Gi"}),
    (
        "a sum of whole numbers",
        obj(l=ruled(WHOLES, "self.sum() == 6 && self.min() == 1 && self.max() == 3")),
        {"l": [1, 2, 3]},
    ),
    (
        "a position in a list",
        obj(l=ruled(WHOLES, "self.indexOf(2) == 1 && self.lastIndexOf(2) == 2")),
        {"l": [1, 2, 2]},
    ),
    ("a pattern made of a value", obj(s=ruled(TEXT, "self.matches(self)")), {"s": "("}),
]

Changed = tuple[str, Schema, dict[str, Any], dict[str, Any]]

GROWING = ruled(WHOLE, "self >= oldSelf")
CHANGED: list[Changed] = [
    ("growing", obj(i=GROWING), {"i": 1}, {"i": 2}),
    ("shrinking", obj(i=GROWING), {"i": 2}, {"i": 1}),
    ("added: no old value, no verdict", obj(i=GROWING), {}, {"i": 1}),
    ("removed: no value, no verdict", obj(i=GROWING), {"i": 1}, {}),
    ("an old null is no value", obj(s=ruled(NULLABLE, "self == oldSelf")), {"s": None}, {"s": "a"}),
    (
        "an optional old value that is there",
        obj(
            i=ruled(
                WHOLE,
                {"rule": "!oldSelf.hasValue() || self >= oldSelf.value()", "optionalOldSelf": True},
            )
        ),
        {"i": 2},
        {"i": 1},
    ),
    (
        "an optional old value that is absent",
        obj(
            i=ruled(
                WHOLE,
                {"rule": "!oldSelf.hasValue() || self >= oldSelf.value()", "optionalOldSelf": True},
            )
        ),
        {},
        {"i": 1},
    ),
    (
        "keyed lists: found by key, not position",
        obj(l=keyed(v=GROWING)),
        {"l": [{"name": "a", "v": 2}]},
        {"l": [{"name": "x", "v": 0}, {"name": "a", "v": 1}]},
    ),
    (
        "keyed lists: equal in any order",
        obj(l=ruled(keyed(), "self == oldSelf")),
        {"l": [{"name": "a"}, {"name": "b"}]},
        {"l": [{"name": "b"}, {"name": "a"}]},
    ),
    (
        "sets: equal in any order",
        obj(l=ruled(SET, "self == oldSelf")),
        {"l": ["a", "b"]},
        {"l": ["b", "a"]},
    ),
    (
        "sets: compared beside a function of Kubernetes",
        ruled(obj(l=SET, ip=TEXT), "self.l == oldSelf.l && isIP(self.ip)"),
        {"l": ["a", "b"], "ip": "1.1.1.1"},
        {"l": ["b", "a"], "ip": "1.1.1.1"},
    ),
    (
        "sets: inside objects that are compared",
        ruled(obj(l=SET, ip=TEXT), "self == oldSelf"),
        {"l": ["a", "b"]},
        {"l": ["b", "a"]},
    ),
    (
        "sets: searched in the old one",
        ruled(obj(l=SET), "self.l.all(t, t in oldSelf.l)"),
        {"l": ["a", "b"]},
        {"l": ["b", "c"]},
    ),
    (
        "sets: mapped and searched",
        ruled(obj(l=SET), "self.l.map(t, t + 'x').exists(t, t == 'ax')"),
        {"l": ["a"]},
        {"l": ["b", "a"]},
    ),
    (
        "sets: another element",
        obj(l=ruled(SET, "self == oldSelf")),
        {"l": ["a", "b"]},
        {"l": ["b"]},
    ),
    ("lists: order counts", obj(l=ruled(WHOLES, "self == oldSelf")), {"l": [1, 2]}, {"l": [2, 1]}),
    (
        "maps: found by key",
        obj(m={**MAP, "additionalProperties": GROWING}),
        {"m": {"a": 1}},
        {"m": {"a": 0, "b": 0}},
    ),
    (
        "objects: a field added",
        obj(o=ruled(obj(a=TEXT, b=WHOLE), "self == oldSelf")),
        {"o": {"a": "x"}},
        {"o": {"a": "x", "b": 1}},
    ),
    (
        "nested objects",
        obj(o=obj(p=obj(q=ruled(WHOLE, "self == oldSelf")))),
        {"o": {"p": {"q": 1}}},
        {"o": {"p": {"q": 2}}},
    ),
    (
        "a default is an old value too",
        obj(i={**ruled(WHOLE, "self == oldSelf"), "default": 3}),
        {},
        {"i": 4},
    ),
    (
        "a message about the old value",
        obj(
            i=ruled(
                WHOLE,
                {
                    "rule": "self >= oldSelf",
                    "messageExpression": "oldSelf > 1 ? 'was more' : 'was one'",
                },
            )
        ),
        {"i": 2},
        {"i": 1},
    ),
]

ITEM_RULE = {"type": "array", "maxItems": 3, "items": ruled(WHOLE, "self > oldSelf")}
DEFINITIONS: list[tuple[str, Schema]] = [
    ("old values of a list without keys", obj(l=ITEM_RULE)),
    ("old values of a set", obj(l={**ITEM_RULE, "x-kubernetes-list-type": "set"})),
    ("old values below a list without keys", obj(l={**WHOLES, "items": obj(a=GROWING)})),
    (
        "messageExpression that is no text",
        obj(s=ruled(TEXT, {"rule": "true", "messageExpression": "1"})),
    ),
    ("a message with a line break", obj(s=ruled(TEXT, {"rule": "true", "message": "a\nb"}))),
    ("an empty message", obj(s=ruled(TEXT, {"rule": "true", "message": " "}))),
    ("an unknown reason", obj(s=ruled(TEXT, {"rule": "true", "reason": "X"}))),
    ("a fieldPath that leads nowhere", ruled(obj(s=TEXT), {"rule": "true", "fieldPath": ".zz"})),
    ("a fieldPath into a list", ruled(obj(l=WHOLES), {"rule": "true", "fieldPath": ".l[0]"})),
    ("a fieldPath without a dot", ruled(obj(s=TEXT), {"rule": "true", "fieldPath": "s"})),
    (
        "optionalOldSelf without oldSelf",
        obj(s=ruled(TEXT, {"rule": "true", "optionalOldSelf": True})),
    ),
    (
        "an optional oldSelf used as a value",
        ruled(obj(s=TEXT), {"rule": "self.s == oldSelf.s", "optionalOldSelf": True}),
    ),
    (
        "rules on what has no type",
        obj(a=ruled({"x-kubernetes-preserve-unknown-fields": True}, "true")),
    ),
    (
        "rules on a list of what has no type",
        obj(
            a=ruled(
                {
                    "type": "array",
                    "maxItems": 2,
                    "items": {"x-kubernetes-preserve-unknown-fields": True},
                },
                "true",
            )
        ),
    ),
    (
        "rules below allOf",
        {**obj(a=WHOLE), "allOf": [{"x-kubernetes-validations": [{"rule": "true"}]}]},
    ),
    ("a default that its own rule refuses", obj(i={**ruled(WHOLE, "self > 0"), "default": 0})),
    (
        "a default whose default field a rule refuses",
        obj(o={**obj(i=ruled(WHOLE, "self > 0")), "default": {"i": 0}}),
    ),
    ("sum of texts", obj(l=ruled({**WHOLES, "items": TEXT}, "self.sum() == ''"))),
    ("sign of a quantity is no member", obj(s=ruled(TEXT, "quantity(self).sign() == 1"))),
    ("a rule of several lines without a message", obj(i=ruled(WHOLE, "self > 0\n&& self < 3"))),
]

ROOT_RULES = (
    {"rule": "self.metadata.name.startsWith('ok')"},
    {"rule": "has(self.spec) && self.spec.a == 5"},
    {"rule": "self.kind != ''"},
)


def table() -> list[Case]:
    """Return all cases of the tables."""
    found = [Case(f"create: {why}", why, schema, new) for why, schema, new in CREATED]
    found += [Case(f"change: {why}", why, schema, new, old) for why, schema, old, new in CHANGED]
    found += [Case(f"schema: {why}", why, schema, {}) for why, schema in DEFINITIONS]
    whole = obj(a={**WHOLE, "default": 5})
    why = "rules of the whole object see name, kind and spec"
    found += [
        Case(f"root {name}: {why}", why, whole, new, root_rules=ROOT_RULES, name=name)
        for name, new in (("ok-1", {}), ("no-1", {"a": 4}))
    ]
    return found
