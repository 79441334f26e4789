"""
Replace a value: on its line, in lines of its own, or in a block scalar.

The text after the old value on its line stays, comments in particular.
"""

from __future__ import annotations

from dataclasses import replace as replaced

from yamlfiles.edit import writing
from yamlfiles.edit.edit_operations import EditRefusal, EditRefusedError, Value
from yamlfiles.edit.proving import ExpectedEvents
from yamlfiles.edit.site import EditSite, Splice, Splicing
from yamlfiles.edit.stream import EventKind


def replace(site: EditSite, value: Value) -> Splicing:
    """
    Replace the site's node by a value.

    Raises:
        EditRefusedError: The new string does not fit the block scalar's style; tabs.
    """
    event = site.event
    expected = ExpectedEvents(site.node, site.stream.end(site.node) + 1, [value], event.anchor)
    if site.in_flow or not site.target.parents:
        splices = [_on_its_line(site, value)]
    elif site.layout.is_block_scalar(site.node):
        splices = _block_scalar(site, value)
    elif event.style == "block":
        splices = _block(site, value)
    elif writing.is_block(value):
        splices = _opened(site, value)
    else:
        splices = [_on_its_line(site, value)]
    return Splicing(tuple(splices), expected)


def _on_its_line(site: EditSite, value: Value) -> Splice:
    """Replace the text between the node's marks and keep its quotes."""
    start, end = site.layout.body(site.node), site.layout.end(site.node)
    style, event = site.style, site.event
    if event.kind is EventKind.SCALAR and event.style in ("'", '"'):
        style = replaced(style, quote=event.style)
    if isinstance(value, dict | list) or site.in_flow:
        text = writing.flow(value, style)
    else:
        text = writing.scalar(value, style, flow=False)
    if not site.in_flow and site.layout.lacks_colon(site.node):
        key = site.target.parents[-1][1].first
        column = site.layout.column_of(site.target.parents[-1][0])
        at = site.layout.end(key)
        return Splice(at, at, f"{site.style.newline}{' ' * column}: {text}")
    return Splice(start, end, _gap(site, start) + text)


def _gap(site: EditSite, start: int) -> str:
    """Return what an empty value needs before it: a colon in ``{a}``, otherwise a blank."""
    if start != site.stream.stop(site.node):
        return ""
    key = site.target.parents[-1][1].key if site.target.parents else None
    if key is not None and ":" not in site.text[site.layout.end(key) : start]:
        return ": "
    return "" if site.text[start - 1 : start] in (" ", "\t") else " "


def _block_scalar(site: EditSite, value: Value) -> list[Splice]:
    """Replace a string in ``|`` or ``>`` style. The text after the indicator stays on its line."""
    start, end = site.layout.body(site.node), site.layout.end(site.node)
    head_end = site.layout.line_end(start)
    head = site.text[start:head_end]
    mark = head.split("#")[0].split()[0]
    behind_mark = head[len(mark) :]
    if isinstance(value, str):
        mark, lines = _lines_of_block_scalar(site, mark, value)
        if "+" in mark:  # blank lines that followed the old text would become a part of the new one
            end = site.layout.end_of_blank_lines(site.node)
        return [Splice(start, end, site.joined([mark + behind_mark, *lines]))]
    if writing.is_block(value):
        lines = list(writing.block(value, _indent(site, value), site.block_style))
        at = site.layout.indicator_end(site.target)
        return [Splice(at, end, site.joined([behind_mark.rstrip(), *lines]))]
    return [Splice(start, end, writing.flow(value, site.style) + behind_mark)]


def _lines_of_block_scalar(site: EditSite, mark: str, value: str) -> tuple[str, list[str]]:
    """Return the indicators and the lines; a first line with blanks needs an indentation there."""
    indent = site.layout.block_indent(site.node)
    digit = "".join(character for character in mark if character.isdigit())
    if value.lstrip("\n").startswith((" ", "\t")) and not digit:
        digit = str(indent - site.layout.column_of(site.target.parents[-1][0]))
    text = writing.folded(value) if mark[0] == ">" else value
    lines = writing.block_lines(text, indent)
    ends_open = site.layout.end(site.node) == len(site.text)
    if lines is None or len(digit) > 1 or not value.strip() or (ends_open and value[-1:] == "\n"):
        raise _unfit(site, "the new text does not fit the block scalar's style")
    chomping = "+" if value.endswith("\n\n") else "" if value.endswith("\n") else "-"
    return f"{mark[0]}{digit}{chomping}", lines


def _unfit(site: EditSite, message: str) -> EditRefusedError:
    return site.stream.refuse(EditRefusal.BLOCK_SCALAR, message, site.node)


def _block(site: EditSite, value: Value) -> list[Splice]:
    """Replace a map or list of several lines by a value of another kind."""
    layout = site.layout
    start, end = layout.body(site.node), layout.end(site.node)
    at = _behind_indicator(site)
    if layout.line_start(start) <= at and site.event.anchor is None:
        lines = writing.item_lines(value, layout.column(start), site.block_style)
        return [Splice(start, end, site.joined(lines))]
    kept = _own_line_comments(site, at, start)
    line_end = layout.line_end(at)
    if writing.is_block(value):
        lines = writing.block(value, _indent(site, value), site.block_style)
        return [Splice(line_end, end, site.below([*kept, *lines]))]
    text = " " + writing.flow(value, site.style)
    return [Splice(at, at, text), Splice(line_end, end, site.below(kept))]


def _behind_indicator(site: EditSite) -> int:
    """Return the end of the colon or dash, or of the anchor after it."""
    if site.event.anchor is not None:
        return site.layout.after_anchor(site.node)
    return site.layout.indicator_end(site.target)


def _own_line_comments(site: EditSite, at: int, start: int) -> list[str]:
    between = site.text[site.layout.line_end(at) : site.layout.line_start(start)]
    lines = [line.rstrip("\r") for line in between.split("\n")]
    return [line for line in lines if line.strip()]


def _opened(site: EditSite, value: Value) -> list[Splice]:
    """Replace a value on its line by lines of its own."""
    start, end = site.layout.body(site.node), site.layout.end(site.node)
    if site.target.parents[-1][1].key is None:
        gap = _gap(site, start)
        column = site.layout.column(start) + len(gap)
        first, *further_lines = writing.item_lines(value, column, site.block_style)
        return [Splice(start, end, gap + first), site.after_line(end, further_lines)]
    lines = writing.block(value, _indent(site, value), site.block_style)
    return [Splice(_behind_indicator(site), end, ""), site.after_line(end, list(lines))]


def _indent(site: EditSite, value: Value) -> int:
    """Return the column of a block that becomes the value of the location's key or item."""
    parent, child = site.target.parents[-1]
    column = site.layout.column_of(parent)
    if child.key is None:
        return column + 2
    style = site.block_style
    return column + (style.list_offset if isinstance(value, list) else style.step)
