"""
Print the lines of code, the five largest functions and modules, and the number of escape hatches.

A line of code is a line that is neither blank nor only a comment or a docstring.

Fails where a limit of CONTRIBUTING.md is broken: a function over 80 lines, a module over 500, a
folder over its budget of lines of code.
"""

from __future__ import annotations

import ast
import io
import re
import sys
import tokenize
from collections.abc import Mapping
from pathlib import Path

FUNCTION_MAX_LINES = 80
MODULE_MAX_LINES = 500
ROOTS = ("src", "stations")
EMBEDDED_FORGE = Path("extras/standins/src/orderkit_standins/forge")
BUDGET = {Path("src"): 100_400, EMBEDDED_FORGE: 6_010}
"""The most lines of code of a folder; a commit that needs more raises the number and says why."""
LAYOUT = {
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENDMARKER,
}
HATCH = re.compile(r"#\s*(type: ignore|noqa|pyrefly: ignore)")


def main() -> int:
    modules: list[tuple[int, str]] = []
    functions: list[tuple[int, str]] = []
    code = dict.fromkeys(BUDGET, 0)
    hatches = 0
    for path in sorted(p for root in ROOTS for p in Path(root).rglob("*.py")):
        text = path.read_text()
        modules.append((text.count("\n"), str(path)))
        hatches += len(HATCH.findall(text))
        tree = ast.parse(text)
        lines = lines_of_code(text, tree)
        for folder in BUDGET:
            code[folder] += lines if path.is_relative_to(folder) else 0
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                lines = (node.end_lineno or node.lineno) - node.lineno + 1
                functions.append((lines, f"{path}:{node.lineno} {node.name}"))
    for folder, lines in code.items():
        print(f"lines of code: {folder} {lines:,} of {BUDGET[folder]:,}")
    _show("largest modules", modules)
    _show("largest functions", functions)
    print(f"escape hatches {hatches}")
    return (
        _judge("module", modules, MODULE_MAX_LINES)
        | _judge("function", functions, FUNCTION_MAX_LINES)
        | _judge_budget(code)
    )


def lines_of_code(text: str, tree: ast.Module) -> int:
    """Count the lines of a module that hold a token which is not a comment and no docstring."""
    documented = {
        line
        for node in ast.walk(tree)
        if isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
        for line in range(node.lineno, (node.end_lineno or node.lineno) + 1)
    }
    lines: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in LAYOUT:
            lines.update(range(token.start[0], token.end[0] + 1))
    return len(lines - documented)


def _judge(what: str, sizes: list[tuple[int, str]], limit: int) -> int:
    """Say what is too long; return the exit code."""
    too_long = [name for lines, name in sorted(sizes, reverse=True) if lines > limit]
    for name in too_long:
        print(f"sizes FAILED: the {what} {name} has more than {limit} lines")
    return int(bool(too_long))


def _judge_budget(code: Mapping[Path, int]) -> int:
    """Say which folder is over its budget; return the exit code."""
    over = [folder for folder, lines in code.items() if lines > BUDGET[folder]]
    for folder in over:
        print(f"sizes FAILED: {folder} has more than {BUDGET[folder]:,} lines of code")
    return int(bool(over))


def _show(title: str, found: list[tuple[int, str]]) -> None:
    print(title)
    for lines, name in sorted(found, reverse=True)[:5]:
        print(f"  {lines:4d}  {name}")


if __name__ == "__main__":
    sys.exit(main())
