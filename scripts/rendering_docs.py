"""
Write docs/rendering.md from the tables that the renderer enforces; ``--check`` only compares.

The page lists what renders and what is refused. Run it after a change in ``core/portal/render``.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from orderkit.adapters.processes.confined_rendering import ChildLimits
from orderkit.flows.template.actions.action_context import FETCHED_FILES_MAX
from softwaretemplates.render import (
    TreeOptions,
    builtins,
    cookiecutter,
    engine,
    methods,
    refusals,
    scopes,
)
from softwaretemplates.render import javascript as js
from softwaretemplates.render.lexer import SOURCE_MAX
from softwaretemplates.render.methods import Method
from softwaretemplates.render.operands import LIST_MAX
from softwaretemplates.render.parser import BLOCKS_MAX, LOOPS_MAX, TAGS
from softwaretemplates.render.predicates import Test
from softwaretemplates.render.refusals import UnsupportedConstruct

PAGE = Path(__file__).parents[1] / "docs" / "rendering.md"

INTRODUCTION = """\
# What renders, and what is refused

`scripts/rendering_docs.py` generates this page from the code that enforces it.

Orderkit renders skeletons and step inputs as Backstage's scaffolder does. Backstage has had two
engines: Nunjucks 3.2.4 (scaffolder-backend up to 4.0.2) and Nunjitsu (0.7 in Backstage 1.57; 0.5,
in scaffolder-backend 4.0.3, lacks methods). Where both write the same bytes, Orderkit writes them
too. Where they differ, or where Orderkit cannot be exact, it refuses with file, line, column,
reason and a hint: the same bytes or an error, never something else. To try a pack, run
`orderkit render --check DIR`. With values, add `--keep-going --json`.

Skeletons of the pack that comes with the installation are rendered in the process of the command.
All others are rendered in a child process with the limits at the end of this page.
"""

STRICTER = """\
## Stricter than Backstage, on purpose

| Case | Backstage | Orderkit |
|---|---|---|
| a file of a skeleton prints `values.x`, and no one passed `x` | prints nothing | refuses and names the file and the known values. `default` and conditions work |
| two files render to one path, or to paths that differ only by case | the first wins | refuses |
| text that is neither UTF-8 nor binary, also if it is only copied | corrupts it | refuses |
| a name that renders to `.` | leaves the file out, or fails | refuses |
| a name with control characters, of a device, with `..`, `.git`, over 255 bytes | writes some of it | refuses |
| a symbolic link that leaves the tree | copies it | refuses. Links inside the tree are copied by `orderkit render` and refused by `fetch:template` |
| an empty folder | creates it | leaves it out, because git keeps no empty folders |
| an expression of a step that fails | uses its source as text | fails |
"""  # noqa: E501 - rows of a table


def page() -> str:
    """Return the whole page."""
    parts = [
        INTRODUCTION,
        _tags(),
        "## Filters\n\n" + _table(("Filter", "Arguments", "What it does"), _filters()),
        f"Refused: {_names(builtins.FILTERS_REFUSED)}.\n",
        "## Tests\n\n"
        + _names(f"{name}(x)" if test.arguments else name for name, test in _tests())
        + "\n",
        "## Functions\n\n" + _names(builtins.FUNCTIONS) + ", in steps also `always`, `failure`.\n",
        "## Methods\n\n" + _table(("Of", "Methods"), _methods()),
        STRICTER,
        "## Refused before rendering\n\n" + _refusals(early=True),
        "## Refused for some values\n\n" + _refusals(early=False),
        "## Limits\n\n" + _table(("What", "Most"), _limits()) + SIZES,
    ]
    return "\n".join(parts)


SIZES = """
(1) `--size-limit MIB` of `orderkit run` and `orderkit render`, and `templates.sizeMiB` of
platform.yaml, set the third. The second is its half, the first its eighth.

(2) Files of this machine that are only copied do not count, whatever their size: binary files,
links, text without `{{`, `{%`, `{#` or `#}`, and those of `copyWithoutTemplating`.
"""


def _tags() -> str:
    return (
        f"## Tags\n\n{_names(TAGS)},\nalso `-` for trimming, comments `{{# #}}`, and in loops "
        "`loop.index`, `index0`, `revindex`,\n`revindex0`, `first`, `last`, `length`.\n"
    )


def _names(names: object) -> str:
    return ", ".join(f"`{name}`" for name in names)  # type: ignore[attr-defined]  # any iterable


def _table(head: tuple[str, ...], rows: Iterator[tuple[str, ...]]) -> str:
    lines = [head, tuple("---" for _ in head), *rows]
    cells = (" | ".join(cell.replace("|", "\\|") for cell in line) for line in lines)
    return "\n".join(f"| {line} |" for line in cells) + "\n"


def _tests() -> list[tuple[str, Test]]:
    return sorted(builtins.TESTS.items())


def _filters() -> Iterator[tuple[str, str, str]]:
    for name, found in sorted(builtins.FILTERS.items()):
        least, most = found.arguments
        names = list(inspect.signature(found.run).parameters)[1 : most + 1]
        shown = [
            (f"{word}" if at < least else f"[{word}]").replace("_ignored", "…")
            for at, word in enumerate(names)
        ]
        keywords = f" (keywords: {', '.join(found.keywords)})" if found.keywords else ""
        said = _summary(found.run) or _SAID[name]
        yield f"`{name}`", ", ".join(shown) + keywords, said


_SAID = {
    "select": "Keep the items for which a test holds.",
    "reject": "Drop the items for which a test holds.",
    "selectattr": "Keep the items whose attribute is true. Further arguments are ignored.",
    "rejectattr": "Drop the items whose attribute is true. Further arguments are ignored.",
}


def _summary(function: Callable[..., object]) -> str:
    return (inspect.getdoc(function) or "").partition("\n")[0].replace("``", "`")


def _methods() -> Iterator[tuple[str, str]]:
    tables: tuple[tuple[str, Mapping[str, Method]], ...] = (
        ("text", methods.TEXT_METHODS),
        ("list", methods.LIST_METHODS),
        ("number", methods.NUMBER_METHODS),
        ("what `cycler` returns", methods.CYCLER_METHODS),
        ("map, with cookiecutterCompat", cookiecutter.MAP_METHODS),
        ("list, with cookiecutterCompat", cookiecutter.LIST_METHODS),
    )
    for of, found in tables:
        yield of, _names(sorted(found))


def _refusals(*, early: bool) -> str:
    def row(name: str, refusal: UnsupportedConstruct) -> tuple[str, ...]:
        texts = (refusal.construct, refusal.why, refusal.instead)
        case = refusals.CASES[name].replace("\n", "⏎")
        return *(text.replace("{}", "…") for text in texts), f"`` {case} ``"

    found = refusals.table().items()
    rows = (row(name, refusal) for name, refusal in found if refusal.early is early)
    return _table(("What", "Why", "Write instead", "A case"), rows)


def _limits() -> Iterator[tuple[str, str]]:
    limits, options = ChildLimits(), TreeOptions()
    yield "one file that is rendered, before and after (1)", f"{options.file_max >> 20} MiB"
    yield (
        "what is rendered of one folder, before and after (1)",
        f"{options.rendered_max >> 20} MiB",
    )
    yield "what one run holds in memory (1, 2)", f"{options.size_limit >> 20} MiB"
    yield "files of one fetch from the forge", f"{FETCHED_FILES_MAX:,}"
    yield "any other template", f"{SOURCE_MAX:,} characters"
    yield "a text that an operation builds", f"{js.TEXT_MAX:,} characters"
    yield "a list that an operation builds", f"{LIST_MAX:,} entries"
    yield "what one template writes", f"{engine.OUTPUT_MAX:,} characters"
    yield "rounds of all loops together", f"{scopes.ROUNDS_MAX:,}"
    yield "macros that call each other", f"{scopes.CALLS_MAX} levels"
    yield "blocks in blocks, loops in loops", f"{BLOCKS_MAX} and {LOOPS_MAX} levels"
    yield "processor time of a skeleton from elsewhere", f"{limits.cpu_s} s"
    yield "its memory", f"{limits.memory_bytes >> 20} MiB"
    yield "its answer", f"{limits.output_bytes >> 20} MiB"


def main(arguments: list[str]) -> int:
    wanted = page()
    if "--check" in arguments:
        if PAGE.is_file() and PAGE.read_text() == wanted:
            return 0
        print(f"{PAGE.name} is out of date: run scripts/rendering_docs.py", file=sys.stderr)
        return 1
    PAGE.write_text(wanted)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
