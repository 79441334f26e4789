"""The client of each forge stays small, and longer functions that forges share stand once."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest
from scripts.sizes import lines_of_code

ADAPTERS = Path(__file__).parents[3] / "src/orderkit/adapters"
ROOMS = ("forges", "gitea", "github", "gitlab")
MOST, LONG = 2_500, 10


def modules(room: str) -> Iterator[tuple[Path, str]]:
    for path in sorted((ADAPTERS / room).glob("*.py")):
        yield path, path.read_text()


@pytest.mark.parametrize("room", ROOMS)
def test_a_client_has_at_most_2500_lines_of_code(room: str) -> None:
    assert sum(lines_of_code(text, ast.parse(text)) for _, text in modules(room)) <= MOST


def test_no_longer_function_stands_in_two_clients() -> None:
    """Compared without names of modules and docstrings; `write` makes each client's own class."""
    places: dict[str, list[str]] = defaultdict(list)
    for room in ROOMS:
        for path, text in modules(room):
            for node in ast.walk(ast.parse(text)):
                if isinstance(node, ast.FunctionDef) and node.name != "write":
                    body = [each for each in node.body if not isinstance(each, ast.Expr)]
                    length = (node.end_lineno or 0) - body[0].lineno if body else 0
                    if length >= LONG:
                        places[ast.dump(ast.Module(body, []))].append(f"{path.name}:{node.name}")

    assert [where for where in places.values() if len(where) > 1] == []
