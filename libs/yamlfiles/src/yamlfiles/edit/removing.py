"""
Remove an entry from a map or list that has other entries.

If the entry has lines of its own, whole lines are removed, including the comment after it. Comments
above it stay. Called through ``draft``.
"""

from __future__ import annotations

import re

from yamlfiles.edit.edit_operations import EditRefusal
from yamlfiles.edit.locating import CollectionEntry
from yamlfiles.edit.proving import ExpectedEvents
from yamlfiles.edit.site import EditSite, Splice, Splicing

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
