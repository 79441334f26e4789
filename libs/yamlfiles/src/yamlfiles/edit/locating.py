"""
Follow a path through the events of a document to a node, or to the place of a missing one.

Keys match by their text, indices by position. Aliases, merge keys and tags are not followed: a path
through them has a meaning that the text alone does not show.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from yamlfiles.edit.edit_operations import EditRefusal, EditRefusedError, Step
from yamlfiles.edit.stream import EventKind, ParserEvent, Stream
from yamlfiles.edit.writing import is_read_alike, read_12

_INDEX = re.compile(r"-?[0-9]{1,9}")


@dataclass(frozen=True, slots=True)
class CollectionEntry:
    """One entry of a collection: the events of its key (maps only) and of its value."""

    key: int | None
    value: int

    @property
    def first(self) -> int:
        """The first event of the entry."""
        return self.value if self.key is None else self.key


@dataclass(frozen=True, slots=True)
class NodeLocation:
    """
    The place that a path leads to.

    `node` is the last existing node; `missing` has the steps beyond it (empty if the path exists).
    `parents` are the enclosing collections, outermost first, each with its entry.
    """

    node: int
    missing: tuple[Step, ...]
    parents: tuple[tuple[int, CollectionEntry], ...]


def root(stream: Stream, document: int | None) -> int:
    """
    Return the root node of the selected document.

    Empty documents do not count if no document is selected by number.

    Raises:
        EditRefusedError: There are several documents, or it is missing or empty.
    """
    roots = stream.documents
    if document is not None:
        if not 0 <= document < len(roots):
            raise EditRefusedError(
                EditRefusal.DOCUMENT, f"has {len(roots)} documents and none with number {document}"
            )
        if _is_empty(stream.events[roots[document]]):
            raise EditRefusedError(EditRefusal.EMPTY, f"document {document} holds nothing")
        return roots[document]
    filled = [at for at in roots if not _is_empty(stream.events[at])]
    if len(filled) > 1:
        raise EditRefusedError(EditRefusal.DOCUMENT, f"has {len(filled)} documents")
    if not filled:
        raise EditRefusedError(EditRefusal.EMPTY, "holds nothing")
    return filled[0]


def _is_empty(event: ParserEvent) -> bool:
    return event.kind is EventKind.SCALAR and event.plain and not event.value


def children(stream: Stream, at: int) -> list[CollectionEntry]:
    """Return the entries of the map or list that begins at event `at`."""
    end, entries, index = stream.end(at), [], at + 1
    is_map = stream.events[at].kind is EventKind.MAP
    while index < end:
        key = index if is_map else None
        if is_map:
            index = stream.end(index) + 1
        entries.append(CollectionEntry(key, index))
        index = stream.end(index) + 1
    return entries


def locate(stream: Stream, start: int, path: Sequence[Step]) -> NodeLocation:
    """
    Follow `path` from the node `start`.

    Raises:
        EditRefusedError: The path leads through an alias, a tag, an inherited key or a scalar, or
            to an index that does not exist.
    """
    node = start
    parents: list[tuple[int, CollectionEntry]] = []
    for depth, step in enumerate(path):
        path_text = show_path(path[: depth + 1])
        event = stream.events[node]
        _check_way(stream, node, path_text)
        if event.kind is EventKind.MAP:
            child = find_key(stream, node, str(step), path_text)
            if child is None:
                return NodeLocation(node, tuple(path[depth:]), tuple(parents))
        elif event.kind is EventKind.LIST:
            child = _find_index(stream, node, step, path_text)
        elif is_null(event):
            return NodeLocation(node, tuple(path[depth:]), tuple(parents))
        else:
            raise stream.refuse(
                EditRefusal.WRONG_KIND,
                f"{path_text}: what is above is neither a map nor a list",
                node,
            )
        parents.append((node, child))
        node = child.value
    _check_way(stream, node, show_path(path))
    return NodeLocation(node, (), tuple(parents))


def is_null(event: ParserEvent) -> bool:
    """Return whether it is null for every reader and has no anchor or tag."""
    return (
        event.kind is EventKind.SCALAR
        and event.plain
        and event.tag is None
        and event.anchor is None
        and event.value in ("", "~", "null", "Null", "NULL")
    )


def _check_way(stream: Stream, node: int, path_text: str) -> None:
    event = stream.events[node]
    if event.kind is EventKind.ALIAS:
        raise stream.refuse(EditRefusal.ALIAS, f"{path_text}: is the alias *{event.value}", node)
    if event.tag is not None:
        raise stream.refuse(EditRefusal.TAG, f"{path_text}: has the tag {event.tag}", node)
    anchor = event.anchor
    if anchor is not None and anchor in stream.aliases:
        raise stream.refuse(
            EditRefusal.ANCHOR_IN_USE, f"{path_text}: is used elsewhere as *{anchor}", node
        )


def find_key(stream: Stream, node: int, name: str, path_text: str) -> CollectionEntry | None:
    """
    Return the entry of a key; None if the map has no such key.

    Raises:
        EditRefusedError: The map may inherit the key; or the key has a tag, is an alias, or is
            something else to another reader.
    """
    merges = False
    for child in children(stream, node):
        event = stream.events[child.first]
        if event.kind is EventKind.ALIAS:
            raise stream.refuse(
                EditRefusal.ALIAS, f"{path_text}: a key beside it is an alias", child.first
            )
        if event.kind is not EventKind.SCALAR:
            continue
        if event.value == name:
            _check_key(stream, child.first, path_text)
            return child
        merges = merges or is_merge(event)
    if merges:
        raise stream.refuse(
            EditRefusal.MERGE_KEY, f"{path_text}: the map inherits through '<<'", node
        )
    return None


def _check_key(stream: Stream, at: int, path_text: str) -> None:
    event = stream.events[at]
    if event.tag is not None:
        raise stream.refuse(EditRefusal.TAG, f"{path_text}: the key has a tag", at)
    if is_merge(event):
        raise stream.refuse(EditRefusal.MERGE_KEY, f"{path_text}: merges another map", at)
    if event.plain and not is_read_alike(event.value):
        raise stream.refuse(
            EditRefusal.AMBIGUOUS_KEY, f"{path_text}: not every reader sees this key", at
        )


def is_merge(event: ParserEvent) -> bool:
    """Return whether a key is ``<<``."""
    return event.kind is EventKind.SCALAR and event.value == "<<" and event.plain


def _find_index(stream: Stream, node: int, step: Step, path_text: str) -> CollectionEntry:
    if not _INDEX.fullmatch(str(step)):
        raise stream.refuse(
            EditRefusal.WRONG_KIND,
            f"{path_text}: {step!r} is not an index, and there is a list",
            node,
        )
    index = int(step)
    items = children(stream, node)
    if not -len(items) <= index < len(items):
        raise stream.refuse(
            EditRefusal.MISSING, f"{path_text}: the list has {len(items)} items", node
        )
    return items[index]


def show_path(path: Sequence[Step]) -> str:
    """Return a path in the notation of ``assignments``."""
    text = ""
    for step in path:
        if isinstance(step, int):
            text += f"[{step}]"
        elif step and all(char.isalnum() or char in "_-" for char in step):
            text += f".{step}" if text else step
        else:
            text += f'["{step}"]'
    return text or "the document"


def data(stream: Stream, at: int) -> Any:
    """
    Return the plain data of a node as YAML 1.2 reads it.

    Raises:
        EditRefusedError: It contains an alias, a tag, a merge key or a key that is not a scalar.
    """
    event = stream.events[at]
    if event.kind is EventKind.ALIAS:
        raise stream.refuse(EditRefusal.ALIAS, f"there is the alias *{event.value}", at)
    if event.tag is not None:
        raise stream.refuse(EditRefusal.TAG, f"there is the tag {event.tag}", at)
    if event.kind is EventKind.SCALAR:
        return read_12(event.value) if event.plain else event.value
    if event.kind is EventKind.LIST:
        return [data(stream, child.value) for child in children(stream, at)]
    return {_key(stream, child.first): data(stream, child.value) for child in children(stream, at)}


def _key(stream: Stream, at: int) -> str:
    event = stream.events[at]
    if event.kind is not EventKind.SCALAR:
        raise stream.refuse(EditRefusal.WRONG_KIND, "a key there is not a scalar", at)
    if is_merge(event):
        raise stream.refuse(EditRefusal.MERGE_KEY, "the map inherits through '<<'", at)
    return str(event.value)
