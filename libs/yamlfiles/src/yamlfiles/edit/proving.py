"""
Prove that two texts differ in one node only, and that all readers read the intended value.

The events before and after the change must be equal in every respect: values, styles, tags,
anchors, document marks. Each alias must repeat the node that it repeated. The events in between
must be exactly the intended value, and every scalar in it must have the intended type and value in
YAML 1.1, YAML 1.2 and Kubernetes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from yamlfiles.edit.edit_operations import EditRefusal, EditRefusedError, Value
from yamlfiles.edit.stream import EventKind, ParserEvent, Stream
from yamlfiles.edit.writing import agree


@dataclass(frozen=True, slots=True)
class ExpectedEvents:
    """
    The expected events: those of `before`, with `wanted` in place of `first` to `last`.

    `last` is excluded; it equals `first` for an insertion. The new key of a map is in `wanted` too.
    """

    first: int
    last: int
    values: Sequence[Value]
    anchor: str | None = None
    """The anchor that the changed node keeps."""


def prove(before: Stream, after: Stream, expected: ExpectedEvents) -> None:
    """
    Return if the proof succeeds.

    Raises:
        EditRefusedError: It fails.
    """
    old, new = before.events, after.events
    tail = len(old) - expected.last
    middle = new[expected.first : len(new) - tail]
    if (
        len(new) < expected.first + tail
        or old[: expected.first] != new[: expected.first]
        or old[expected.last :] != new[len(new) - tail :]
    ):
        raise _unproved("something else would change too")
    if _is_repeated(old, expected):
        raise _unproved("an alias (*name) behind it would repeat something else, or nothing")
    events = iter(middle)
    if not all(_is(value, events, expected.anchor) for value in expected.values):
        raise _unproved("readers would not all see the intended value")
    if next(events, None) is not None:
        raise _unproved("more than the intended value would be there")


def _is_repeated(old: Sequence[ParserEvent], expected: ExpectedEvents) -> bool:
    """Return whether an alias behind the changed node repeats a part of it."""
    anchors = {event.anchor for event in old[expected.first : expected.last]} - {None}
    for event in old[expected.last :] if anchors else ():
        if event.kind is EventKind.ALIAS and event.value in anchors:
            return True
        anchors.discard(event.anchor)  # from here on, the name stands for this node
    return False


def _unproved(message: str) -> EditRefusedError:
    return EditRefusedError(EditRefusal.UNPROVED, f"{message}; no proof, no change")


def _is(value: Value, events: Iterator[ParserEvent], anchor: str | None = None) -> bool:
    """Consume the events of one node and return whether they are `value`."""
    event = next(events, None)
    if event is None or event.anchor != anchor or event.tag is not None:
        return False
    if event.kind is EventKind.SCALAR:
        return agree(event.value, value) if event.plain else event.value == value
    if event.kind is EventKind.LIST:
        inside = isinstance(value, list) and all(_is(item, events) for item in value)
    elif event.kind is EventKind.MAP:
        inside = isinstance(value, dict) and all(
            _is(key, events) and _is(item, events) for key, item in value.items()
        )
    else:
        return False
    return inside and next(events, None) == ParserEvent(EventKind.END, event.kind.name.lower())
