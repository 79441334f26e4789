"""
Parse Nunjucks expressions and emit Jinja2's syntax tree.

Nunjucks parses with its own precedence but prints JavaScript without parentheses, so
JavaScript's precedence decides in the end (``not a == b`` is ``(not a) == b``; ``1 + 2 ~ 3``
is ``"33"``). This parser does the same in the same two steps: Nunjucks' grammar yields a flat
row of operands and operators, `_fold` applies JavaScript's precedence to it.

Every operation becomes a call of a function of ``javascript`` or ``library``, written as a
Jinja2 filter node, so no attribute of a Python object is ever reached. Called by ``parser``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from jinja2 import nodes

from orderkit.core.render import library
from orderkit.core.render.faults import LimitError, Position, RenderError, UnsupportedError
from orderkit.core.render.lexer import Tag, Token, TokenKind

DEPTH_MAX = 40
"""Deepest nesting of brackets, calls and conditions in one expression."""

NodeT = TypeVar("NodeT", nodes.Expr, nodes.Pair)
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
_COMPARISONS = frozenset({"==", "===", "!=", "!==", "<", ">", "<=", ">="})
_FUNCTIONS = {
    "==": "equal", "!=": "unequal", "===": "same", "!==": "different",
    "<": "below", ">": "above", "<=": "at_most", ">=": "at_least",
}  # fmt: skip
_LITERALS: dict[str, object] = {"true": True, "false": False, "none": None, "null": None}
_KEYWORDS = frozenset({"if", "else", "and", "or", "not", "in", "is"})


def call(function: str, first: nodes.Expr, *rest: nodes.Expr) -> nodes.Expr:
    """Return the node that calls one of the engine's functions."""
    return nodes.Filter(first, function, list(rest), [], None, None)


def constant(value: object) -> nodes.Expr:
    """Return the node of a literal."""
    return nodes.Const(value)


class ExpressionParser:
    """Reads the tokens of one tag. `frame` is the name of the variable that holds the scope."""

    def __init__(self, tag: Tag, source: str, frame: str) -> None:
        self._tag, self._source, self._frame = tag, source, frame
        self._at, self._depth = 0, 0

    # --- reading tokens

    @property
    def _token(self) -> Token | None:
        return self._tag.tokens[self._at] if self._at < len(self._tag.tokens) else None

    def peek(self, *texts: str) -> bool:
        """Say whether the next token is a name or operator with one of these texts."""
        token = self._token
        return (
            token is not None
            and token.kind in (TokenKind.NAME, TokenKind.OPERATOR)
            and token.text in texts
        )

    def take(self, *texts: str) -> bool:
        """Step over the next token if it is one of these."""
        found = self.peek(*texts)
        self._at += found
        return found

    def expect(self, text: str) -> None:
        """Step over `text`; raises RenderError if it is not there."""
        if not self.take(text):
            raise self.error(f"expected `{text}`")

    def name(self) -> str:
        """Read a variable's name; raises RenderError if there is none."""
        token = self._token
        if token is None or token.kind is not TokenKind.NAME or token.text in _LITERALS:
            raise self.error("expected a name")
        self._at += 1
        return token.text

    def end(self) -> None:
        """Raise RenderError if tokens are left."""
        if self._token is not None:
            raise self.error(f"unexpected `{self._token.text}`")

    def error(self, problem: str, *, hint: str = "") -> RenderError:
        return RenderError(f"{problem} in `{self._tag.source}`", self._position(), hint=hint)

    def unsupported(self, what: str, instead: str) -> UnsupportedError:
        return UnsupportedError(
            f"{what} is refused in `{self._tag.source}`", self._position(), hint=instead
        )

    def _position(self) -> Position:
        token = self._token
        return Position.at(self._source, token.offset if token else self._tag.offset)

    # --- Nunjucks' grammar

    def expression(self) -> nodes.Expr:
        """
        Read one expression.

        Raises:
            RenderError: It is malformed.
            UnsupportedError: It uses a construct outside the common language.
        """
        self._depth += 1
        if self._depth > DEPTH_MAX:
            raise LimitError(
                f"an expression nested deeper than {DEPTH_MAX} levels", self._position()
            )
        body = self._fold(self._or())
        if self.take("if"):
            condition = self._fold(self._or())
            otherwise = self._fold(self._or()) if self.take("else") else constant("")
            body = nodes.CondExpr(call("truthy", condition), body, otherwise)
        self._depth -= 1
        return body

    def _row(self, operand: Callable[[], list[Item]], words: dict[str, list[Item]]) -> list[Item]:
        items = operand()
        while self.peek(*words):
            token = self._token
            self._at += 1
            items = [*items, *words[token.text if token else ""], *operand()]
        return items

    def _or(self) -> list[Item]:
        return self._row(self._and, {"or": ["||"]})

    def _and(self) -> list[Item]:
        return self._row(self._not, {"and": ["&&"]})

    def _not(self) -> list[Item]:
        bangs: list[Item] = []
        while self.take("not"):
            bangs.append("!")
        return [*bangs, *self._in()]

    def _in(self) -> list[Item]:
        items: list[Item] = self._is()
        while True:
            negated = self.peek("not") and self._follows("in")
            if not negated and not self.peek("in"):
                return items
            self._at += 2 if negated else 1
            items = [call("contains", self._fold(items), self._fold(self._is()))]
            if negated:
                items = ["!", *items]

    def _follows(self, text: str) -> bool:
        behind = self._tag.tokens[self._at + 1 : self._at + 2]
        return bool(behind) and behind[0].text == text

    def _is(self) -> list[Item]:
        items = self._compare()
        if not self.take("is"):
            return items
        negated = self.take("not")
        tested = self._test(self._fold(items))
        return ["!", tested] if negated else [tested]

    def _test(self, subject: nodes.Expr) -> nodes.Expr:
        token = self._token
        if token is None or token.kind is not TokenKind.NAME:
            raise self.error("expected the name of a test")
        name = "null" if token.text == "none" else token.text
        if name not in library.TESTS:
            known = ", ".join(sorted(library.TESTS))
            raise self.unsupported(f"the test '{name}'", f"tests: {known}")
        self._at += 1
        arguments = self._arguments() if self.take("(") else []
        if len(arguments) != library.TEST_ARGUMENTS.get(name, 0):
            raise self.error(f"test '{name}' with {len(arguments)} arguments")
        return call(f"is {name}", subject, *arguments)

    def _compare(self) -> list[Item]:
        return self._row(self._concat, {text: [text] for text in _COMPARISONS})

    def _concat(self) -> list[Item]:
        return self._row(self._sum, {"~": ["+", constant(""), "+"]})

    def _sum(self) -> list[Item]:
        return self._row(self._floored, {text: [text] for text in ("+", "-", "*", "/")})

    def _floored(self) -> list[Item]:
        items: list[Item] = self._modulo()
        while self.take("//"):
            items = [call("floor", self._fold([*items, "/", *self._modulo()]))]
        return items

    def _modulo(self) -> list[Item]:
        return self._row(self._power, {"%": ["%"]})

    def _power(self) -> list[Item]:
        items: list[Item] = self._unary()
        while self.take("**"):
            items = [call("power", self._fold(items), self._fold(self._unary()))]
        return items

    def _unary(self) -> list[Item]:
        for sign, function in (("-", "negative"), ("+", "numeric")):
            if self.take(sign):
                if self.peek("-", "+"):
                    raise self.unsupported("two signs in a row", "write one")
                return [self._filtered(call(function, self._primary()))]
        return [self._filtered(self._primary())]

    def _filtered(self, value: nodes.Expr) -> nodes.Expr:
        while self.take("|"):
            name = self.name()
            while self.take("."):
                name += f".{self.name()}"
            if name not in library.FILTERS:
                raise self._unknown_filter(name)
            arguments = self._arguments() if self.take("(") else []
            least, most = library.FILTERS[name].arity
            if not least <= len(arguments) <= most:
                raise self.error(f"filter '{name}' takes {least} to {most} arguments")
            value = call(f"| {name}", value, *arguments)
        return value

    def _unknown_filter(self, name: str) -> RenderError:
        self._at -= 1
        known = f"filters: {', '.join(sorted(library.FILTERS))}"
        if name in library.FILTERS_OF_BACKSTAGE:
            return self.unsupported(f"the filter '{name}'", known)
        return self.error(f"there is no filter '{name}'", hint=known)

    # --- primaries

    def _primary(self) -> nodes.Expr:
        token = self._token
        if token is None:
            raise self.error("the expression ends too early")
        if token.kind is TokenKind.OPERATOR:
            return self._postfix(self._aggregate(token.text))
        if token.kind is TokenKind.NAME and token.text in _KEYWORDS:
            raise self.error(f"unexpected `{token.text}`")
        self._at += 1
        if token.kind is TokenKind.TEXT:
            return self._postfix(constant(token.text))
        if token.kind is TokenKind.NUMBER:
            return self._postfix(constant(library.literal_number(token.text)))
        if token.text in _LITERALS:
            return self._postfix(constant(_LITERALS[token.text]))
        return self._postfix(self._variable(token.text))

    def _variable(self, name: str) -> nodes.Expr:
        """Read a name and the constant members behind it: one look-up for ``values.a.b``."""
        keys: list[nodes.Expr] = [constant(name)]
        while self.peek(".", "[") and (key := self._constant_key()) is not None:
            keys.append(constant(key))
        return call("lookup", nodes.Name(self._frame, "load"), *keys)

    def _constant_key(self) -> str | None:
        """Step over ``.name`` or ``["name"]``, unless it is called or computed."""
        rest = self._tag.tokens[self._at : self._at + 4]
        texts = [token.text for token in rest]
        named = len(rest) > 1 and texts[0] == "." and rest[1].kind is TokenKind.NAME
        if named and texts[1] not in _LITERALS:
            if texts[2:3] == ["("] and rest[2].kind is TokenKind.OPERATOR:
                return None
            self._at += 2
            return texts[1]
        if len(rest) > 2 and rest[1].kind is TokenKind.TEXT and texts[2] == "]":  # noqa: PLR2004
            if texts[3:4] == ["("] and rest[3].kind is TokenKind.OPERATOR:
                return None
            self._at += 3
            return texts[1]
        return None

    def _postfix(self, value: nodes.Expr) -> nodes.Expr:
        while self.peek(".", "[", "("):
            if self.take("("):
                value = call("call", value, *self._arguments())
            elif self.take("."):
                value = self._dotted(value)
            else:
                self._at += 1
                if self.peek(":"):
                    raise self.unsupported("a slice", "use `first`, `last` or pass the part")
                key = self.expression()
                if self.peek(":"):
                    raise self.unsupported("a slice", "use `first`, `last` or pass the part")
                self.expect("]")
                value = call("member", value, key)
        return value

    def _dotted(self, value: nodes.Expr) -> nodes.Expr:
        token = self._token
        if token is None or token.kind is not TokenKind.NAME:
            raise self.error("expected a name behind `.`")
        if token.text in _LITERALS:
            raise self.unsupported(f"the member '{token.text}'", f'write ["{token.text}"]')
        self._at += 1
        if not self.take("("):
            return call("member", value, constant(token.text))
        if token.text not in library.METHODS:
            raise self.unsupported(
                f"the method '{token.text}'",
                f"use a filter, for example `| replace(a, b)`; "
                f"methods: {', '.join(sorted(library.METHODS))}",
            )
        return call("method", value, constant(token.text), *self._arguments())

    def _arguments(self) -> list[nodes.Expr]:
        """Read what stands between parentheses, the opening one already taken."""
        found: list[nodes.Expr] = []
        while not self.take(")"):
            if found:
                self.expect(",")
            if self._token and self._token.kind is TokenKind.NAME and self._follows("="):
                raise self.unsupported("a keyword argument", "pass it by position")
            found.append(self.expression())
        return found

    def _aggregate(self, mark: str) -> nodes.Expr:
        if mark == "(":
            self._at += 1
            value = self.expression()
            if self.peek(","):
                raise self.unsupported("a tuple", "write a list: [a, b]")
            self.expect(")")
            return value
        if mark == "[":
            self._at += 1
            return nodes.List(self._series("]", self.expression))
        if mark == "{":
            self._at += 1
            return nodes.Dict(self._series("}", self._pair))
        raise self.error(f"unexpected `{mark}`")

    def _series(self, end: str, read: Callable[[], NodeT]) -> list[NodeT]:
        found: list[NodeT] = []
        while not self.take(end):
            if found:
                self.expect(",")
            found.append(read())
        return found

    def _pair(self) -> nodes.Pair:
        token = self._token
        if token is None or token.kind is TokenKind.OPERATOR:
            raise self.error("expected a key")
        if token.kind is TokenKind.NUMBER:
            raise self.unsupported("a number as key", "quote it")
        self._at += 1
        self.expect(":")
        return nodes.Pair(constant(token.text), self.expression())

    # --- JavaScript's precedence

    def _fold(self, items: list[Item]) -> nodes.Expr:
        """Apply JavaScript's precedence to a flat row of operands and operators."""
        return _fold(_negate(items), 0)


def _negate(items: list[Item]) -> list[Item]:
    """Apply each ``!`` to the operand behind it: it binds tightest."""
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
    """Combine operands of one level of precedence."""
    if operators[0] in {"+", "-", "*", "/", "%"}:
        pairs = zip(operators, operands[1:], strict=True)
        rest = [node for operator, operand in pairs for node in (constant(operator), operand)]
        return call("chain", operands[0], *rest)
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
