"""
Read a YAML text as parser events, within limits, without composing a document.

A ``Stream`` holds the events of a text, the end event of each collection, and where the documents
begin. Hostile text is stopped here: parsing ends as soon as a limit is exceeded, so that neither
deep nesting (which crashes composers) nor aliases (which multiply) reach later code.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, NamedTuple

import yaml

from yamlfiles.edit.edit_operations import EditRefusal, EditRefusedError
from yamlfiles.edit.writing import agree, readings


@dataclass(frozen=True, slots=True)
class YamlLimits:
    """Limits for a file to be edited."""

    size_bytes: int = 1_000_000
    depth: int = 64
    events: int = 50_000
    """Includes the events that aliases stand for, written out."""


LIMITS = YamlLimits()

_NO_TEXT = frozenset(("", *"~0123456789+-.nNyYtTfFoO=<"))
"""First characters of plain scalars that some reader may not read as a string."""
_READER = " (says libyaml, whose grammar Kubernetes reads; YAML 1.2 may allow more)"
_TOO_DEEP = "maximum nesting depth"
_AMBIGUOUS_BREAKS = ("\x85", "\u2028", "\u2029")


class EventKind(Enum):
    """The type of an event."""

    SCALAR = "a scalar"
    MAP = "a map"
    LIST = "a list"
    ALIAS = "an alias"
    END = "the end of a map or list"
    DOCUMENT = "the start of a document"
    OTHER = "an end of a document, or of the stream"


class ParserEvent(NamedTuple):
    """
    One parser event without its position, so that equal events mean the same.

    `style` is a scalar's indicator (empty: plain), or ``flow`` or ``block``; `plain` means that
    readers resolve the scalar's type themselves.
    """

    kind: EventKind
    value: str = ""
    style: str = ""
    anchor: str | None = None
    tag: str | None = None
    plain: bool = False


@dataclass(slots=True)
class Stream:
    """The events of a text and, after `check`, how they belong together."""

    text: str
    events: list[ParserEvent] = field(default_factory=list)
    parsed: list[yaml.Event] = field(default_factory=list)
    """The same events as the parser returned them, with their marks."""
    ends: dict[int, int] = field(default_factory=dict)
    """Index of a collection's start event -> index of its end event."""
    documents: list[int] = field(default_factory=list)
    """Index of each document's root node."""
    aliases: set[str] = field(default_factory=set)

    def end(self, at: int) -> int:
        """Return the index of the last event of the node that begins at event `at`."""
        return self.ends.get(at, at)

    def start(self, at: int) -> int:
        """Return where the characters of event `at` begin."""
        mark = self.parsed[at].start_mark
        return mark.index if mark else 0

    def stop(self, at: int) -> int:
        """Return where event `at` ends; blank lines after a block scalar belong to it."""
        mark = self.parsed[at].end_mark
        return mark.index if mark else 0

    def is_block(self, at: int) -> bool:
        """Return whether a block map or block list begins at event `at`."""
        return self.events[at].style == "block"

    def refuse(self, code: EditRefusal, message: str, at: int) -> EditRefusedError:
        """Return a refusal that names the line of event `at`."""
        line = self.text.count("\n", 0, self.start(at)) + 1
        return EditRefusedError(code, message, line=line)


def decode(data: bytes, limits: YamlLimits = LIMITS) -> str:
    """
    Return the text without its byte order mark.

    Raises:
        EditRefusedError: It is too large, not UTF-8, or has line ends that readers count
            differently.
    """
    if len(data) > limits.size_bytes:
        raise EditRefusedError(EditRefusal.LIMITS, f"larger than {limits.size_bytes} bytes")
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        raise EditRefusedError(EditRefusal.ENCODING, f"not UTF-8 at byte {error.start}") from error
    text = text.removeprefix("\ufeff")
    if "\ufeff" in text:
        raise EditRefusedError(EditRefusal.ENCODING, "has a byte order mark in its midst")
    # U+0085, U+2028 and U+2029 end a line in YAML 1.1, but not in YAML 1.2.
    if any(mark in text for mark in _AMBIGUOUS_BREAKS) or text.count("\r") != text.count("\r\n"):
        raise EditRefusedError(
            EditRefusal.LINE_BREAK, "ends a line as YAML 1.1 and 1.2 read differently"
        )
    return text


def read(text: str, limits: YamlLimits = LIMITS) -> Stream:
    """
    Return the checked events of `text`.

    Raises:
        EditRefusedError: It is not YAML, exceeds the limits, or repeats a key.
    """
    return check(scan(text, limits), limits)


def scan(text: str, limits: YamlLimits = LIMITS) -> Stream:
    """
    Return the events of `text` within the limits, without checking keys and aliases.

    Raises:
        EditRefusedError: It is not YAML, too deep or has too many events.
    """
    stream = Stream(text)
    try:
        _take_all(stream, limits)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        reason = str(error.problem or error.context)
        line = mark.line + 1 if mark else None
        if _TOO_DEEP in reason:  # libyaml's own limit: its scanner reads ahead of our count
            raise EditRefusedError(
                EditRefusal.LIMITS, f"nested deeper than {limits.depth} levels", line=line
            ) from error
        raise EditRefusedError(
            EditRefusal.NOT_YAML, f"is not valid YAML: {reason}{_READER}", line=line
        ) from error
    except (yaml.YAMLError, UnicodeEncodeError) as error:
        raise EditRefusedError(EditRefusal.NOT_YAML, f"is not valid YAML: {error}") from error
    return stream


def _take_all(stream: Stream, limits: YamlLimits) -> None:
    """Consume all parser events. This is the one loop whose speed matters."""
    take = yaml.CSafeLoader(stream.text).get_event
    keep, keep_found = stream.events.append, stream.parsed.append
    depth, scalar, make = 0, EventKind.SCALAR, ParserEvent._make
    for _ in range(limits.events):
        parsed: Any = take()
        kind = parsed.__class__
        keep_found(parsed)
        if kind is yaml.ScalarEvent:
            tag, plain = parsed.tag, parsed.implicit[0]
            keep(make((scalar, parsed.value, parsed.style or "", parsed.anchor, tag, plain)))
            continue
        event = _EVENTS[kind](parsed)
        keep(event)
        if event.kind is EventKind.END:
            depth -= 1
        # Only the start of a collection has a style here: scalars were handled above.
        elif event.style:
            depth += 1
            if depth > limits.depth:
                raise _beyond(stream, f"nested deeper than {limits.depth} levels")
        elif event is _STREAM_END:
            return
    raise _beyond(stream, f"more than {limits.events} YAML events")


def _beyond(stream: Stream, message: str) -> EditRefusedError:
    return stream.refuse(EditRefusal.LIMITS, message, len(stream.events) - 1)


_STREAM_END = ParserEvent(EventKind.OTHER, "end")
_MAP_END, _LIST_END = ParserEvent(EventKind.END, "map"), ParserEvent(EventKind.END, "list")


def _collection(kind: EventKind) -> Callable[[Any], ParserEvent]:
    def taken(parsed: Any) -> ParserEvent:
        style = "flow" if parsed.flow_style else "block"
        return ParserEvent(kind, "", style, parsed.anchor, parsed.tag)

    return taken


_EVENTS: dict[type, Callable[[Any], ParserEvent]] = {
    yaml.MappingStartEvent: _collection(EventKind.MAP),
    yaml.SequenceStartEvent: _collection(EventKind.LIST),
    yaml.MappingEndEvent: lambda _: _MAP_END,
    yaml.SequenceEndEvent: lambda _: _LIST_END,
    yaml.AliasEvent: lambda parsed: ParserEvent(EventKind.ALIAS, parsed.anchor),
    yaml.DocumentStartEvent: lambda parsed: ParserEvent(
        EventKind.DOCUMENT, f"{parsed.explicit} {parsed.version} {parsed.tags}"
    ),
    yaml.DocumentEndEvent: lambda parsed: ParserEvent(
        EventKind.OTHER, f"document {parsed.explicit}"
    ),
    yaml.StreamStartEvent: lambda _: ParserEvent(EventKind.OTHER, "start"),
    yaml.StreamEndEvent: lambda _: _STREAM_END,
}


def check(stream: Stream, limits: YamlLimits = LIMITS) -> Stream:
    """
    Determine how the events belong together, and return the stream.

    Raises:
        EditRefusedError: A key is repeated, or an alias is undefined or expands to too much.
    """
    checker = _Checker(stream, limits)
    for at, event in enumerate(stream.events):
        checker.take(at, event)
    return stream


@dataclass(slots=True)
class _Open:
    """A collection whose end has not been reached. `keys` is None for a list."""

    start: int
    keys: set[object] | None
    anchor: str | None
    size: int = 1
    at_key: bool = True


class _Checker:
    """Checks events one by one, in their order."""

    def __init__(self, stream: Stream, limits: YamlLimits) -> None:
        self._stream, self._limits = stream, limits
        self._open: list[_Open] = []
        self._sizes: dict[str, int] = {}
        self._written_out = 0

    def take(self, at: int, event: ParserEvent) -> None:
        """
        Check one event.

        Raises:
            EditRefusedError: It repeats a key, or is an alias that is undefined or expands to too
                much.
        """
        kind = event.kind
        if kind is EventKind.SCALAR:
            self._node(event.anchor, 1, event, at)
        elif kind is EventKind.MAP or kind is EventKind.LIST:
            self._open.append(_Open(at, set() if kind is EventKind.MAP else None, event.anchor))
        elif kind is EventKind.END:
            closed = self._open.pop()
            self._stream.ends[closed.start] = at
            self._node(closed.anchor, closed.size, None, at)
        elif kind is EventKind.ALIAS:
            self._alias(event.value, at)
        elif kind is EventKind.DOCUMENT:
            self._stream.documents.append(at + 1)
            self._sizes = {}

    def _alias(self, anchor: str, at: int) -> None:
        if anchor not in self._sizes:
            raise self._stream.refuse(EditRefusal.NOT_YAML, f"nothing is called &{anchor}", at)
        self._stream.aliases.add(anchor)
        size = self._sizes[anchor]
        self._written_out += size
        if self._written_out > self._limits.events:
            raise self._stream.refuse(
                EditRefusal.LIMITS, "the aliases stand for too many nodes", at
            )
        self._node(None, size, None, at)

    def _node(self, anchor: str | None, size: int, scalar: ParserEvent | None, at: int) -> None:
        """Record a finished node in the enclosing collection."""
        if anchor is not None:
            self._sizes[anchor] = size
        if not self._open:
            return
        parent = self._open[-1]
        parent.size += size
        if parent.keys is None:
            return
        if parent.at_key and scalar is not None:
            self._key(parent.keys, scalar, at)
        parent.at_key = not parent.at_key

    def _key(self, keys: set[object], scalar: ParserEvent, at: int) -> None:
        """Record a key in every reader's interpretation: ``yes`` is ``true`` to some."""
        value = scalar.value
        if value in keys:
            raise self._stream.refuse(
                EditRefusal.DUPLICATE_KEY, f"key {value!r} is given twice", at
            )
        keys.add(value)
        if scalar.plain and value[:1] in _NO_TEXT and not agree(value, value):
            as_read = {
                (reader, type(reading), reading) for reader, reading in enumerate(readings(value))
            }
            if keys & as_read:
                raise self._stream.refuse(
                    EditRefusal.DUPLICATE_KEY, f"key {value!r} equals another one for a reader", at
                )
            keys |= as_read
