"""
Write docs/editing.md from the reasons and the awkward texts that tests hold; ``--check`` compares.

The page's table says what other tools make of the same texts: they are run for it, here and now.
"""

from __future__ import annotations

import difflib
import sys
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from yamlfiles import assignments
from yamlfiles import edit as yamledit
from yamlfiles.edit import LIMITS, EditRefusal, EditRefusedError
from yamlfiles.edit.edit_operations import HINTS

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "tests/support"), str(ROOT / "libs/yamlfiles/tests/support")]

if TYPE_CHECKING:
    from yamlcases import Case

PAGE = ROOT / "docs" / "editing.md"
INTRODUCTION = """\
# Editing YAML

`scripts/editing_docs.py` generates this page from the code and the cases that enforce it.

`orderkit edit` changes values in a YAML file and leaves every other byte alone: comments, order, quotes, indentation, line
endings, byte order mark, other documents. If it cannot prove that an edit is exact, it refuses, with a reason code and a hint.
`orderkit change` edits orders with the same code.

```shell
orderkit edit manifests/xgarage.yaml spec.stage=stage3 --diff
orderkit edit values.yaml image.tag='"1.10"' hosts+=b.example.org debug- --in-place
kubectl get xgarage ae86 -o yaml | orderkit edit - spec.stage=stage3
```

## What to write

| You write | It means |
|---|---|
| `spec.stage=stage3` | set the value. A missing key is added at the end of its map, and missing maps above it too |
| `spec.hosts+=a.example.org` | append to the list. A missing list is created |
| `spec.hosts-=a.example.org` | remove the item that equals the value from the list |
| `spec.lease-`, or `--unset spec.lease` | remove the key, or the item: `spec.hosts[0]-` |
| `spec.parts[0].name=x`, `[-1]` | an item by its index, counted from 0, or from the end |
| `metadata.annotations["a.b/c"]=x`, `a\\.b/c` | a key with dots in it |

A value has the type that YAML 1.2 gives it: `3` is a number, `true` a boolean, `null` null, `yes` and `stage3` are texts, `[a, b]` and
`{a: 1}` a list and a map. Nothing after `=` is the empty text. `version='"1.10"'` or `--string version=1.10` make it a text. A map or
list that replaces another changes the entries that differ. The others keep their comments.

| Option | Meaning |
|---|---|
| `--in-place` | write the file at once (a new file takes its name), keep its mode, follow a symbolic link, and write nothing if the file changed meanwhile (exit code 3) |
| `--diff` | print the difference instead of the text |
| `--document N` | which of several documents is meant |
| `--json` | print `orderkit.edit/v1`: `changed`, `written`, `edits`, `diff`, `text` (unless in place), or `refused` with `code`, `message`, `line`, `hint` |

All edits are made, or none. A refusal has exit code 4.

## How it is exact

The parser (libyaml) says where the value is. Orderkit replaces the text between its marks and parses the result again. All parser
events must be equal, with their styles, tags and anchors, except those of the intended value. Each alias must repeat the same node as
before. And YAML 1.1, YAML 1.2 and Kubernetes,
whose dialect is neither, must all read that value with the intended type. That is why `yes`, `0644`, `1:20`, `2026-11-21`, `1e3` and
`y` get quotes. A value that all three already read is left as it is written.

Comments on the lines of a value that is removed or replaced go with it. Other comments stay where they are.
"""  # noqa: E501 - a page's lines
LIMITED = """\
Limits: {limits.size_bytes:,} bytes, {limits.depth} levels, {limits.events:,} parser events, and as many again from aliases.
Parsing stops at the first limit, before anything is built from the text. That ends an alias bomb, a hundred thousand brackets or
300,000 keys.
"""  # noqa: E501 - a page's lines
ABOUT_TABLE = """\
*Exact*: the wanted bytes. *Right*: all readers see the wanted data, but the line is written in another manner (quotes, blanks,
comment), or other lines changed too. *Wrong*: a reader sees other data, or another type, without an error. *Nothing*: the text
came back unchanged, without an error. *Guessed*: nobody can know what was meant, and the tool chose. Readers are PyYAML
(1.1) and ruamel (1.2). ruamel 0.19 runs with its defaults, and tuned: `preserve_quotes`, no line width, lists indented by two.
yaml-edit is the Python package, 0.2.0. sed is `s/^( *KEY: *)[^ #]*/\\1VALUE/`, as jobs that edit manifests have it. *-*: it has no means.
"""  # noqa: E501 - a page's lines
PROOF = """\
## Proof

`make test-all` makes 1,000 random edits of random texts, `make soak PART=edit` 100,000. PyYAML, ruamel and Go's `yaml/v2` and
`yaml/v3` check each: every reader must see the same data as before, with the intended value in the intended place. Lines outside the place
and comments stay, and refusals are of a known kind. [Figures](figures.md) has the times,
[conformance](conformance.md#edits-against-other-peoples-yaml-readers) the set-up.

A soak of 100,000 texts (seed {seed}): {edited} edited, {refused} refused, 0 wrong for any of the four readers
(most refusals: a list operation on something that is not a list, a path that does not exist). It ran 15 minutes on two busy cores.
"""  # noqa: E501 - a page's lines
UNKNOWABLE = (
    EditRefusal.DOCUMENT,
    EditRefusal.NOT_UNIQUE,
    EditRefusal.MISSING,
    EditRefusal.WRONG_KIND,
)
SOAK = {"seed": "530608", "edited": "87,559", "refused": "12,441"}
"""What the last full run said."""


def page() -> str:
    """Return the whole page."""
    from yamlcases import CASES

    rows = [_row(case) for case in CASES]
    return "\n".join((
        INTRODUCTION,
        "## Refusals\n\n"
        + _table(("Code", "Hint"), [(f"`{c}`", HINTS[c]) for c in EditRefusal]),
        LIMITED.format(limits=LIMITS),
        f"## {len(rows)} awkward texts\n\n{ABOUT_TABLE}",
        _summary(rows),
        _table(("Case", "Text", "Edit", "Orderkit", *_tools()), rows),
        PROOF.format(**SOAK),
    ))  # fmt: skip


def _tools() -> list[str]:
    from bench.editors import EDITORS

    return list(EDITORS)


def _table(head: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    lines = [head, tuple("---" for _ in head), *rows]
    cells = (" | ".join(cell.replace("|", "\\|") for cell in line) for line in lines)
    return "\n".join(f"| {line} |" for line in cells) + "\n"


def _summary(rows: list[tuple[str, ...]]) -> str:
    words = ("exact", "right", "refused", "guessed", "nothing", "wrong", "-")
    table = []
    for column, tool in enumerate(("Orderkit", *_tools()), start=3):
        found = Counter(row[column].strip("*").replace(":", ",").split(",")[0] for row in rows)
        table.append((tool, *(str(found[word]) for word in words)))
    return _table(("Tool", *words), table)


def _row(case: Case) -> tuple[str, ...]:
    from bench.editors import EDITORS

    ours = _verdict(case, _orderkit)
    return (
        case.reason,
        _code(case.text),
        _code(case.edit),
        ours,
        *(_verdict(case, tool) for tool in EDITORS.values()),
    )


def _code(text: str) -> str:
    for sign, shown in (
        ("\r\n", "␍⏎"),
        ("\n", "⏎"),
        ("\t", "⇥"),
        ("\ufeff", "BOM "),
        ("\u2028", "␤"),
    ):
        text = text.replace(sign, shown)
    short = text if len(text) < 60 else text[:57] + "…"  # noqa: PLR2004 - what fits a column
    return f"`` {short} ``"


def _orderkit(text: str, edit: str) -> str:
    return yamledit.edit(text.encode(), [assignments.parse(edit).edit()]).decode()


def _verdict(case: Case, tool: Any) -> str:
    from bench.editors import CannotError

    try:
        after = tool(case.text, case.edit)
    except CannotError:
        return "-"
    except EditRefusedError as error:
        return f"refused: `{error.code}`"
    except Exception:  # noqa: BLE001 - how tools refuse is theirs
        return "refused"
    return _judged(case, after)


def _judged(case: Case, after: str) -> str:
    if after == case.after:
        return "exact"
    if after == case.text:
        return "**nothing**"
    if case.after in UNKNOWABLE:
        return "**guessed**"
    if not _is_right(case, after):
        return "**wrong**"
    more = _changed(case.text, after) - _wanted_changes(case)
    return f"right, {more} more line{'s' * (more > 1)}" if more > 0 else "right"


def _wanted_changes(case: Case) -> int:
    return 1 if isinstance(case.after, EditRefusal) else _changed(case.text, case.after)


def _changed(old: str, new: str) -> int:
    one, other = old.split("\n"), new.split("\n")
    matcher = difflib.SequenceMatcher(None, one, other, autojunk=False)
    kept = sum(block.size for block in matcher.get_matching_blocks())
    return max(len(one), len(other)) - kept


def _is_right(case: Case, after: str) -> bool:
    """Say whether each reader of the text before sees the intended data afterwards."""
    from yamlreaders import PyYaml, Reader, Ruamel, Unreadable

    readers: list[Reader] = [PyYaml(), Ruamel()]
    judged = False
    for reader in readers:
        try:
            old = reader.read(case.text)
        except Unreadable:
            continue
        try:
            if reader.read(after) != _intended(case, old):
                return False
        except (Unreadable, LookupError, TypeError, ValueError):
            return False
        judged = True
    return judged


def _intended(case: Case, old: list[Any]) -> list[Any]:
    from yamlproof import apply
    from yamlreaders import typed

    from yamlfiles.edit import Edit, Op

    wish = assignments.parse(case.edit).edit()
    if wish.op is Op.REMOVE:
        items = old[0]
        for step in wish.path:
            items = items[step]
        wish = Edit((*wish.path, items.index(typed(wish.value))), Op.UNSET)
    return [apply(old[0], wish, wish.path), *old[1:]]


def main(arguments: list[str]) -> int:
    wanted = page()
    if "--check" in arguments:
        if PAGE.is_file() and PAGE.read_text() == wanted:
            return 0
        print(f"{PAGE.name} is out of date: run scripts/editing_docs.py", file=sys.stderr)
        return 1
    PAGE.write_text(wanted)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
