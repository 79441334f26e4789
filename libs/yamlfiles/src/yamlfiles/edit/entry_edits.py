"""
Edit the entries of maps and lists: append one, remove one, move one to another key.

A key or an item is appended in the style of the existing entries. An entry that has lines of its
own is removed with its lines and the comment after it; comments above it stay. Removing works in a
map or list that has other entries.

A value that moves to another key of its map keeps its comments, because only the key's text
changes. To another map the value is written anew and the comment behind it follows; comments inside
a moved map or list would be lost, so that is refused.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from yamlfiles.edit import locating, writing
from yamlfiles.edit.edit_operations import Edit, EditRefusal, Op, Step, Value
from yamlfiles.edit.locating import CollectionEntry, NodeLocation
from yamlfiles.edit.proving import ExpectedEvents
from yamlfiles.edit.site import EditSite, Splice, Splicing, TextLayout
from yamlfiles.edit.stream import Stream


def insert_key(site: EditSite, name: str, value: Value) -> Splicing:
    """
    Append a key to the map at the site.

    Raises:
        EditRefusedError: Tabs, or a block scalar that ends with the text.
    """
    last = site.stream.end(site.node)
    expected = ExpectedEvents(last, last, [name, value])
    if site.takes_flow:
        key = writing.key(name, site.style, flow=True)
        return Splicing(
            (_in_brackets(site, f"{key}: {writing.flow(value, site.style)}"),), expected
        )
    column = site.layout.column_of(site.node)
    lines = list(writing.block({name: value}, column, site.block_style))
    if value is None and site.layout.lacks_colon(site.children()[-1].value):
        lines = [f"{' ' * column}? {writing.key(name, site.style, flow=False)}"]
    return Splicing((site.after_line(site.layout.end(site.node), lines),), expected)


def insert_item(site: EditSite, value: Value) -> Splicing:
    """
    Append an item to the list at the site.

    Raises:
        EditRefusedError: Tabs, a comment in empty brackets, a pair without braces, or a block
            scalar that ends with the text.
    """
    last = site.stream.end(site.node)
    expected = ExpectedEvents(last, last, [value])
    items = site.children()
    quote = _quote(site, items)
    if site.takes_flow:
        text = writing.flow(value, replace(site.style, quote=quote))
        return Splicing((_in_brackets(site, text),), expected)
    column = site.layout.column_of(site.node)
    gap = site.layout.gap_after_dash(site.node, items)
    style = replace(site.block_style, quote=quote)
    first, *further_lines = writing.item_lines(value, column + 1 + len(gap), style)
    lines = [" " * column + "-" + gap + first, *further_lines]
    return Splicing((site.after_line(site.layout.end(site.node), lines),), expected)


def _quote(site: EditSite, items: list[CollectionEntry]) -> str:
    """Return the quotes of the last item; a new string gets the same."""
    style = site.stream.events[items[-1].value].style if items else ""
    return style if style in ("'", '"') else ""


def _in_brackets(site: EditSite, text: str) -> Splice:
    """Append an entry to a flow map or list."""
    entries, layout = site.children(), site.layout
    if site.text[layout.body(site.node)] not in "[{":
        raise site.stream.refuse(EditRefusal.PAIR, "a pair without braces takes no more", site.node)
    if not entries:
        inside = layout.body(site.node) + 1
        end = site.stream.start(site.stream.end(site.node))
        if site.text[inside:end].strip():
            raise site.stream.refuse(
                EditRefusal.COMMENT, "a comment stands in the brackets", site.node
            )
        return Splice(inside, end, text)
    end = layout.entry_end(entries[-1])
    begin = site.stream.start(entries[-1].first)
    lead = site.text[layout.line_start(begin) : begin]
    if lead and not lead.strip(" \t"):
        return Splice(end, end, f",{site.style.newline}{lead}{text}")
    return Splice(end, end, f", {text}")


_REST_OF_LINE = re.compile(r"[ \t]*(?P<comma>,?)[ \t]*(#.*)?")


def remove(site: EditSite, child: CollectionEntry) -> Splicing:
    """
    Remove an entry from the map or list at the site. It must not be the only one.

    Raises:
        EditRefusedError: A comment stands in between, or a block scalar above
            would absorb what follows.
    """
    expected = ExpectedEvents(child.first, site.stream.end(child.value) + 1, [])
    entries = site.children()
    at = entries.index(child)
    if site.takes_flow:
        return Splicing(tuple(_from_brackets(site, entries, at)), expected)
    layout = site.layout
    start = layout.entry_start(site.node, entries, at)
    line = layout.line_start(start)
    if not site.text[line:start].strip(" "):
        end = layout.next_line(layout.end(child.value))
        _check_above(site, child, start, end)
        return Splicing((Splice(line, end, ""),), expected)
    following = layout.entry_start(site.node, entries, at + 1) if at + 1 < len(entries) else start
    _check_comments(site, layout.end(child.value), following, child)
    return Splicing((Splice(start, following, ""),), expected)


def _check_above(site: EditSite, child: CollectionEntry, start: int, end: int) -> None:
    """Refuse if a block scalar above would absorb what follows the removed lines."""
    above = site.layout.last_before(child.first)
    if not site.layout.is_block_scalar(above):
        return
    behind = site.text[end:]
    words = behind.lstrip(" \r\n")
    column = site.layout.column(len(site.text) - len(words)) if words else 0
    is_blank = not behind.split("\n", 1)[0].strip()
    if column > site.layout.column(start) or (is_blank and site.layout.keeps_blank_lines(above)):
        raise site.stream.refuse(
            EditRefusal.BLOCK_SCALAR,
            "what stands behind it would become part of the block scalar above",
            child.first,
        )


def _from_brackets(site: EditSite, entries: list[CollectionEntry], at: int) -> list[Splice]:
    """Cut an entry out of a flow map or list, with one comma; whole lines if it has its own."""
    child = entries[at]
    start, end = site.stream.start(child.first), site.layout.entry_end(child)
    if site.text[site.layout.line_start(start) : start].isspace() and (
        rest := _REST_OF_LINE.fullmatch(site.text[end : site.layout.line_end(end)])
    ):
        line = Splice(site.layout.line_start(start), site.layout.next_line(end), "")
        if rest["comma"]:
            return [line]
        above = site.layout.entry_end(entries[at - 1])
        comma = site.text.find(",", above)
        if at + 1 == len(entries) and not site.text[above:comma].strip():
            return [Splice(comma, comma + 1, ""), line]
    if at + 1 < len(entries):
        following = site.stream.start(entries[at + 1].first)
        _check_comments(site, end, following, child)
        return [Splice(start, following, "")]
    before = site.layout.entry_end(entries[at - 1])
    _check_comments(site, before, start, child)
    return [Splice(before, end, "")]


def _check_comments(site: EditSite, start: int, end: int, child: CollectionEntry) -> None:
    if "#" in site.text[start:end]:
        raise site.stream.refuse(
            EditRefusal.COMMENT, "a comment stands beside what would be removed", child.first
        )


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
