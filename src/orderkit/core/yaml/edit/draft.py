"""
Decide what has to change in a text for an edit: one change, or smaller edits.

A map or list in place of another becomes edits of the entries that differ, so that the others keep
their comments and their order. Called by ``editing``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from orderkit.core.yaml.edit import inserting, locating, removing, replacing
from orderkit.core.yaml.edit.edits import Edit, EditRefusal, EditRefusedError, Op, Step, Value
from orderkit.core.yaml.edit.locating import CollectionEntry, NodeLocation, children, show_path
from orderkit.core.yaml.edit.readers import agree
from orderkit.core.yaml.edit.site import EditSite, Splicing
from orderkit.core.yaml.edit.stream import EventKind, Stream


@dataclass(frozen=True, slots=True)
class Proposal:
    """A change at a place, to be written in one of the manners a site has."""

    place: NodeLocation
    act: Callable[[EditSite], Splicing]


def plan(stream: Stream, wish: Edit) -> Proposal | list[Edit]:
    """
    Return the one change that does it, or smaller edits that do it together; none if it is done.

    Raises:
        EditRefusedError: The text does not allow it.
    """
    start = locating.root(stream, wish.document)
    place = locating.locate(stream, start, wish.path)
    if wish.op is Op.SET:
        return _set(stream, place, wish)
    if wish.op is Op.ADD:
        return _add(stream, place, wish)
    if wish.op is Op.REMOVE:
        return _remove(stream, place, wish)
    return _unset(stream, place, wish)


def _set(stream: Stream, place: NodeLocation, wish: Edit) -> Proposal | list[Edit]:
    if place.missing:
        return _create(stream, place, wish.path, wish.value)
    if _holds(stream, place.node, wish.value):
        return []
    event = stream.events[place.node]
    if wish.value and isinstance(wish.value, dict) and event.kind is EventKind.MAP:
        return _map_edits(stream, place.node, wish)
    if wish.value and isinstance(wish.value, list) and event.kind is EventKind.LIST:
        return _list_edits(stream, place.node, wish)
    return _replace(stream, place, wish.value)


def _replace(stream: Stream, place: NodeLocation, value: Value) -> Proposal:
    if not place.parents and stream.is_block(place.node):
        raise stream.refuse(
            EditRefusal.WRONG_KIND, "the whole document cannot be replaced", place.node
        )
    _check_anchors(stream, place.node, stream.end(place.node) + 1)
    return Proposal(place, lambda site: replacing.replace(site, value))


def _holds(stream: Stream, node: int, value: Value) -> bool:
    """Say whether every reader sees this value there already."""
    event = stream.events[node]
    if event.kind is EventKind.SCALAR:
        if event.tag is not None or isinstance(value, dict | list):
            return False
        if not event.plain:
            return isinstance(value, str) and event.value == value
        return agree(event.value, value)
    if event.kind is EventKind.MAP and isinstance(value, dict):
        found = {_key_text(stream, child): child for child in children(stream, node)}
        return found.keys() == value.keys() and all(
            _holds(stream, child.value, value[key])
            for key, child in found.items()
            if key is not None
        )
    if event.kind is EventKind.LIST and isinstance(value, list):
        items = children(stream, node)
        return len(items) == len(value) and all(
            _holds(stream, child.value, item) for child, item in zip(items, value, strict=True)
        )
    return False


def _key_text(stream: Stream, child: CollectionEntry) -> str | None:
    event = stream.events[child.first]
    if event.kind is EventKind.SCALAR and event.tag is None:
        return str(event.value)
    return None


def _map_edits(stream: Stream, node: int, wish: Edit) -> list[Edit]:
    """Return edits of single keys; what stays equal keeps its comments and its order."""
    assert isinstance(wish.value, dict)  # noqa: S101 - the caller looked
    found = {}
    for child in children(stream, node):
        key = _key_text(stream, child)
        if key is None or locating.is_merge(stream.events[child.first]):
            raise stream.refuse(EditRefusal.MERGE_KEY, "a key there is no plain text", child.first)
        found[key] = child
    edits = [
        Edit((*wish.path, key), Op.SET, value, wish.document)
        for key, value in wish.value.items()
        if key not in found or not _holds(stream, found[key].value, value)
    ]
    gone = [key for key in found if key not in wish.value]
    return [*edits, *(Edit((*wish.path, key), Op.UNSET, None, wish.document) for key in gone)]


def _list_edits(stream: Stream, node: int, wish: Edit) -> list[Edit]:
    """Return edits of single items: pairwise, then more or fewer at the end."""
    assert isinstance(wish.value, list)  # noqa: S101 - the caller looked
    items, value = children(stream, node), wish.value
    common = min(len(items), len(value))
    edits = [
        Edit((*wish.path, at), Op.SET, value[at], wish.document)
        for at in range(common)
        if not _holds(stream, items[at].value, value[at])
    ]
    edits += [Edit(wish.path, Op.ADD, item, wish.document) for item in value[common:]]
    more = len(items) - common
    return edits + [Edit((*wish.path, -1), Op.UNSET, None, wish.document)] * more


def _create(stream: Stream, place: NodeLocation, path: Sequence[Step], value: Value) -> Proposal:
    """Add the first missing key; the maps below it come with it."""
    first, *deeper = place.missing
    for step in reversed(deeper):
        value = {_new_key(stream, place, step, path): value}
    name = _new_key(stream, place, first, path)
    if locating.is_null(stream.events[place.node]):
        return _replace(stream, place, {name: value})
    return Proposal(place, lambda site: inserting.insert_key(site, name, value))


def _new_key(stream: Stream, place: NodeLocation, step: Step, path: Sequence[Step]) -> str:
    if isinstance(step, int) or step == "<<":
        raise missing(stream, place, path)
    return step


def missing(stream: Stream, place: NodeLocation, path: Sequence[Step]) -> EditRefusedError:
    """Return the refusal that names the first step that is not there."""
    at = show_path(path[: len(path) - len(place.missing) + 1])
    return stream.refuse(EditRefusal.MISSING, f"{show_path(path)}: there is no {at}", place.node)


def _add(stream: Stream, place: NodeLocation, wish: Edit) -> Proposal:
    if place.missing:
        return _create(stream, place, wish.path, [wish.value])
    event = stream.events[place.node]
    if locating.is_null(event):
        return _replace(stream, place, [wish.value])
    if event.kind is not EventKind.LIST:
        raise _wrong_kind(stream, place, wish.path)
    return Proposal(place, lambda site: inserting.insert_item(site, wish.value))


def _wrong_kind(stream: Stream, place: NodeLocation, path: Sequence[Step]) -> EditRefusedError:
    kind = stream.events[place.node].kind.value
    return stream.refuse(
        EditRefusal.WRONG_KIND, f"{show_path(path)}: is {kind}, no list", place.node
    )


def _remove(stream: Stream, place: NodeLocation, wish: Edit) -> Proposal:
    if place.missing:
        raise missing(stream, place, wish.path)
    if stream.events[place.node].kind is not EventKind.LIST:
        raise _wrong_kind(stream, place, wish.path)
    equal = [
        child for child in children(stream, place.node) if _equals(stream, child.value, wish.value)
    ]
    shown = show_path(wish.path)
    if not equal:
        raise stream.refuse(EditRefusal.MISSING, f"{shown}: has no item {wish.value!r}", place.node)
    if len(equal) > 1:
        raise stream.refuse(
            EditRefusal.NOT_UNIQUE, f"{shown}: has {wish.value!r} {len(equal)} times", place.node
        )
    return _without(stream, place, equal[0])


def _equals(stream: Stream, node: int, value: Value) -> bool:
    try:
        found = locating.data(stream, node)
    except EditRefusedError:
        return False
    return bool(_typed(found) == _typed(value))


def _typed(value: Any) -> Any:
    """Return the value with the types of its scalars beside them: true is not 1."""
    if isinstance(value, dict):
        return {key: _typed(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_typed(item) for item in value]
    return (type(value), value)


def _unset(stream: Stream, place: NodeLocation, wish: Edit) -> Proposal:
    if place.missing:
        raise missing(stream, place, wish.path)
    if not place.parents:
        raise stream.refuse(
            EditRefusal.WRONG_KIND, "the whole document cannot be removed", place.node
        )
    parent, child = place.parents[-1]
    return _without(stream, NodeLocation(parent, (), place.parents[:-1]), child)


def _without(stream: Stream, place: NodeLocation, child: CollectionEntry) -> Proposal:
    """Take an entry out; a map or list that would be empty becomes ``{}`` or ``[]``."""
    found = children(stream, place.node)
    is_map = child.key is not None
    keys = [stream.events[entry.first] for entry in found] if is_map else []
    if any(locating.is_merge(event) for event in keys):
        raise stream.refuse(EditRefusal.MERGE_KEY, "the map inherits through '<<'", child.first)
    _check_anchors(stream, child.first, stream.end(child.value) + 1)
    if len(found) > 1:
        return Proposal(place, lambda site: removing.remove(site, child))
    return _replace(stream, place, {} if is_map else [])


def _check_anchors(stream: Stream, first: int, last: int) -> None:
    for at in range(first, last):
        anchor = stream.events[at].anchor
        if anchor in stream.aliases:
            raise stream.refuse(EditRefusal.ANCHOR_IN_USE, f"*{anchor} repeats it elsewhere", at)
