"""
YAML texts at random, written in many manners, with the lines on which each value stands.

For tests of ``yamlfiles.edit``. A text is valid for PyYAML, ruamel and Go's readers unless it says
so (``hazards``). Every comment is unique, so that a lost one is seen.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import Any

Path = tuple[str | int, ...]

WORDS = ("stage", "team", "web", "eu-west-1", "8080", "a.b/c", "x y", "größe", "☺", "budget", "-x")
PLAIN = (
    "stage2", "a b c", "1", "42", "-7", "3.5", "1.0e+3", "true", "false", "null", "~", "yes", "no",
    "on", "0644", "0o17", "0x1F", "1_000", "1:20", "2026-11-21", "x:y", "http://h.example:80/p?q=1",
    "a#b", "é", "🚀 go", "v1.2.3", "1e3", "y", "N", "/a/b", "<none>", "100m", "5Gi", "a, b",
)  # fmt: skip
QUOTED = (
    "''", '""', "'it''s'", '"tab\\tand \\u263a"', "'1'", '"true"', "'  padded '", '"a: b # c"',
    "'[x]'", '"\\"q\\""', "'# no comment'", '"say \\\\ hi"',
)  # fmt: skip
FOLDED = (
    ("two words", "  over lines"), ("'single", "  quoted'"), ('"double', '  quoted"'),
    ("three", "", "  with a gap"),
)  # fmt: skip
VALUES: tuple[Any, ...] = (
    "stage3", "yes", "no", "0644", "null", "~", "", "1_000", "1:20", "2026-11-21", "1e3", "0o17",
    "y", "=", "<<", "- a", "a: b", "a #b", "#c", "'q'", '"d"', "é🚀", "two\nlines", "block\ntext\n",
    "\n", " padded ", "tab\there", "\x07", "\u2028", "\u00a0", "[x]", "{y", "*a", "&a", "!t", "%d",
    "@e", "`f`", ", g", "?", "-", "---", "...", "x" * 120, "0x1F", ".5", "+1", "1.", "\\n", "a:",
    "a,b", 0, 1, -7, 2**53 + 1, 2**63 - 1, 3.5, 1e22, 1e-7, -0.5, True, False, None,
    [], {}, ["a", 1, None], {"k": "v"}, {"k": {"n": ["x", {"y": "no"}]}, "8080": "z"}, [["a"], []],
    "trailing\n\n", " lead\nline\n", "crlf\r\nx",
)  # fmt: skip


@dataclass(frozen=True)
class Node:
    """A value in the text: its path and the lines (from, to) of its entry."""

    path: Path
    kind: str
    first: int
    last: int
    flow: bool = False


@dataclass
class Text:
    """A generated text."""

    text: str
    nodes: list[Node]
    hazards: set[str]
    comments: list[tuple[str, int]]
    """Each comment and the line it stands on."""
    document: int | None = None


@dataclass
class _Writer:
    random: random.Random
    hazardous: bool
    lines: list[str] = field(default_factory=list)
    nodes: list[Node] = field(default_factory=list)
    comments: list[tuple[str, int]] = field(default_factory=list)
    hazards: set[str] = field(default_factory=set)
    anchors: int = 0
    left: int = 24
    after_block: bool = False
    """Blank lines and what is indented would be text of the block scalar above."""

    def chance(self, share: float) -> bool:
        return self.random.random() < share

    def comment(self) -> str:
        name = f"# c{len(self.comments)}" + self.random.choice(("", " x: 1", " - y", " 'z", " 🚀"))
        self.comments.append((name, len(self.lines)))
        return name

    def noise(self, indent: int) -> None:
        """Write blank lines and comments between entries."""
        while self.chance(0.12):
            if self.chance(0.4):
                if self.after_block:
                    continue
                self.lines.append(self.random.choice(("", "", "  ")))
            else:
                deeper = indent if self.after_block else indent + 2
                pad = " " * self.random.choice((0, indent, indent, deeper))
                self.lines.append(pad + self.comment())

    def trail(self) -> str:
        if self.chance(0.15):
            return self.random.choice((" ", "   ")) + self.comment()
        return self.random.choice(("", "", "", "", "", " "))

    def keys(self, most: int) -> list[str]:
        names = self.random.sample([*WORDS, *(f"k{at}" for at in range(12))], k=12)
        return names[: self.random.randint(1, most)]

    def written_key(self, name: str) -> str:
        kinds = [f'"{name}"', f"'{name}'"]
        if name != "-x":
            kinds += [name] * 6
        return self.random.choice(kinds)


def generate(source: random.Random, *, hazardous: bool = False) -> Text:
    """Return a text; `hazardous` ones may have what an editor has to refuse."""
    writer = _Writer(source, hazardous)
    documents = source.choice((1, 1, 1, 1, 2, 3)) if source.random() < 0.3 else 1
    chosen = source.randrange(documents)
    if source.random() < 0.05:
        writer.lines += ["%YAML 1.1", "---"]
    elif documents > 1 or source.random() < 0.25:
        writer.noise(0)
        writer.lines.append("---" + writer.trail())
    for number in range(documents):
        if number:
            writer.lines.append("---")
        before = len(writer.nodes)
        writer.left = 24
        _root(writer)
        if number != chosen:
            del writer.nodes[before:]
        if number == chosen and number + 1 < documents and writer.chance(0.3):
            writer.lines.append("...")
    writer.noise(0)
    text = "\n".join(writer.lines)
    if source.random() < 0.85:
        text += "\n"
    if source.random() < 0.1:
        text = text.replace("\n", "\r\n")
    if source.random() < 0.05:
        text = "\ufeff" + text
    shown = chosen if documents > 1 else None
    return Text(text, writer.nodes, writer.hazards, writer.comments, shown)


def _root(writer: _Writer) -> None:
    if writer.chance(0.1):
        _json(writer)
    elif writer.chance(0.1):
        first = len(writer.lines)
        _block_list(writer, 0, ())
        writer.nodes.append(Node((), "list", first, len(writer.lines) - 1))
    else:
        first = len(writer.lines)
        _block_map(writer, 0, ())
        writer.nodes.append(Node((), "map", first, len(writer.lines) - 1))


def _json(writer: _Writer) -> None:
    """Write a JSON text over several lines."""
    first = len(writer.lines)
    writer.lines.append("{")
    names = writer.keys(4)
    for at, name in enumerate(names):
        line = len(writer.lines)
        comma = "," if at + 1 < len(names) else ""
        value = _flow(writer, (name,), line, json=True)
        writer.lines.append(f'  "{name}": {value}{comma}')
    writer.lines.append("}")
    writer.nodes.append(Node((), "map", first, len(writer.lines) - 1, flow=True))


def _block_map(writer: _Writer, indent: int, path: Path, first: str | None = None) -> None:
    """Write a map; `first` is what stands before its first key on the same line."""
    step = writer.random.choice((2, 2, 2, 4))
    for at, name in enumerate(writer.keys(5 if not path else 4)):
        lead = " " * indent if at or first is None else first
        if at or first is None:
            writer.noise(indent)
        colon = ":" if writer.chance(0.95) else " :"
        _entry(writer, lead + writer.written_key(name) + colon, indent, (*path, name), step)
    if writer.hazardous and writer.chance(0.05):
        _hazard(writer, indent, path)


def _hazard(writer: _Writer, indent: int, path: Path) -> None:
    """Write an anchor in use, an alias, a merge, a tag, an explicit key."""
    pad, line = " " * indent, len(writer.lines)
    writer.anchors += 1
    name = f"A{writer.anchors}"
    kind = writer.random.choice(("scalar", "merge", "tag", "explicit", "map"))
    writer.hazards.add(kind)
    if kind == "scalar":
        writer.lines += [f"{pad}h1: &{name} v", f"{pad}h2: *{name}", f"{pad}h3: &U{name} w"]
    elif kind == "merge":
        writer.lines += [f"{pad}h1: &{name} {{m: 1}}", f"{pad}h2:", f"{pad}  <<: *{name}",
                         f"{pad}  own: 2"]  # fmt: skip
        writer.nodes.append(Node((*path, "h2", "own"), "scalar", line + 3, line + 3))
        writer.nodes.append(Node((*path, "h2"), "map", line + 1, line + 3))
    elif kind == "tag":
        writer.lines += [f"{pad}h1: !!str 12", f"{pad}h2: !!map {{x: 1}}"]
    elif kind == "explicit":
        writer.lines += [f"{pad}? h1", f"{pad}: v"]
    else:
        writer.lines += [f"{pad}h1: &{name}", f"{pad}  m: 1", f"{pad}h2: [*{name}]"]
        writer.nodes.append(Node((*path, "h1", "m"), "scalar", line + 1, line + 1))
    writer.nodes.append(Node((*path, "h1"), "scalar", line, line + 1))
    if kind not in ("explicit", "merge"):
        writer.nodes.append(Node((*path, "h2"), "scalar", line + 1, line + 2))


def _block_list(writer: _Writer, indent: int, path: Path, first: str | None = None) -> None:
    gap = writer.random.choice((" ", " ", " ", "   "))
    for at in range(writer.random.randint(1, 4)):
        if at or first is None:
            writer.noise(indent)
        lead = " " * indent if at or first is None else first
        _entry(writer, lead + "-", indent, (*path, at), 2, gap=gap)


def _entry(
    writer: _Writer, head: str, indent: int, path: Path, step: int, *, gap: str = ""
) -> None:
    """Write a key or a dash and its value."""
    line = len(writer.lines)
    writer.left -= 1
    deep = len(path) > 4 or writer.left < 0
    writer.after_block = False
    kind = writer.random.choices(
        ("plain", "quoted", "null", "flow", "lines", "block", "map", "list", "folded"),
        (10, 4, 1, 3, 1, 2, 0 if deep else 6, 0 if deep else 4, 1),
    )[0]
    shown, flow = "scalar", False
    space = gap or writer.random.choice((" ", " ", " ", " ", "   "))
    if kind == "plain":
        writer.lines.append(f"{head}{space}{writer.random.choice(PLAIN)}{writer.trail()}")
    elif kind == "quoted":
        writer.lines.append(f"{head}{space}{writer.random.choice(QUOTED)}{writer.trail()}")
    elif kind == "null":
        writer.lines.append(head + writer.trail())
    elif kind == "flow":
        flow, is_map = True, writer.chance(0.5)
        shown = "map" if is_map else "list"
        text = _flow_map(writer, path, line) if is_map else _flow_list(writer, path, line)
        writer.lines.append(f"{head}{space}{text}{writer.trail()}")
    elif kind == "lines":
        shown, flow = _flow_lines(writer, head + space, indent, path), True
    elif kind == "block":
        _block_scalar(writer, head + space, indent)
        writer.after_block = True
    elif kind == "folded":
        first, *rest = writer.random.choice(FOLDED)
        writer.lines.append(head + space + first)
        writer.lines += [" " * indent + part if part else "" for part in rest]
    elif kind == "map":
        shown = "map"
        _nested_map(writer, head, indent, path, step, gap)
    else:
        shown = "list"
        _nested_list(writer, head, indent, path, gap)
    writer.nodes.append(Node(path, shown, line, len(writer.lines) - 1, flow))


def _nested_map(  # noqa: PLR0917 - what every writer of a node gets
    writer: _Writer, head: str, indent: int, path: Path, step: int, gap: str
) -> None:
    if gap and writer.chance(0.8):
        _block_map(writer, len(head + gap), path, head + gap)
        return
    writer.lines.append(head + writer.trail())
    _block_map(writer, indent + step, path)


def _nested_list(writer: _Writer, head: str, indent: int, path: Path, gap: str) -> None:
    if gap and writer.chance(0.7):
        _block_list(writer, len(head + gap), path, head + gap)
        return
    writer.lines.append(head + writer.trail())
    offset = 2 if gap else writer.random.choice((0, 2, 2, 4))
    _block_list(writer, indent + offset, path)


def _block_scalar(writer: _Writer, head: str, indent: int) -> None:
    """Write a literal or folded block, sometimes with a comment behind its mark."""
    mark = writer.random.choice(("|", "|-", "|+", ">", ">-", "|2-" if indent == 0 else "|"))
    writer.lines.append(head + mark + writer.trail())
    pad = " " * (indent + 2)
    for at in range(writer.random.randint(1, 3)):
        if at and writer.chance(0.2):
            writer.lines.append("")
        text = writer.random.choice(("some text", "# no comment", "k: v", "- x", "end:", "'q"))
        writer.lines.append(pad + text)
    if writer.chance(0.2):
        writer.lines += [""] * writer.random.randint(1, 2)


def _flow(writer: _Writer, path: Path, line: int, *, json: bool = False) -> str:
    kind = writer.random.choices(("scalar", "map", "list"), (5, 1, 1))[0]
    if kind == "map" and len(path) < 4:
        text = _flow_map(writer, path, line, json=json)
    elif kind == "list" and len(path) < 4:
        text = _flow_list(writer, path, line, json=json)
    else:
        kind = "scalar"
        text = _flow_scalar(writer, json=json)
    if kind == "scalar" or len(path) >= 4:
        writer.nodes.append(Node(path, "scalar", line, line, flow=True))
    else:
        writer.nodes.append(Node(path, kind, line, line, flow=True))
    return text


def _flow_scalar(writer: _Writer, *, json: bool) -> str:
    if json:
        return writer.random.choice(('"x"', "1", "true", "null", '"a, b"', "2.5"))
    return writer.random.choice(("x", "1", "'q, r'", '"d"', "true", "~", "yes", "a b", "0644"))


def _flow_map(writer: _Writer, path: Path, line: int, *, json: bool = False) -> str:
    entries = []
    for name in writer.keys(3) if writer.chance(0.9) else []:
        if json:
            entries.append(f'"{name}": {_flow(writer, (*path, name), line, json=True)}')
        elif writer.chance(0.1):
            writer.nodes.append(Node((*path, name), "scalar", line, line, flow=True))
            entries.append(f'"{name}": ')
        else:
            entries.append(f"{writer.written_key(name)}: {_flow(writer, (*path, name), line)}")
    return _bracket(writer, "{", entries, "}", json=json)


def _flow_list(writer: _Writer, path: Path, line: int, *, json: bool = False) -> str:
    count = writer.random.randint(0, 3)
    items = [_flow(writer, (*path, at), line, json=json) for at in range(count)]
    return _bracket(writer, "[", items, "]", json=json)


def _bracket(writer: _Writer, left: str, parts: list[str], right: str, *, json: bool) -> str:
    pad = writer.random.choice(("", "", " "))
    comma = writer.random.choice((", ", ", ", "," if json else ", "))
    tail = "," if parts and not json and writer.chance(0.1) else ""
    return left + pad + comma.join(parts) + tail + pad + right


def _flow_lines(writer: _Writer, head: str, indent: int, path: Path) -> str:
    """Write a flow list over several lines, sometimes with comments inside."""
    writer.lines.append(head + "[")
    pad = " " * (indent + 2)
    for at in range(writer.random.randint(1, 3)):
        line = len(writer.lines)
        writer.nodes.append(Node((*path, at), "scalar", line, line, flow=True))
        text = _flow_scalar(writer, json=False) + ","
        writer.lines.append(pad + text + (f" {writer.comment()}" if writer.chance(0.2) else ""))
    writer.lines.append(pad + "]")
    return "list"
