"""
Read a YAML text as parser events, within limits, without composing anything.

A ``Stream`` holds the events of a text, for each collection the event that ends it, and where
its documents begin. Hostile text ends here: parsing stops as soon as a limit is passed, so that
neither depth (it crashes composers) nor aliases (they multiply) reach anything behind.

Called by ``editing`` and ``proving``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, NamedTuple

import yaml

from orderkit.core.yamledit.edits import EditRefusedError, Reason


@dataclass(frozen=True, slots=True)
class Limits:
    """What a file may hold that is edited."""

    size_bytes: int = 1_000_000
    depth: int = 64
    events: int = 50_000
    """Also of what the aliases stand for, written out."""


LIMITS = Limits()

_AMBIGUOUS_BREAKS = ("\x85", "\u2028", "\u2029")


class Kind(Enum):
    """What an event says."""

    SCALAR = "a scalar"
    MAP = "a map"
    LIST = "a list"
    ALIAS = "an alias"
    END = "the end of a map or list"
    DOCUMENT = "the start of a document"
    OTHER = "an end of a document, or of the stream"


class Event(NamedTuple):
    """
    One parser event, without its position: equal events say the same.

    `style` is a scalar's mark (empty: plain), or ``flow`` or ``block``; `plain` says that readers
    resolve the scalar's type themselves.
    """

    kind: Kind
    value: str = ""
    style: str = ""
    anchor: str | None = None
    tag: str | None = None
    plain: bool = False


@dataclass(slots=True)
class Stream:
    """The events of a text and how they belong together."""

    text: str
    events: list[Event] = field(default_factory=list)
    starts: list[int] = field(default_factory=list)
    """Where each event's characters begin."""
    stops: list[int] = field(default_factory=list)
    """Where they end; blank lines behind a block scalar belong to it."""
    ends: dict[int, int] = field(default_factory=dict)
    """Index of a collection's start event to that of its end event."""
    documents: list[int] = field(default_factory=list)
    """Index of each document's root node."""
    aliases: set[str] = field(default_factory=set)

    def end(self, at: int) -> int:
        """Return the index of the last event of the node that begins at event `at`."""
        return self.ends.get(at, at)

    def is_block(self, at: int) -> bool:
        """Say whether a map or list written in lines begins at event `at`."""
        return self.events[at].style == "block"

    def refuse(self, code: Reason, message: str, at: int) -> EditRefusedError:
        """Return a refusal that names the line of event `at`."""
        line = self.text.count("\n", 0, self.starts[at]) + 1
        return EditRefusedError(code, message, line=line)


def decode(data: bytes, limits: Limits = LIMITS) -> str:
    """
    Return the text without its byte order mark.

    Raises:
        EditRefusedError: Too large, not UTF-8, or its lines end in ways that readers count
            differently.
    """
    if len(data) > limits.size_bytes:
        raise EditRefusedError(Reason.LIMITS, f"larger than {limits.size_bytes} bytes")
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        raise EditRefusedError(Reason.ENCODING, f"not UTF-8 at byte {error.start}") from error
    text = text.removeprefix("\ufeff")
    if "\ufeff" in text:
        raise EditRefusedError(Reason.ENCODING, "has a byte order mark in its midst")
    if any(mark in text for mark in _AMBIGUOUS_BREAKS) or text.count("\r") != text.count("\r\n"):
        raise EditRefusedError(
            Reason.LINE_BREAK, "ends a line as YAML 1.1 and 1.2 read differently"
        )
    return text


def read(text: str, limits: Limits = LIMITS) -> Stream:
    """
    Return the events of `text`.

    Raises:
        EditRefusedError: No YAML, beyond the limits, or a key is given twice.
    """
    reader = _Reader(text, limits)
    try:
        for event in yaml.parse(text, Loader=yaml.CSafeLoader):
            reader.take(event)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        reason = str(error.problem or error.context)
        line = mark.line + 1 if mark else None
        raise EditRefusedError(Reason.NOT_YAML, f"no readable YAML: {reason}", line=line) from error
    except (yaml.YAMLError, UnicodeEncodeError) as error:
        raise EditRefusedError(Reason.NOT_YAML, f"no readable YAML: {error}") from error
    return reader.stream


@dataclass(slots=True)
class _Open:
    """A collection whose end is not reached; `keys` of a map, `None` of a list."""

    start: int
    keys: set[str] | None
    anchor: str | None
    size: int = 1
    at_key: bool = True


class _Reader:
    """Takes the parser's events one by one, counting."""

    def __init__(self, text: str, limits: Limits) -> None:
        self.stream = Stream(text)
        self._limits = limits
        self._open: list[_Open] = []
        self._sizes: dict[str, int] = {}
        self._written_out = 0

    def take(self, found: Any) -> None:
        """
        Take one event of PyYAML.

        Raises:
            EditRefusedError: It passes a limit, or repeats a key.
        """
        stream = self.stream
        at = len(stream.events)
        stream.starts.append(found.start_mark.index)
        stream.stops.append(found.end_mark.index)
        event = _TAKEN[type(found)](found)
        stream.events.append(event)
        if at > self._limits.events:
            raise self._beyond(f"more than {self._limits.events} YAML events", at)
        kind = event.kind
        if kind is Kind.SCALAR:
            self._node(event.anchor, 1, event.value, at)
        elif kind is Kind.MAP or kind is Kind.LIST:
            self._start(event, at)
        elif kind is Kind.END:
            closed = self._open.pop()
            stream.ends[closed.start] = at
            self._node(closed.anchor, closed.size, None, at)
        elif kind is Kind.ALIAS:
            self._alias(event.value, at)
        elif kind is Kind.DOCUMENT:
            stream.documents.append(at + 1)
            self._sizes = {}

    def _beyond(self, message: str, at: int) -> EditRefusedError:
        return self.stream.refuse(Reason.LIMITS, message, at)

    def _start(self, event: Event, at: int) -> None:
        if len(self._open) >= self._limits.depth:
            raise self._beyond(f"nested deeper than {self._limits.depth} levels", at)
        keys: set[str] | None = set() if event.kind is Kind.MAP else None
        self._open.append(_Open(at, keys, event.anchor))

    def _alias(self, anchor: str, at: int) -> None:
        if anchor not in self._sizes:
            raise self.stream.refuse(Reason.NOT_YAML, f"nothing is called &{anchor}", at)
        self.stream.aliases.add(anchor)
        size = self._sizes[anchor]
        self._written_out += size
        if self._written_out > self._limits.events:
            raise self._beyond("the aliases stand for too many nodes", at)
        self._node(None, size, None, at)

    def _node(self, anchor: str | None, size: int, value: str | None, at: int) -> None:
        """Note a finished node in the collection around it."""
        if anchor is not None:
            self._sizes[anchor] = size
        if not self._open:
            return
        parent = self._open[-1]
        parent.size += size
        if parent.keys is None:
            return
        if parent.at_key and value is not None:
            if value in parent.keys:
                raise self.stream.refuse(Reason.DUPLICATE_KEY, f"key {value!r} is given twice", at)
            parent.keys.add(value)
        parent.at_key = not parent.at_key


def _scalar(found: Any) -> Event:
    return Event(
        Kind.SCALAR, found.value, found.style or "", found.anchor, found.tag, found.implicit[0]
    )


def _map(found: Any) -> Event:
    style = "flow" if found.flow_style else "block"
    return Event(Kind.MAP, "", style, found.anchor, found.tag)


def _list(found: Any) -> Event:
    style = "flow" if found.flow_style else "block"
    return Event(Kind.LIST, "", style, found.anchor, found.tag)


_TAKEN: dict[type, Callable[[Any], Event]] = {
    yaml.ScalarEvent: _scalar,
    yaml.MappingStartEvent: _map,
    yaml.SequenceStartEvent: _list,
    yaml.MappingEndEvent: lambda _: Event(Kind.END, "map"),
    yaml.SequenceEndEvent: lambda _: Event(Kind.END, "list"),
    yaml.AliasEvent: lambda found: Event(Kind.ALIAS, found.anchor),
    yaml.DocumentStartEvent: lambda found: Event(
        Kind.DOCUMENT, f"{found.explicit} {found.version} {found.tags}"
    ),
    yaml.DocumentEndEvent: lambda found: Event(Kind.OTHER, f"document {found.explicit}"),
    yaml.StreamStartEvent: lambda _: Event(Kind.OTHER, "start"),
    yaml.StreamEndEvent: lambda _: Event(Kind.OTHER, "end"),
}
