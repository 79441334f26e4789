"""
Print what each house weighs, the largest functions and modules, and the number of escape hatches.

A line of code is a line that is neither blank nor only a comment or a docstring.

Fails where a limit of CONTRIBUTING.md is broken: a function over 80 lines, a module over 500, a
house or the embedded forge over its budget of lines of code.
"""

from __future__ import annotations

import ast
import io
import re
import sys
import tokenize
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))
from scripts.houses import HOUSES

FUNCTION_MAX_LINES = 80
MODULE_MAX_LINES = 500
ROOTS = (*(house.source for house in HOUSES), Path("stations"))
EMBEDDED_FORGE = Path("extras/standins/src/orderkit_standins/forge")
EMBEDDED_FORGE_BUDGET = 9_800
LAYOUT = {
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENDMARKER,
}
HATCH = re.compile(r"#\s*(type: ignore|noqa|pyrefly: ignore)")


@dataclass(slots=True)
class Weight:
    """What a folder holds: modules, lines of code, and those of them that only import."""

    modules: int = 0
    code: int = 0
    imports: int = 0


def main() -> int:
    modules: list[tuple[int, str]] = []
    functions: list[tuple[int, str]] = []
    weights = {folder: Weight() for folder in (*ROOTS, EMBEDDED_FORGE)}
    hatches = 0
    for path in sorted(p for root in ROOTS for p in root.rglob("*.py")):
        text = path.read_text()
        modules.append((text.count("\n"), str(path)))
        hatches += len(HATCH.findall(text))
        tree = ast.parse(text)
        lines, imports = lines_of_code(text, tree), lines_of_imports(tree)
        for folder, weight in weights.items():
            if path.is_relative_to(folder):
                weight.modules += 1
                weight.code += lines
                weight.imports += imports
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                lines = (node.end_lineno or node.lineno) - node.lineno + 1
                functions.append((lines, f"{path}:{node.lineno} {node.name}"))
    over = _judge_budgets(weights)
    _show("largest modules", modules)
    _show("largest functions", functions)
    print(f"escape hatches {hatches}")
    return (
        _judge("module", modules, MODULE_MAX_LINES)
        | _judge("function", functions, FUNCTION_MAX_LINES)
        | over
    )


def lines_of_imports(tree: ast.Module) -> int:
    """Count the lines of a module's import statements."""
    return sum(
        (node.end_lineno or node.lineno) - node.lineno + 1
        for node in ast.walk(tree)
        if isinstance(node, ast.Import | ast.ImportFrom)
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


def _judge_budgets(weights: dict[Path, Weight]) -> int:
    """Print each house's weight, and the whole; say which is over its budget; return the code."""
    budgets = {house.source: (house.folder, house.budget, house.aim) for house in HOUSES}
    budgets[EMBEDDED_FORGE] = ("its forge", EMBEDDED_FORGE_BUDGET, EMBEDDED_FORGE_BUDGET)
    print(f"{'house':<24} {'code':>7} {'budget':>7} {'aim':>7} {'modules':>8} {'imports':>8}")
    over = []
    for folder, (name, budget, aim) in budgets.items():
        weight = weights[folder]
        share = f"{100 * weight.imports / weight.code:.0f} %"
        print(f"{name:<24} {weight.code:>7,} {budget:>7,} {aim:>7,} {weight.modules:>8} {share:>8}")
        if weight.code > budget:
            over.append(f"sizes FAILED: {name} has more than {budget:,} lines of code")
    whole = [weights[house.source] for house in HOUSES]
    code = sum(weight.code for weight in whole)
    share = f"{100 * sum(weight.imports for weight in whole) / code:.0f} %"
    budget, aim = (sum(getattr(house, name) for house in HOUSES) for name in ("budget", "aim"))
    count = sum(weight.modules for weight in whole)
    print(f"{'all houses':<24} {code:>7,} {budget:>7,} {aim:>7,} {count:>8} {share:>8}")
    print("\n".join(over), end="\n" if over else "")
    return int(bool(over))


def _show(title: str, found: list[tuple[int, str]]) -> None:
    print(title)
    for lines, name in sorted(found, reverse=True)[:5]:
        print(f"  {lines:4d}  {name}")


if __name__ == "__main__":
    sys.exit(main())
