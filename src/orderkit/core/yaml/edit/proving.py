"""
Prove that one text is another with one node changed, and that all readers see what was meant.

Events before and after the change must be equal in everything: values, styles, tags, anchors,
document marks. The events between must be the intended value, nothing else, and every scalar of
it must have the intended type and value for YAML 1.1, YAML 1.2 and Kubernetes.

Called by ``editing`` after every splice.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from orderkit.core.yaml.edit.edits import EditRefusal, EditRefusedError, Value
from orderkit.core.yaml.edit.readers import agree
from orderkit.core.yaml.edit.stream import EventKind, ParserEvent, Stream


@dataclass(frozen=True, slots=True)
class ExpectedEvents:
    """
    What the events must be: those of `before`, but `wanted` in place of `first` up to `last`.

    `last` is excluded: equal to `first` for an insertion. A map's new key is a wanted value too.
    """

    first: int
    last: int
    values: Sequence[Value]
    anchor: str | None = None
    """The anchor that the changed node keeps."""


def prove(before: Stream, after: Stream, expected: ExpectedEvents) -> None:
    """
    Return if the proof holds.

    Raises:
        EditRefusedError: It does not.
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
    events = iter(middle)
    if not all(_is(value, events, expected.anchor) for value in expected.values):
        raise _unproved("readers would not all see the intended value")
    if next(events, None) is not None:
        raise _unproved("more than the intended value would be there")


def _unproved(message: str) -> EditRefusedError:
    return EditRefusedError(EditRefusal.UNPROVED, f"{message}; no proof, no change")


def _is(value: Value, events: Iterator[ParserEvent], anchor: str | None = None) -> bool:
    """Take the events of one node and say whether they are `value`."""
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
