"""
Print the five largest functions, modules and the number of escape hatches, so growth is seen.

Fails where a limit of CONTRIBUTING.md is broken: a function over 80 lines, a module over 500.
"""

from __future__ import annotations

import ast
import re
import sys
from pathlib import Path

FUNCTION_MAX_LINES = 80
MODULE_MAX_LINES = 500
ROOTS = ("src", "stations")
HATCH = re.compile(r"#\s*(type: ignore|noqa|pyrefly: ignore)")


def main() -> int:
    modules: list[tuple[int, str]] = []
    functions: list[tuple[int, str]] = []
    hatches = 0
    for path in sorted(p for root in ROOTS for p in Path(root).rglob("*.py")):
        text = path.read_text()
        modules.append((text.count("\n"), str(path)))
        hatches += len(HATCH.findall(text))
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                lines = (node.end_lineno or node.lineno) - node.lineno + 1
                functions.append((lines, f"{path}:{node.lineno} {node.name}"))
    _show("largest modules", modules)
    _show("largest functions", functions)
    print(f"escape hatches {hatches}")
    return int(max(modules)[0] > MODULE_MAX_LINES or max(functions)[0] > FUNCTION_MAX_LINES)


def _show(title: str, found: list[tuple[int, str]]) -> None:
    print(title)
    for lines, name in sorted(found, reverse=True)[:5]:
        print(f"  {lines:4d}  {name}")


if __name__ == "__main__":
    sys.exit(main())
