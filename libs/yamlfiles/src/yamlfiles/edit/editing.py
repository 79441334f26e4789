"""
Apply edits to the bytes of a file: draft, locate, splice, prove, one edit after the other.

All edits or none: the returned bytes contain every edit.

An edit is carried out as one change to the text, or as several smaller edits. Replacing a map or
list by another becomes edits of the entries that differ, so that the others keep their comments and
their order.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, cast

from yamlfiles.edit import entry_edits, locating, replacing, writing
from yamlfiles.edit.edit_operations import Edit, EditRefusal, EditRefusedError, Op, Step, Value
from yamlfiles.edit.locating import CollectionEntry, NodeLocation, children, show_path
from yamlfiles.edit.proving import prove
from yamlfiles.edit.site import EditSite, Splicing
from yamlfiles.edit.stream import LIMITS, EventKind, Stream, YamlLimits, check, decode, read, scan
from yamlfiles.edit.writing import agree


@dataclass(frozen=True, slots=True)
class Proposal:
    """A change at a place, to be written in one of the ways that the site allows."""

    target: NodeLocation
    act: Callable[[EditSite], Splicing]


def draft_change(stream: Stream, edit: Edit) -> Proposal | list[Edit]:
    """
    Return one change, or smaller edits that have the same effect; none if nothing has to change.

    Raises:
        EditRefusedError: The text does not allow the edit.
    """
    start = locating.root(stream, edit.document)
    target = locating.locate(stream, start, edit.path)
    if edit.op is Op.SET:
        return _set(stream, target, edit)
    if edit.op is Op.ADD:
        return _add(stream, target, edit)
    if edit.op is Op.REMOVE:
        return _remove(stream, target, edit)
    if edit.op is Op.UNSET:
        return _unset(stream, target, edit)
    if target.missing or not target.parents:
        raise missing(stream, target, edit.path)
    if edit.op is Op.COMMENT:
        comment = str(edit.value)
        return Proposal(target, lambda site: entry_edits.write_comment(site, comment))
    return _move(stream, start, target, edit)


def _move(stream: Stream, start: int, target: NodeLocation, edit: Edit) -> Proposal | list[Edit]:
    to = cast("list[Step]", edit.value)
    if not locating.locate(stream, start, to).missing:
        raise stream.refuse(
            EditRefusal.DUPLICATE_KEY, f"{show_path(to)}: is there already", target.node
        )
    if not entry_edits.is_rename(edit.path, to):
        return entry_edits.move_edits(stream, target, edit, to)
    parent, child = target.parents[-1]
    name = str(to[-1])
    if stream.events[child.first].anchor is not None:
        raise stream.refuse(EditRefusal.ANCHOR_IN_USE, "the key has an anchor", child.first)
    home = NodeLocation(parent, (), target.parents[:-1])
    return Proposal(home, lambda site: entry_edits.rename(site, child, name))


def _set(stream: Stream, target: NodeLocation, edit: Edit) -> Proposal | list[Edit]:
    if target.missing:
        return _create(stream, target, edit.path, edit.value)
    if _holds(stream, target.node, edit.value):
        return []
    event = stream.events[target.node]
    if edit.value and isinstance(edit.value, dict) and event.kind is EventKind.MAP:
        return _map_edits(stream, target.node, edit)
    if edit.value and isinstance(edit.value, list) and event.kind is EventKind.LIST:
        return _list_edits(stream, target.node, edit)
    return _replace(stream, target, edit.value)


def _replace(stream: Stream, target: NodeLocation, value: Value) -> Proposal:
    if not target.parents and stream.is_block(target.node):
        raise stream.refuse(
            EditRefusal.WRONG_KIND, "the whole document cannot be replaced", target.node
        )
    _check_anchors(stream, target.node, stream.end(target.node) + 1)
    return Proposal(target, lambda site: replacing.replace(site, value))


def _holds(stream: Stream, node: int, value: Value) -> bool:
    """Return whether every reader already reads this value there."""
    event = stream.events[node]
    if event.kind is EventKind.SCALAR:
        if event.tag is not None or isinstance(value, dict | list):
            return False
        if not event.plain:
            return isinstance(value, str) and event.value == value
        return agree(event.value, value)
    if event.kind is EventKind.MAP and isinstance(value, dict):
        children_by_key = {_key_text(stream, child): child for child in children(stream, node)}
        return children_by_key.keys() == value.keys() and all(
            _holds(stream, child.value, value[key])
            for key, child in children_by_key.items()
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


def _map_edits(stream: Stream, node: int, edit: Edit) -> list[Edit]:
    """Return edits of single keys. Equal entries keep their comments and order."""
    assert isinstance(edit.value, dict)  # noqa: S101 - the caller looked
    children_by_key = {}
    for child in children(stream, node):
        key = _key_text(stream, child)
        if key is None or locating.is_merge(stream.events[child.first]):
            raise stream.refuse(EditRefusal.MERGE_KEY, "a key there is not plain text", child.first)
        children_by_key[key] = child
    edits = [
        Edit((*edit.path, key), Op.SET, value, edit.document)
        for key, value in edit.value.items()
        if key not in children_by_key or not _holds(stream, children_by_key[key].value, value)
    ]
    removed = [key for key in children_by_key if key not in edit.value]
    return [*edits, *(Edit((*edit.path, key), Op.UNSET, None, edit.document) for key in removed)]


def _list_edits(stream: Stream, node: int, edit: Edit) -> list[Edit]:
    """Return edits of single items: pairwise, then appended or removed at the end."""
    assert isinstance(edit.value, list)  # noqa: S101 - the caller looked
    items, value = children(stream, node), edit.value
    common = min(len(items), len(value))
    edits = [
        Edit((*edit.path, at), Op.SET, value[at], edit.document)
        for at in range(common)
        if not _holds(stream, items[at].value, value[at])
    ]
    edits += [Edit(edit.path, Op.ADD, item, edit.document) for item in value[common:]]
    surplus = len(items) - common
    return edits + [Edit((*edit.path, -1), Op.UNSET, None, edit.document)] * surplus


def _create(stream: Stream, target: NodeLocation, path: Sequence[Step], value: Value) -> Proposal:
    """Add the first missing key, with the maps below it."""
    first, *deeper = target.missing
    for step in reversed(deeper):
        value = {_new_key(stream, target, step, path): value}
    name = _new_key(stream, target, first, path)
    if locating.is_null(stream.events[target.node]):
        return _replace(stream, target, {name: value})
    return Proposal(target, lambda site: entry_edits.insert_key(site, name, value))


def _new_key(stream: Stream, target: NodeLocation, step: Step, path: Sequence[Step]) -> str:
    if isinstance(step, int) or step == "<<":
        raise missing(stream, target, path)
    return step


def missing(stream: Stream, target: NodeLocation, path: Sequence[Step]) -> EditRefusedError:
    """Return the refusal that names the first missing step."""
    at = show_path(path[: len(path) - len(target.missing) + 1])
    return stream.refuse(EditRefusal.MISSING, f"{show_path(path)}: there is no {at}", target.node)


def _add(stream: Stream, target: NodeLocation, edit: Edit) -> Proposal:
    if target.missing:
        return _create(stream, target, edit.path, [edit.value])
    event = stream.events[target.node]
    if locating.is_null(event):
        return _replace(stream, target, [edit.value])
    if event.kind is not EventKind.LIST:
        raise _wrong_kind(stream, target, edit.path)
    return Proposal(target, lambda site: entry_edits.insert_item(site, edit.value))


def _wrong_kind(stream: Stream, target: NodeLocation, path: Sequence[Step]) -> EditRefusedError:
    kind = stream.events[target.node].kind.value
    return stream.refuse(
        EditRefusal.WRONG_KIND, f"{show_path(path)}: is {kind}, no list", target.node
    )


def _remove(stream: Stream, target: NodeLocation, edit: Edit) -> Proposal:
    if target.missing:
        raise missing(stream, target, edit.path)
    if stream.events[target.node].kind is not EventKind.LIST:
        raise _wrong_kind(stream, target, edit.path)
    equal = [
        child for child in children(stream, target.node) if _equals(stream, child.value, edit.value)
    ]
    path_text = show_path(edit.path)
    if not equal:
        raise stream.refuse(
            EditRefusal.MISSING, f"{path_text}: has no item {edit.value!r}", target.node
        )
    if len(equal) > 1:
        raise stream.refuse(
            EditRefusal.NOT_UNIQUE,
            f"{path_text}: has {edit.value!r} {len(equal)} times",
            target.node,
        )
    return _without(stream, target, equal[0])


def _equals(stream: Stream, node: int, value: Value) -> bool:
    try:
        node_value = locating.data(stream, node)
    except EditRefusedError:
        return False
    return bool(_typed(node_value) == _typed(value))


def _typed(value: Any) -> Any:
    """Return the value with each scalar paired with its type, because Python's True equals 1."""
    if isinstance(value, dict):
        return {key: _typed(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_typed(item) for item in value]
    return (type(value), value)


def _unset(stream: Stream, target: NodeLocation, edit: Edit) -> Proposal:
    if target.missing:
        raise missing(stream, target, edit.path)
    if not target.parents:
        raise stream.refuse(
            EditRefusal.WRONG_KIND, "the whole document cannot be removed", target.node
        )
    parent, child = target.parents[-1]
    return _without(stream, NodeLocation(parent, (), target.parents[:-1]), child)


def _without(stream: Stream, target: NodeLocation, child: CollectionEntry) -> Proposal:
    """Remove an entry. A map or list that would become empty is written as ``{}`` or ``[]``."""
    entries = children(stream, target.node)
    is_map = child.key is not None
    keys = [stream.events[entry.first] for entry in entries] if is_map else []
    if any(locating.is_merge(event) for event in keys):
        raise stream.refuse(EditRefusal.MERGE_KEY, "the map inherits through '<<'", child.first)
    _check_anchors(stream, child.first, stream.end(child.value) + 1)
    if len(entries) > 1:
        return Proposal(target, lambda site: entry_edits.remove(site, child))
    return _replace(stream, target, {} if is_map else [])


def _check_anchors(stream: Stream, first: int, last: int) -> None:
    for at in range(first, last):
        anchor = stream.events[at].anchor
        if anchor in stream.aliases:
            raise stream.refuse(EditRefusal.ANCHOR_IN_USE, f"*{anchor} repeats it elsewhere", at)


_BOM = b"\xef\xbb\xbf"
_CHANGES_MAX = 500


def edit(
    data: bytes, edits: Sequence[Edit], *, name: str = "", limits: YamlLimits = LIMITS
) -> bytes:
    """
    Return the bytes with all edits applied and everything else unchanged.

    Each change is proved: to a parser nothing but the intended node differs, and readers of YAML
    1.1, YAML 1.2 and Kubernetes read the intended value. A value that all of them already read
    stays as it is written. Comments inside a removed value are removed with it.

    Args:
        name: The file's name in messages.

    Raises:
        EditRefusedError: One of the edits cannot be made or cannot be proved. Nothing was changed.
    """
    try:
        text = decode(data, limits)
        stream = read(text, limits)
        for change in edits:
            stream = _edited(stream, change, limits)
    except EditRefusedError as error:
        raise error.named(name) from error
    bom = _BOM if data.startswith(_BOM) else b""
    return bom + stream.text.encode()


def read_value(data: bytes, path: Sequence[Step], *, document: int | None = None) -> Value:
    """
    Return the plain data at a path as YAML 1.2 reads it.

    Raises:
        EditRefusedError: The path does not exist, or an edit there would be refused too.
    """
    stream = read(decode(data, LIMITS), LIMITS)
    target = locating.locate(stream, locating.root(stream, document), path)
    if target.missing:
        raise missing(stream, target, path)
    value: Value = locating.data(stream, target.node)
    return value


def _edited(stream: Stream, edit_: Edit, limits: YamlLimits) -> Stream:
    """Apply one edit. Replacing a map or list takes several changes."""
    writing.check(edit_.value)
    todo, changes = deque([edit_]), 0
    while todo:
        changes += 1
        if changes > _CHANGES_MAX:
            raise EditRefusedError(EditRefusal.LIMITS, f"more than {_CHANGES_MAX} changes at once")
        # `_proved` only scans its result. It is checked here if another change follows; after the
        # last change the proof suffices.
        if not stream.documents:
            check(stream, limits)
        step = draft_change(stream, todo.popleft())
        if isinstance(step, Proposal):
            stream = _carried_out(stream, step, limits)
        else:
            # The smaller edits come before the remaining ones, in their order.
            todo.extendleft(reversed(step))
    return stream


def _carried_out(stream: Stream, proposal: Proposal, limits: YamlLimits) -> Stream:
    """Make a change that can be proved. Multi-line strings can be written in two ways."""
    first = EditSite(stream, proposal.target)
    try:
        return _proved(stream, proposal.act(first), limits)
    except EditRefusedError as error:
        if error.code is not EditRefusal.UNPROVED:
            raise
    # A literal block may absorb the lines after it, which only the proof detects. Quotes may not.
    second = EditSite(stream, proposal.target, literal=False)
    return _proved(stream, proposal.act(second), limits)


def _proved(stream: Stream, change: Splicing, limits: YamlLimits) -> Stream:
    text = change.apply(stream.text)
    if len(text) > limits.size_bytes:
        raise EditRefusedError(
            EditRefusal.LIMITS, f"would be larger than {limits.size_bytes} bytes"
        )
    try:
        after = scan(text, limits)
    except EditRefusedError as error:
        if error.code is EditRefusal.LIMITS:
            raise
        message = f"the result would be no good YAML ({error.reason})"
        raise EditRefusedError(EditRefusal.UNPROVED, message) from error
    prove(stream, after, change.expected)
    return after
