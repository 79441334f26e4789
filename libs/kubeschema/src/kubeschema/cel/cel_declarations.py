"""
What the CEL type checker is told: the types of a schema, and the functions of a Kubernetes server.

Every object type becomes its own protobuf message. This way a rule that names an undeclared field,
or compares a string with an integer, is refused as the API server refuses it. Weaker than the
server in one respect: the contents of a list of lists, or of a map of lists or maps, are not typed.

`server` is what the type checker of a Kubernetes 1.36 API server knows: a rule is valid if it
compiles against it. `ours` is what Orderkit evaluates. The others (semantic versions, named
formats, the text of an address) compile and are then "not evaluated". The CEL library itself
provides the standard functions, strings, lists, sets, optional values and two-variable
comprehensions.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from kubeschema.cel.type_shapes import CelType

_FILE = "orderkit/self.proto"
_WELL_KNOWN = {
    "timestamp": "Timestamp",
    "duration": "Duration",
    "dyn": "Value",
    "list": "ListValue",
    "map": "Struct",
}
OPAQUE = ("URL", "Quantity", "IP", "CIDR", "Semver", "NamedFormat")
"""Types of Kubernetes' own functions; each is a message with one string field."""
PACKAGE = "kubernetes"


class Declarations:
    """A pool of messages. `declare` adds a type and returns its name in the environment."""

    def __init__(self) -> None:
        from google.protobuf import descriptor_pb2

        self._field = descriptor_pb2.FieldDescriptorProto
        self._file = descriptor_pb2.FileDescriptorProto(
            name=_FILE, package=PACKAGE, syntax="proto2"
        )
        self._file.dependency.extend(f"google/protobuf/{n}.proto" for n in _imports())
        for name in OPAQUE:
            self._add(self._file.message_type.add(name=name), "text", CelType("string"))

    def declare(self, shape: CelType) -> dict[str, Any]:
        """Return the type as the environment's configuration writes it."""
        if shape.kind == "object":
            return {"type_name": f"{PACKAGE}.{self._message(shape)}"}
        if shape.kind == "map" and shape.items is not None:
            return {
                "type_name": "map",
                "params": [_type_reference("string"), self.declare(shape.items)],
            }
        if shape.items is not None:
            return {"type_name": "list", "params": [self.declare(shape.items)]}
        return _type_reference(shape.kind)

    def pool(self) -> Any:
        """Return the descriptor pool with everything declared so far."""
        from google.protobuf import descriptor_pb2, descriptor_pool

        pool = descriptor_pool.DescriptorPool()
        for module in _imports().values():
            copied = descriptor_pb2.FileDescriptorProto()
            module.DESCRIPTOR.CopyToProto(copied)
            pool.Add(copied)
        pool.Add(self._file)
        return pool

    def _message(self, shape: CelType) -> str:
        name = f"Self{len(self._file.message_type)}"
        message = self._file.message_type.add(name=name)
        for escaped, child in shape.fields.values():
            self._add(message, escaped, child)
        return name

    def _add(self, message: Any, name: str, shape: CelType) -> None:
        number = len(message.field) + 1
        added = message.field.add(name=name, number=number, json_name=f"f{number}")
        added.label = self._field.LABEL_OPTIONAL
        if shape.kind == "list" and shape.items is not None:
            added.label = self._field.LABEL_REPEATED
            self._type(added, shape.items)
        elif shape.kind == "map" and shape.items is not None:
            added.label, added.type = self._field.LABEL_REPEATED, self._field.TYPE_MESSAGE
            added.type_name = f".{PACKAGE}.{message.name}.{self._entry(message, name, shape.items)}"
        else:
            self._type(added, shape)

    def _entry(self, message: Any, name: str, items: CelType) -> str:
        """Add a map's entry message. Protobuf prescribes its name."""
        words = "".join(word[:1].upper() + word[1:] for word in name.split("_"))
        entry = message.nested_type.add(name=f"{words}Entry")
        entry.options.map_entry = True
        self._add(entry, "key", CelType("string"))
        value = entry.field.add(name="value", number=2, label=self._field.LABEL_OPTIONAL)
        self._type(value, items)
        return str(entry.name)

    def _type(self, added: Any, shape: CelType) -> None:
        scalars = {
            "bool": self._field.TYPE_BOOL,
            "int": self._field.TYPE_INT64,
            "double": self._field.TYPE_DOUBLE,
            "string": self._field.TYPE_STRING,
            "bytes": self._field.TYPE_BYTES,
        }
        if shape.kind in scalars:
            added.type = scalars[shape.kind]
            return
        added.type = self._field.TYPE_MESSAGE
        if shape.kind == "object":
            added.type_name = f".{PACKAGE}.{self._message(shape)}"
        else:
            added.type_name = f".google.protobuf.{_WELL_KNOWN[shape.kind]}"


def _type_reference(name: str) -> dict[str, Any]:
    return {"type_name": name}


def _imports() -> dict[str, Any]:
    from google.protobuf import duration_pb2, struct_pb2, timestamp_pb2

    return {"duration": duration_pb2, "struct": struct_pb2, "timestamp": timestamp_pb2}


_COMPARABLE = ("int", "uint", "double", "bool", "duration", "timestamp", "string", "bytes")
_SUMMABLE = ("int", "uint", "double", "duration")
_NUMBERS = ("int", "uint", "double")
_FORMATS = (
    *("dns1123Label", "dns1123Subdomain", "dns1035Label", "qualifiedName", "labelValue"),
    *("dns1123LabelPrefix", "dns1123SubdomainPrefix", "dns1035LabelPrefix"),
    *("uri", "uuid", "byte", "date", "datetime"),
)

_ADDRESSES = """
isURL(string) bool
url(string) URL
URL.getScheme() string
URL.getHost() string
URL.getHostname() string
URL.getPort() string
URL.getEscapedPath() string
URL.getQuery() map(string,list(string))
isIP(string) bool
ip(string) IP
ip.isCanonical(string) bool
IP.family() int
IP.isUnspecified() bool
IP.isLoopback() bool
IP.isLinkLocalMulticast() bool
IP.isLinkLocalUnicast() bool
IP.isGlobalUnicast() bool
isCIDR(string) bool
cidr(string) CIDR
CIDR.containsIP(string) bool
CIDR.containsIP(IP) bool
CIDR.containsCIDR(string) bool
CIDR.containsCIDR(CIDR) bool
CIDR.ip() IP
CIDR.masked() CIDR
CIDR.prefixLength() int
"""
_QUANTITIES = """
isQuantity(string) bool
quantity(string) Quantity
sign(Quantity) int
Quantity.isInteger() bool
Quantity.asInteger() int
Quantity.asApproximateFloat() double
Quantity.add(Quantity) Quantity
Quantity.add(int) Quantity
Quantity.sub(Quantity) Quantity
Quantity.sub(int) Quantity
Quantity.compareTo(Quantity) int
Quantity.isGreaterThan(Quantity) bool
Quantity.isLessThan(Quantity) bool
"""
_REGEX = """
string.find(string) string
string.findAll(string) list(string)
string.findAll(string,int) list(string)
"""
_LISTS = """
list(A).isSorted() bool
list(A).sum() dyn
list(A).min() dyn
list(A).max() dyn
"""
"""List functions as they run. The library's Python side cannot return a type parameter."""
_POSITIONS = """
list(A).indexOf(A) int
list(A).lastIndexOf(A) int
"""
_TEXTS = """
string.charAt(int) string
string.indexOf(string) int
string.indexOf(string,int) int
string.lastIndexOf(string) int
string.lastIndexOf(string,int) int
string.lowerAscii() string
string.upperAscii() string
string.replace(string,string) string
string.replace(string,string,int) string
string.split(string) list(string)
string.split(string,int) list(string)
string.substring(int) string
string.substring(int,int) string
string.trim() string
string.format(list(dyn)) string
list(string).join() string
list(string).join(string) string
strings.quote(string) string
optional.unwrap(list(optional_type(A))) list(A)
"""
_SEMVER = """
isSemver(string) bool
isSemver(string,bool) bool
semver(string) Semver
semver(string,bool) Semver
Semver.major() int
Semver.minor() int
Semver.patch() int
Semver.compareTo(Semver) int
Semver.isGreaterThan(Semver) bool
Semver.isLessThan(Semver) bool
"""
_EXTENSIONS = ("lists", "sets", "optional", "two-var-comprehensions")
_REPLACED = ("string", "_<_", "_<=_", "_>_", "_>=_")
"""Standard functions for which the server declares more overloads than the library."""

_GLOBALS = ("ip.isCanonical", "strings.quote", "optional.unwrap", "format.")

Overload = dict[str, Any]


def configuration(
    signatures: Iterable[str], variables: Mapping[str, Any], *extensions: str, server: bool
) -> str:
    """Return the configuration of an environment in the CEL library's format."""
    functions: dict[str, list[Overload]] = {}
    for signature in signatures:
        name, overload = _overload(signature)
        functions.setdefault(name, []).append(overload)
    document: dict[str, Any] = {
        "name": "orderkit",
        "extensions": [_extension(name) for name in (*_EXTENSIONS, *extensions)],
        "functions": [{"name": n, "overloads": overloads} for n, overloads in functions.items()],
        "variables": [{"name": name, **type_} for name, type_ in variables.items()],
    }
    if server:
        document["stdlib"] = {"exclude_functions": [{"name": name} for name in _REPLACED]}
    return json.dumps(document)  # JSON is a subset of YAML


def ours() -> list[str]:
    """Return the signatures of the functions that Orderkit implements."""
    return _lines(_ADDRESSES, _QUANTITIES, _REGEX, _LISTS)


def evaluated_names() -> frozenset[str]:
    """Return the names of the functions that Orderkit implements, in Python."""
    return frozenset(_overload(signature)[0] for signature in ours())


def positions() -> list[str]:
    """
    Return the signatures of ``indexOf`` and ``lastIndexOf`` on lists, as they run.

    They clash with the library's string functions of the same names, so an environment has only one
    of the two.
    """
    names = ("indexOf", "lastIndexOf")
    return [f"list(A).{name}({type_}) int" for name in names for type_ in _COMPARABLE]


def server() -> list[str]:
    """Return the signatures that the server declares in addition to the library's."""
    parts = [_ADDRESSES, _QUANTITIES, _REGEX, _TEXTS, _SEMVER, _POSITIONS]
    return [*_lines(*parts), *_of_lists(), *_of_formats(), *_of_texts(), *_of_orders()]


def _of_lists() -> Iterator[str]:
    for type_ in _COMPARABLE:
        yield f"list({type_}).isSorted() bool"
        yield f"list({type_}).min() {type_}"
        yield f"list({type_}).max() {type_}"
    yield from (f"list({type_}).sum() {type_}" for type_ in _SUMMABLE)


def _of_formats() -> Iterator[str]:
    yield "format.named(string) optional_type(NamedFormat)"
    yield "NamedFormat.validate(string) optional_type(list(string))"
    yield from (f"format.{name}() NamedFormat" for name in _FORMATS)


def _of_texts() -> Iterator[str]:
    for type_ in (*_COMPARABLE, "IP", "CIDR"):
        yield f"string({type_}) string"


def _of_orders() -> Iterator[str]:
    pairs = [(type_, type_) for type_ in _COMPARABLE]
    pairs += [
        (left_type, right_type)
        for left_type in _NUMBERS
        for right_type in _NUMBERS
        if left_type != right_type
    ]
    for sign in ("<", "<=", ">", ">="):
        yield from (f"_{sign}_({left_type},{right_type}) bool" for left_type, right_type in pairs)


def _extension(name: str) -> dict[str, Any]:
    return {"name": name, "version": 2} if name == "strings" else {"name": name}


def _lines(*texts: str) -> list[str]:
    return [line for text in texts for line in text.split("\n") if line]


def _overload(signature: str) -> tuple[str, Overload]:
    head, _, result = signature.rpartition(" ")
    head, _, arguments = _member(head) if head.startswith("list(") else head.partition("(")
    target, _, name = head.rpartition(".")
    if head.startswith(_GLOBALS):
        target, name = "", head
    overload: Overload = {
        "id": signature,
        "args": [_type(text) for text in _split(arguments[:-1])],
        "return": _type(result),
    }
    if target:
        overload["target"] = _type(target)
    return name, overload


def _member(head: str) -> tuple[str, str, str]:
    """Split ``list(A).indexOf(A)`` after the function's name, not after ``list``."""
    type_, _, signature = head.partition(").")
    name, bracket, arguments = signature.partition("(")
    return f"{type_}).{name}", bracket, arguments


def _split(arguments: str) -> list[str]:
    """Split at commas outside brackets."""
    return [text for text in re.split(r",(?![^(]*\))", arguments) if text]


def _type(text: str) -> dict[str, Any]:
    if len(text) == 1:
        return {"type_name": text, "is_type_param": True}
    if text in OPAQUE:
        return {"type_name": f"{PACKAGE}.{text}"}
    name, bracket, inner = text.partition("(")
    if not bracket:
        return {"type_name": name}
    return {"type_name": name, "params": [_type(parameter) for parameter in _split(inner[:-1])]}
