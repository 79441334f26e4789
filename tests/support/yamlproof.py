"""
Make random edits of random YAML texts and let other people's readers judge the result.

An edit is right if every reader that could read the text before sees afterwards exactly the data
it saw, with the intended value in the intended place; and if no line changed that need not.
"""

from __future__ import annotations

import difflib
import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from yamldocs import VALUES, Node, Path, Text, generate
from yamlreaders import Reader, Unreadable, typed

from yamlfiles.edit import Edit, EditRefusal, EditRefusedError, Op, edit, read_value

NEW_KEYS = ("new", "new.key", "yes", "8080", "a: b", "x y", "é", "-", "a#b", "", "null", "=", "~x")
HAZARD_CODES = {EditRefusal.ALIAS, EditRefusal.ANCHOR_IN_USE, EditRefusal.MERGE_KEY,
                EditRefusal.TAG}  # fmt: skip
PLAIN_CODES = {EditRefusal.MISSING, EditRefusal.NOT_UNIQUE, EditRefusal.WRONG_KIND,
               EditRefusal.BLOCK_SCALAR, EditRefusal.COMMENT}  # fmt: skip


class WrongEditError(AssertionError):
    """An edit gave something else than it should; the message has the texts."""


@dataclass
class Summary:
    """What became of many edits."""

    edited: Counter[str] = field(default_factory=Counter)
    refused: Counter[str] = field(default_factory=Counter)
    judged: Counter[str] = field(default_factory=Counter)

    def lines(self) -> list[str]:
        """Return the account, a line for each part of it."""
        edited, refused = sum(self.edited.values()), sum(self.refused.values())
        return [
            f"texts: {edited + refused}, wrong: 0",
            f"edited: {edited} ({_counts(self.edited)})",
            f"refused: {refused} ({_counts(self.refused)})",
            f"judged: {_counts(self.judged)}",
        ]


def _counts(found: Counter[str]) -> str:
    return ", ".join(f"{name} {count}" for name, count in sorted(found.items()))


def prove_one(source: random.Random, readers: Sequence[Reader], summary: Summary) -> None:
    """
    Generate a text and edits, make them, judge them.

    Raises:
        WrongEditError: Something is wrong.
    """
    text = generate(source, hazardous=source.random() < 0.3)
    count = source.choices((1, 2, 3), (8, 1, 1))[0]
    wishes = [_wish(source, text) for _ in range(count)]
    before = text.text.encode()
    try:
        after = edit(before, wishes)
    except EditRefusedError as error:
        summary.refused[error.code] += 1
        allowed = PLAIN_CODES | (HAZARD_CODES if text.hazards else set())
        if error.code not in allowed:
            raise _wrong(f"refused with {error.code}: {error}", text, wishes, None) from error
        return
    summary.edited[wishes[0].op if count == 1 else "several"] += 1
    _judge(text, wishes, after, readers, summary)
    if count == 1:
        _judge_lines(text, wishes[0], after)
    if all(wish.op is Op.SET for wish in wishes) and len({wish.path for wish in wishes}) == 1:
        again = edit(after, wishes[-1:])
        if again != after:
            raise _wrong("the same edit again changes something", text, wishes, after)


def _wish(source: random.Random, text: Text) -> Edit:
    node = source.choice(text.nodes[:-1] if source.random() < 0.99 else text.nodes[-1:])
    value = source.choice(VALUES)
    path = node.path
    maps = [found for found in text.nodes if found.kind == "map"]
    lists = [found for found in text.nodes if found.kind == "list"]
    on_lists = 2 if lists else 0.1
    op = source.choices((Op.SET, Op.ADD, Op.REMOVE, Op.UNSET), (6, on_lists, on_lists, 2))[0]
    if op is Op.SET and maps and source.random() < 0.35:
        path = (*source.choice(maps).path, source.choice(NEW_KEYS))
        if source.random() < 0.2:
            path = (*path, "deeper")
    elif op in (Op.ADD, Op.REMOVE) and lists and source.random() < 0.95:
        path = source.choice(lists).path
    if op is Op.REMOVE:
        value = _item(source, text, path)
    return Edit(path, op, value, text.document)


def _item(source: random.Random, text: Text, path: Path) -> Any:
    """Return an item of the list that is there, mostly."""
    try:
        found = read_value(text.text.encode(), path, document=text.document)
    except EditRefusedError:
        return "x"
    if isinstance(found, list) and found and source.random() < 0.95:
        return source.choice(found)
    return "not there"


def _judge(
    text: Text, wishes: list[Edit], after: bytes, readers: Sequence[Reader], summary: Summary
) -> None:
    concrete = _concrete(wishes, text.text.encode())
    for reader in readers:
        try:
            old = reader.read(text.text)
        except Unreadable:
            summary.judged[f"{reader.name}: unreadable before"] += 1
            continue
        try:
            new = reader.read(after.decode())
        except Unreadable as error:
            raise _wrong(f"{reader.name} cannot read it: {error}", text, wishes, after) from error
        for wish in concrete:
            old[wish.document or 0] = apply(old[wish.document or 0], wish, wish.path)
        if old != new:
            raise _wrong(f"{reader.name} sees {new}\nand should see {old}", text, wishes, after)
        summary.judged[reader.name] += 1


def _concrete(wishes: list[Edit], before: bytes) -> list[Edit]:
    """Replace the removal of an item by that of its index, as YAML 1.2 sees the list."""
    if all(wish.op is not Op.REMOVE for wish in wishes):
        return wishes
    found = []
    for wish in wishes:
        concrete = wish
        if wish.op is Op.REMOVE:
            items = read_value(before, wish.path, document=wish.document)
            assert isinstance(items, list)
            index = [typed(item) == typed(wish.value) for item in items].index(True)
            concrete = Edit((*wish.path, index), Op.UNSET, None, wish.document)
        before = edit(before, [wish])
        found.append(concrete)
    return found


def apply(data: Any, wish: Edit, path: tuple[str | int, ...]) -> Any:
    """Return typed data with the edit made, as one would in Python."""
    if not path:
        if wish.op is Op.ADD:
            return [*data, typed(wish.value)] if isinstance(data, list) else [typed(wish.value)]
        return typed(wish.value)
    step, *rest = path
    if data == "n:":
        data = {}
    if not rest and wish.op is Op.UNSET:
        del data[step]
        return data
    there = isinstance(data, list) or step in data
    data[step] = apply(data[step] if there else "n:", wish, tuple(rest))
    return data


def _judge_lines(text: Text, wish: Edit, after: bytes) -> None:
    old, new = text.text.split("\n"), after.decode().split("\n")
    node, there = _around(text, wish)
    lead, tail = old[: node.first], old[node.last + 1 :]
    if new[: len(lead)] != lead or (tail and new[-len(tail) :] != tail):
        raise _wrong("lines outside the place changed", text, [wish], after)
    old, new = old[node.first : node.last + 1], new[len(lead) : len(new) - len(tail)]
    gone, added = _difference(old, new)
    if wish.op is Op.SET and there:
        _judge_comments(text, node, wish, after)
        single = node.kind == "scalar" and node.first == node.last
        if single and not isinstance(wish.value, dict | list) and added > 1:
            raise _wrong("one line became several", text, [wish], after)
    elif wish.op in (Op.SET, Op.ADD) and gone > 1:
        raise _wrong("an insertion changed several lines", text, [wish], after)
    elif wish.op in (Op.REMOVE, Op.UNSET) and added > 2:
        raise _wrong("a removal wrote several lines", text, [wish], after)


def _around(text: Text, wish: Edit) -> tuple[Node, bool]:
    """Return the node whose lines may change, and whether it is the one that is meant."""
    found = {node.path: node for node in text.nodes}
    path = wish.path
    if wish.op is Op.UNSET:
        parent = found.get(path[:-1])
        siblings = [node for node in text.nodes if node.path[:-1] == path[:-1] and node.path]
        if parent is not None and (
            parent.flow or len(siblings) == 1 or parent.first == found[path].first
        ):
            return parent, False  # a comma or the next entry moves, or nothing is left
    while path not in found:
        path = path[:-1]
    return found[path], path == wish.path


def _difference(old: list[str], new: list[str]) -> tuple[int, int]:
    matcher = difflib.SequenceMatcher(None, old, new, autojunk=False)
    kept = sum(block.size for block in matcher.get_matching_blocks())
    return len(old) - kept, len(new) - kept


def _judge_comments(text: Text, node: Node, wish: Edit, after: bytes) -> None:
    """Make sure that a comment on the line of a changed value is still there."""
    inside = [found for found in text.nodes if found.path[:-1] == node.path and found.path]
    if not node.flow and any(found.first == node.first for found in inside):
        return  # the comment belongs to the value
    for comment, line in text.comments:
        if line == node.first and comment not in after.decode():
            raise _wrong(f"the comment {comment!r} is lost", text, [wish], after)


def _wrong(what: str, text: Text, wishes: list[Edit], after: bytes | None) -> WrongEditError:
    shown = "" if after is None else f"\n--- after\n{after.decode()}\n--- {after!r}"
    return WrongEditError(f"{what}\n{wishes}\n--- before\n{text.text}\n--- {text.text!r}{shown}")
