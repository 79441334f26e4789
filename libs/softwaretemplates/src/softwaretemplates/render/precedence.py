"""
Apply JavaScript's precedence to a flat sequence of operands and operators.

Also has the two node constructors of the whole front end.
"""

from __future__ import annotations

from jinja2 import nodes

Item = nodes.Expr | str
"""An operand, or an operator as JavaScript writes it."""

_BINDING: tuple[frozenset[str], ...] = (
    frozenset({"||"}),
    frozenset({"&&"}),
    frozenset({"==", "!=", "===", "!=="}),
    frozenset({"<", ">", "<=", ">="}),
    frozenset({"+", "-"}),
    frozenset({"*", "/", "%"}),
)
"""JavaScript's binary operators, loosest first; all associate to the left."""
COMPARISONS = frozenset({"==", "===", "!=", "!==", "<", ">", "<=", ">="})
_FUNCTIONS = {
    "==": "equal", "!=": "unequal", "===": "same", "!==": "different",
    "<": "below", ">": "above", "<=": "at_most", ">=": "at_least",
}  # fmt: skip


def call(function: str, first: nodes.Expr, *arguments: nodes.Expr) -> nodes.Filter:
    """Return the node that calls one of the engine's functions."""
    return nodes.Filter(first, function, list(arguments), [], None, None)


def constant(value: object) -> nodes.Expr:
    """Return the node of a literal."""
    return nodes.Const(value)


def fold(items: list[Item]) -> nodes.Expr:
    """Return the expression that JavaScript reads from a sequence of operands and operators."""
    return _fold(_negate(items), 0)


def _negate(items: list[Item]) -> list[Item]:
    """Apply each ``!`` to the operand after it: it has the highest precedence."""
    row: list[Item] = []
    bangs = 0
    for item in items:
        if item == "!":
            bangs += 1
        elif isinstance(item, str):
            row.append(item)
        else:
            row.append(call("truthy", item) if bangs and bangs % 2 == 0 else item)
            if bangs % 2:
                row[-1] = call("untrue", item)
            bangs = 0
    return row


def _fold(row: list[Item], level: int) -> nodes.Expr:
    if len(row) == 1:
        (only,) = row
        if isinstance(only, str):  # pragma: no cover - rows are built operand first
            raise TypeError(only)
        return only
    while not any(isinstance(item, str) and item in _BINDING[level] for item in row):
        level += 1
    operands: list[nodes.Expr] = []
    operators: list[str] = []
    start = 0
    for at, item in enumerate([*row, ""]):
        if at == len(row) or (isinstance(item, str) and item in _BINDING[level]):
            operands.append(_fold(row[start:at], min(level + 1, len(_BINDING) - 1)))
            operators.append(str(item))
            start = at + 1
    return _join(operands, operators[:-1])


def _join(operands: list[nodes.Expr], operators: list[str]) -> nodes.Expr:
    """Combine operands of equal precedence."""
    if operators[0] in {"+", "-", "*", "/", "%"}:
        pairs = zip(operators, operands[1:], strict=True)
        pairs_flat = [node for operator, operand in pairs for node in (constant(operator), operand)]
        return call("chain", operands[0], *pairs_flat)
    if operators[0] in {"||", "&&"}:
        # Both are associative, so the tree may lean to the right and stay shallow on the left.
        kind = nodes.Or if operators[0] == "||" else nodes.And
        folded = operands[-1]
        for operand in reversed(operands[:-1]):
            folded = kind(operand, folded)
        return folded
    folded = operands[0]
    for operator, operand in zip(operators, operands[1:], strict=True):
        folded = call(_FUNCTIONS[operator], folded, operand)
    return folded
