"""
Read the syntax tree of a checked expression from the CEL library's serialisation.

Reads just enough of protobuf's wire format to walk ``cel.expr.CheckedExpr``: what is called on
what, and the type of each part. The library's Python side offers no other access to the tree.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_TYPE_MAP, _EXPR = 3, 4
_ID, _STRUCT = 2, 8
_FORMS = {
    3: ("constant", 6, ()),
    4: ("ident", 1, ()),
    5: ("select", 2, (1,)),
    6: ("call", 2, (1, 3)),
    7: ("list", 0, (1,)),
    9: ("fold", 3, (2, 4, 5, 6, 7)),
}
"""Field number of an expression -> node kind, field of its name, fields of its children."""
_INTEGERS, _LOOP_VARIABLES = (3, 4), (1, 8)
_DYN, _LIST_TYPE, _MESSAGE_TYPE = b"\n\x00", 6, 9

Fields = Mapping[int, list[int | bytes]]


@dataclass(frozen=True, slots=True)
class ExpressionNode:
    """One part of an expression."""

    kind: str
    """``call``, ``list``, ``select``, ``ident``, ``constant``, ``fold`` or ``other`` (a map)."""
    name: str
    """Function, field or identifier; the text of a string constant; what a fold collects in."""
    type: bytes
    """The checked type, serialised. Equal types have equal bytes. Empty if unknown."""
    children: tuple[ExpressionNode, ...]
    """
    For a call: the target, if any, then the arguments. For a fold, which macros become: the list or
    map, the initial value, the condition, the step, the result.
    """
    number: int = 0
    """The value of an integer constant."""
    variables: tuple[str, ...] = ()
    """What a fold calls an entry, or a key and its entry."""

    def walk(self) -> Iterator[ExpressionNode]:
        """Yield this node and all its descendants."""
        yield self
        for child in self.children:
            yield from child.walk()

    @property
    def is_dynamic(self) -> bool:
        return self.type in {b"", _DYN}


def read_tree(serialised: bytes) -> ExpressionNode:
    """Return the tree of ``Expression.serialize()``."""
    checked = _fields(_bytes(_fields(serialised)[2]))
    types = {}
    for entry in checked.get(_TYPE_MAP, ()):
        pair = _fields(_bytes([entry]))
        types[_int(pair.get(1, [0]))] = _bytes(pair.get(2, [b""]))
    return _node(_bytes(checked[_EXPR]), types)


def element_type(type_: bytes) -> bytes | None:
    """Return the element type of a list type; None for other types."""
    fields = _fields(type_)
    return (
        _bytes(_fields(_bytes(fields[_LIST_TYPE])).get(1, [_DYN])) if _LIST_TYPE in fields else None
    )


def message_name(type_: bytes) -> str | None:
    """Return the name of a message type; None for other types."""
    fields = _fields(type_)
    return _bytes(fields[_MESSAGE_TYPE]).decode() if _MESSAGE_TYPE in fields else None


def _node(data: bytes, types: Mapping[int, bytes]) -> ExpressionNode:
    parts = _fields(data)
    type_ = types.get(_int(parts.get(_ID, [0])), b"")

    def made(kind: str, name: str, form: Fields, *children: int | bytes) -> ExpressionNode:
        below = tuple(_node(_bytes([child]), types) for child in children)
        if kind == "constant":
            numbers = (_int(form[number]) for number in _INTEGERS if number in form)
            return ExpressionNode(kind, name, type_, below, number=next(numbers, 0))
        loops = _LOOP_VARIABLES if kind == "fold" else ()
        variables = tuple(_text(form, number) for number in loops if number in form)
        return ExpressionNode(kind, name, type_, below, variables=variables)

    for number, (kind, name_field, children) in _FORMS.items():
        if number in parts:
            form = _fields(_bytes(parts[number]))
            name = _text(form, name_field) if name_field else ""
            return made(kind, name, form, *(child for n in children for child in form.get(n, ())))
    entries = _fields(_bytes(parts.get(_STRUCT, [b""]))).get(2, ())
    inner = [_fields(_bytes([entry])) for entry in entries]
    values = [child for entry in inner for n in (3, 4) for child in entry.get(n, ())]
    return made("other", "", {}, *values)


def _fields(data: bytes) -> Fields:
    fields: dict[int, list[int | bytes]] = {}
    at = 0
    while at < len(data):
        tag, at = _varint(data, at)
        wire = tag & 7
        if wire == _VARINT:
            value: int | bytes
            value, at = _varint(data, at)
        else:
            size = {_FIXED64: 8, _FIXED32: 4}.get(wire, 0)
            if wire == _BYTES:
                size, at = _varint(data, at)
            value, at = data[at : at + size], at + size
        fields.setdefault(tag >> 3, []).append(value)
    return fields


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:  # noqa: PLR2004 - the continuation bit
            return value, at


def _bytes(values: list[int | bytes]) -> bytes:
    value = values[-1]
    return value if isinstance(value, bytes) else b""


def _int(values: list[int | bytes]) -> int:
    value = values[-1]
    return value if isinstance(value, int) else 0


def _text(fields: Fields, number: int) -> str:
    return _bytes(fields.get(number, [b""])).decode("utf-8", "replace")
