"""Which single faults `scripts/mutants.py` puts into a module, and which tests it runs for one."""

from __future__ import annotations

import ast

import pytest
from scripts.mutants import choose, faults

OPERATORS = {
    "a comparison": (
        "return a < b",
        [("comparison flipped", "return (a <= b)")],
    ),
    "a chain of comparisons, each by itself": (
        "return a in b != c",
        [
            ("comparison flipped", "return (a not in b != c)"),
            ("comparison flipped", "return (a in b == c)"),
        ],
    ),
    "two operands": (
        "return a or b",
        [
            ("and/or swapped", "return (a and b)"),
            ("operand dropped", "return (b)"),
            ("operand dropped", "return (a)"),
        ],
    ),
    "three operands": (
        "return a and b and c",
        [
            ("and/or swapped", "return (a or b or c)"),
            ("operand dropped", "return (b and c)"),
            ("operand dropped", "return (a and c)"),
            ("operand dropped", "return (a and b)"),
        ],
    ),
    "a condition": (
        "while a: b = 1",
        [("condition negated", "while (not (a)): b = 1")],
    ),
    "a condition in an expression": (
        "return 1 if a else 2",
        [("condition negated", "return 1 if (not (a)) else 2")],
    ),
    "a condition of a comprehension": (
        "return [b for b in a if b]",
        [("condition negated", "return [b for b in a if (not (b))]")],
    ),
    "a call": ("a.clear()", [("call removed", "pass")]),
    "an error": ("raise a from b", [("raise removed", "pass")]),
    "an error that never happens": ("raise AssertionError(a)", []),
    "the body of an except": (
        "try: b = a\n    except c:\n        b = 1\n        c = 2",
        [("except's effect removed", "try: b = a\n    except c:\n        pass")],
    ),
    "both ends of a slice": (
        "return a[1:b]",
        [
            ("slice off by one", "return (a[1 + 1:b])"),
            ("slice off by one", "return (a[1:b - 1])"),
        ],
    ),
    "arguments that stand side by side": (
        "return a(1, 2, 3, key=4)",
        [
            ("arguments swapped", "return (a(2, 1, 3, key=4))"),
            ("arguments swapped", "return (a(1, 3, 2, key=4))"),
        ],
    ),
    "an expression over two lines": (
        "return (a ==\n        b)",
        [("comparison flipped", "return ((a != b))")],
    ),
    "text before it that is longer in UTF-8": (
        "return 'é', a == b",
        [("comparison flipped", "return 'é', (a != b)")],
    ),
}  # fmt: skip


def module(body: str) -> str:
    return f"def f(a, b, c):\n    {body}\n"


@pytest.mark.parametrize("case", OPERATORS)
def test_each_fault_is_put_in_at_its_place_and_nothing_else_changes(case: str) -> None:
    body, expected = OPERATORS[case]
    source = module(body).encode()

    found = [(fault.kind, fault.put_into(source).decode()) for fault in faults(source)]

    assert found == [(kind, module(new)) for kind, new in expected]
    for _, text in found:
        ast.parse(text)


@pytest.mark.parametrize(
    "source",
    [
        "A = 1 < 2 and 3\n",
        "def f(a: x[1:] = None) -> x[1:]:\n    return a\n",
        "@cache(1, 2)\ndef f():\n    b: x[1:] = 1\n",
        'def f(a):\n    return f"{a[1:]}"\n',
        "def f(a):\n    return a(1, 1), a(*b, c), a[::2]\n",
        "def f():\n    try:\n        b = 1\n    except x:\n        pass\n",
    ],
    ids=[
        "outside of functions",
        "annotations of arguments",
        "decorators and annotations of variables",
        "an f-string",
        "arguments that are equal or unpacked, and a slice without ends",
        "an except that does nothing",
    ],
)
def test_there_is_no_fault_in(source: str) -> None:
    assert list(faults(source.encode())) == []


def test_a_fault_belongs_to_the_lines_from_its_statement_on() -> None:
    """Coverage may name only the first of them."""
    source = b"def f(a):\n    return (\n        a\n        or 1\n    )\n"

    swapped, *_ = faults(source)

    assert (swapped.line, list(swapped.lines)) == (3, [2, 3, 4])
    assert swapped.change(source) == "a or 1 -> (a and 1)"


def test_what_an_except_does_belongs_to_its_own_lines() -> None:
    """More tests reach its `try`, and they would take the time of those that fail in it."""
    source = b"def f(a):\n    try:\n        return a[1]\n    except KeyError:\n        a()\n"

    (effect,) = (fault for fault in faults(source) if fault.kind == "except's effect removed")

    assert list(effect.lines) == [5]


TIMES_S = {"a.py::slow": 9.0, "a.py::a": 1.0, "a.py::b": 2.0, "b.py::b": 5.0, "c.py::c": 4.0}


@pytest.mark.parametrize(
    ("limit_s", "chosen"),
    [
        (100.0, "a.py::a a.py::b c.py::c b.py::b a.py::slow"),
        (12.0, "a.py::a a.py::b c.py::c b.py::b"),
        (6.0, "a.py::a a.py::b"),
        (5.0, "a.py::a a.py::b"),
        (0.5, "a.py::a"),
    ],
)
def test_the_quickest_are_chosen_first_then_some_of_each_module_and_at_least_one(
    limit_s: float, chosen: str
) -> None:
    assert choose(TIMES_S, TIMES_S, limit_s) == chosen.split()
    assert choose([], TIMES_S, limit_s) == []


def test_half_of_the_time_is_for_tests_of_other_modules() -> None:
    times_s = {**{f"a.py::{number}": 1.0 for number in range(9)}, "b.py::b": 5.0}

    assert choose(times_s, times_s, 11.0) == [
        *(f"a.py::{number}" for number in range(6)),
        "b.py::b",
    ]
