"""
Append a key to a map or an item to a list, in the style of the existing entries.

Called through ``draft``.
"""

from __future__ import annotations

from dataclasses import replace

from yamlfiles.edit import writing
from yamlfiles.edit.edit_operations import EditRefusal, Value
from yamlfiles.edit.locating import CollectionEntry
from yamlfiles.edit.proving import ExpectedEvents
from yamlfiles.edit.site import EditSite, Splice, Splicing


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
