"""
Bring a generated file to what its skeleton renders now, and keep what people did to it.

Three texts: what the skeleton rendered then, what it renders now, and the file. Text is merged by
lines, as git does; YAML besides by structure, with the proof of ``yamlfiles.edit``. What both sides
changed in different ways is a conflict. Then `data` takes the skeleton's side of each conflict, for
a pull request that people look at. Pure.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any, NamedTuple

from ground.errors import OrderkitError
from ground.objects.values import ABSENT, Steps, path_text, same, shown, value_at
from ground.unified_diff import unified_diff
from yamlfiles import edit as yamledit
from yamlfiles.manifests import parse_documents

_YAML = (".yaml", ".yml")
_SHOWN = 12


@dataclass(frozen=True, slots=True)
class MergedFile:
    """What a file becomes; `data` None: it goes."""

    data: bytes | None
    conflicts: tuple[str, ...] = ()


def merged(
    path: PurePosixPath, then: bytes | None, now: bytes | None, there: bytes | None
) -> MergedFile | None:
    """
    Return what a file becomes; None: it stays as it is.

    Args:
        then: What the skeleton rendered when the order followed it last; None: no such file.
        now: What it renders now.
        there: What the order's repository has.
    """
    if now in (then, there):
        return None
    if there == then:
        return MergedFile(now)
    if there is None or now is None:
        return None  # people removed the file, or changed one that the skeleton gives up
    if then is None:
        lines = unified_diff(there, now, "the file", "the skeleton").splitlines()[:_SHOWN]
        words = "\n".join(["both the skeleton and people made it:", *lines])
        return MergedFile(now, (words,))
    text = merge_text(then, now, there)
    outcome = _merged_yaml(path, then, now, there, text) if path.suffix in _YAML else text
    return outcome if outcome.conflicts or outcome.data != there else None


# --- text


def merge_text(then: bytes, now: bytes, there: bytes) -> MergedFile:
    """Merge by lines; lines next to each other that both sides changed are a conflict."""
    base, new, own = _lines(then), _lines(now), _lines(there)
    out: list[bytes] = []
    conflicts: list[str] = []
    at = (0, 0, 0)
    for begin, end in _in_common(base, new, own):
        before = (base[at[0] : begin[0]], new[at[1] : begin[1]], own[at[2] : begin[2]])
        out += _merged_piece(*before, conflicts)
        out += own[begin[2] : end[2]]
        at = end
    return MergedFile(b"".join(out), tuple(conflicts))


def _merged_piece(
    base: list[bytes], new: list[bytes], own: list[bytes], conflicts: list[str]
) -> list[bytes]:
    if own in (new, base):
        return new
    if new == base:
        return own
    texts = (b"".join(lines).decode(errors="replace") for lines in (base, new, own))
    words = ("the skeleton had", "it has now", "the file has")
    pieces = (f"{name}:\n{text}" for name, text in zip(words, texts, strict=True))
    conflicts.append("\n".join(pieces))
    return new


Place = tuple[int, int, int]


class Block(NamedTuple):
    """A run of lines that two texts have in common."""

    a: int
    b: int
    size: int


def _in_common(
    base: list[bytes], new: list[bytes], own: list[bytes]
) -> Iterator[tuple[Place, Place]]:
    """Yield the runs of lines that all three have, with where they begin and end in each."""
    with_new, with_own = _blocks(base, new), _blocks(base, own)
    first = second = 0
    while first < len(with_new) and second < len(with_own):
        a, b = with_new[first], with_own[second]
        begin, end = max(a.a, b.a), min(a.a + a.size, b.a + b.size)
        if begin < end:
            places = tuple((at, at - a.a + a.b, at - b.a + b.b) for at in (begin, end))
            yield places[0], places[1]
        if a.a + a.size < b.a + b.size:
            first += 1
        else:
            second += 1
    end_place = (len(base), len(new), len(own))
    yield end_place, end_place


def _blocks(base: list[bytes], other: list[bytes]) -> Sequence[Block]:
    """Return the runs of lines that two texts have in common, in order."""
    matcher = difflib.SequenceMatcher(None, base, other, autojunk=False)
    pairs = [
        (block.a + at, block.b + at)
        for block in matcher.get_matching_blocks()
        for at in range(block.size)
    ]
    blocks: list[Block] = []
    for a, b in _slid_down(base, other, pairs):
        last = blocks[-1] if blocks else None
        if last and (a, b) == (last.a + last.size, last.b + last.size):
            blocks[-1] = Block(last.a, last.b, last.size + 1)
        else:
            blocks.append(Block(a, b, 1))
    return blocks


def _slid_down(
    base: list[bytes], other: list[bytes], pairs: list[tuple[int, int]]
) -> list[tuple[int, int]]:
    """
    Let each insertion and removal be as far down as it may be, as git does (xdl_change_compact).

    A paragraph with its empty line can be said to begin or to end with it. If two texts say it in
    different ways, changes touch that are apart.
    """
    slid: list[tuple[int, int]] = []
    before = (-1, -1)
    for a, b in pairs:
        first_a, first_b = before[0] + 1, before[1] + 1
        if a == first_a and b > first_b and other[first_b] == other[b]:
            b = first_b  # noqa: PLW2901 - the insertion moves below this line
        elif b == first_b and a > first_a and base[first_a] == base[a]:
            a = first_a  # noqa: PLW2901 - so does the removal
        slid.append((a, b))
        before = (a, b)
    return slid


def _lines(data: bytes) -> list[bytes]:
    return data.splitlines(keepends=True)


# --- YAML


def _merged_yaml(
    path: PurePosixPath, then: bytes, now: bytes, there: bytes, text: MergedFile
) -> MergedFile:
    """Merge by structure where lines conflict; check lines that merge against the structure."""
    try:
        base, new, own = (_document(path, data) for data in (then, now, there))
    except (OrderkitError, ValueError):
        return text
    edits: list[yamledit.Edit] = []
    conflicts: list[str] = []
    for steps in _differing(base, new, ()):
        was, wanted, has = (value_at(document, steps) for document in (base, new, own))
        if same_or_absent(has, wanted):
            continue
        if not same_or_absent(has, was):
            place = path_text(steps) or "the document"
            words = f"the skeleton had {shown(was)}, has {shown(wanted)} now"
            conflicts.append(f"{place}: {words}; the file has {shown(has)}")
        elif wanted is ABSENT:
            edits.append(yamledit.Edit(steps, yamledit.Op.UNSET))
        else:
            edits.append(yamledit.Edit(steps, yamledit.Op.SET, wanted))
    if not text.conflicts and _reads(path, text.data):
        return text
    if conflicts:
        return MergedFile(text.data if _reads(path, text.data) else now, tuple(conflicts))
    try:
        return MergedFile(yamledit.edit(there, edits, name=str(path)))
    except OrderkitError as error:
        data = text.data if _reads(path, text.data) else now
        return MergedFile(data, text.conflicts or (str(error),))


def same_or_absent(value: Any, other: Any) -> bool:
    """Say whether two values are the same, or neither is there."""
    if value is ABSENT or other is ABSENT:
        return value is other
    return same(value, other)


def _document(path: PurePosixPath, data: bytes) -> Any:
    """
    Return the only document of a file.

    Raises:
        ValueError: It has several.
    """
    documents = parse_documents(str(path), data)
    if len(documents) != 1:
        raise ValueError(f"{path} has {len(documents)} documents")
    return documents[0][0]


def _reads(path: PurePosixPath, data: bytes | None) -> bool:
    try:
        _document(path, data or b"")
    except (OrderkitError, ValueError):
        return False
    return True


def _differing(base: Any, new: Any, steps: Steps) -> Iterator[Steps]:
    """Yield the places where two documents differ; a list is one place."""
    if isinstance(base, Mapping) and isinstance(new, Mapping):
        for key in dict.fromkeys((*base, *new)):
            yield from _differing(base.get(key, ABSENT), new.get(key, ABSENT), (*steps, key))
    elif not same_or_absent(base, new):
        yield steps
