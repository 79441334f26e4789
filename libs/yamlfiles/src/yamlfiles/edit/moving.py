"""
Move a value to another key and keep its comments.

Within one map only the key's text changes. To another map the value is written anew and the comment
behind it follows; comments inside a moved map or list would be lost, so that is refused. Called
through ``draft``.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from yamlfiles.edit import locating, writing
from yamlfiles.edit.edit_operations import Edit, EditRefusal, Op, Step
from yamlfiles.edit.layout import TextLayout
from yamlfiles.edit.locating import CollectionEntry, NodeLocation
from yamlfiles.edit.proving import ExpectedEvents
from yamlfiles.edit.site import EditSite, Splice, Splicing
from yamlfiles.edit.stream import Stream

_COMMENT = re.compile(r"\s#")


def is_rename(path: Sequence[Step], to: Sequence[Step]) -> bool:
    """Return whether a value stays in its map and only its key changes."""
    return [*path[:-1]] == [*to[:-1]] and isinstance(path[-1], str)


def rename(site: EditSite, child: CollectionEntry, name: str) -> Splicing:
    """Write another key before the same value."""
    at = child.first
    text = writing.key(name, site.style, flow=site.takes_flow)
    expected = ExpectedEvents(at, at + 1, [name])
    return Splicing((Splice(site.stream.start(at), site.stream.stop(at), text),), expected)


def move_edits(stream: Stream, target: NodeLocation, edit: Edit, to: Sequence[Step]) -> list[Edit]:
    """
    Return the edits that write the value at its new place, with the comment behind it.

    Raises:
        EditRefusedError: Comments stand inside the value.
    """
    parent, child = target.parents[-1]
    value = locating.data(stream, target.node)
    edits = [
        Edit(tuple(to), Op.SET, value, edit.document),
        Edit(edit.path, Op.UNSET, None, edit.document),
    ]
    comment = "" if stream.events[parent].style == "flow" else _comment(stream, child)
    return [*edits, Edit(tuple(to), Op.COMMENT, comment, edit.document)] if comment else edits


def _comment(stream: Stream, child: CollectionEntry) -> str:
    layout = TextLayout(stream)
    end = layout.end(child.value)
    if _COMMENT.search(stream.text, stream.stop(child.first), end):
        raise stream.refuse(
            EditRefusal.COMMENT, "comments stand inside what would move", child.first
        )
    return stream.text[end : layout.line_end(end)].strip()


def write_comment(site: EditSite, comment: str) -> Splicing:
    """
    Write a comment behind a value, on its line.

    Raises:
        EditRefusedError: The line goes on, or has a comment already.
    """
    end = site.layout.end(site.node)
    rest = site.text[end : site.layout.line_end(end)]
    if site.takes_flow or rest.strip() or site.layout.is_block_scalar(site.node):
        raise site.stream.refuse(
            EditRefusal.COMMENT, "there is no room for the comment that moves along", site.node
        )
    expected = ExpectedEvents(site.node, site.node, [])
    return Splicing((Splice(end, end, f"  {comment}"),), expected)
