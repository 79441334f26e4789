"""
Parse Nunjucks expressions and emit Jinja2's syntax tree.

Nunjucks parses with its own precedence but prints JavaScript without parentheses, so JavaScript's
precedence decides in the end (``not a == b`` is ``(not a) == b``; ``1 + 2 ~ 3`` is ``"33"``). This
parser uses the same two steps: Nunjucks' grammar yields a flat sequence of operands and operators,
and `fold` applies JavaScript's precedence to it.

Every operation becomes a call of a function in ``javascript`` or ``operations``, written as a
Jinja2 filter node, so that templates never reach an attribute of a Python object.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from jinja2 import nodes

from softwaretemplates.render import builtins, cookiecutter, methods, refusals
from softwaretemplates.render.integrations import is_planning
from softwaretemplates.render.lexer import RESERVED, Tag, TemplateToken, TokenKind
from softwaretemplates.render.precedence import COMPARISONS, Item, call, constant, fold
from softwaretemplates.render.refusals import (
    LimitError,
    Position,
    RenderError,
    UnsupportedConstruct,
    UnsupportedError,
)

DEPTH_MAX = 40
"""Deepest nesting of brackets, calls and conditions in one expression."""

NodeT = TypeVar("NodeT", nodes.Expr, nodes.Pair)
_LITERALS: dict[str, object] = {"true": True, "false": False, "none": None, "null": None}
_KEYWORDS = frozenset({"if", "else", "and", "or", "not", "in", "is"})


class ExpressionParser:
    """
    Reads the tokens of one tag.

    `frame` is the name of the variable that holds the scope. `compat` enables what
    ``cookiecutterCompat`` adds. Names in `stale` are refused. `changes_lists` is set if a list may
    be changed in place.
    """

    def __init__(
        self,
        tag: Tag,
        source: str,
        frame: str,
        *,
        compat: bool = False,
        stale: frozenset[str] = frozenset(),
    ) -> None:
        self._tag, self._source, self._frame, self._compat = tag, source, frame, compat
        self._stale = stale
        self._at, self._depth = 0, 0
        self.changes_lists = False

    # --- reading tokens

    def continue_at(self, other: ExpressionParser) -> None:
        """Continue at the position of `other`, a reader of the same tag."""
        self._at = other._at

    @property
    def _token(self) -> TemplateToken | None:
        return self._tag.tokens[self._at] if self._at < len(self._tag.tokens) else None

    def peek(self, *texts: str) -> bool:
        """Return whether the next token is a name or operator with one of these texts."""
        token = self._token
        return (
            token is not None
            and token.kind in (TokenKind.NAME, TokenKind.OPERATOR)
            and token.text in texts
        )

    def take(self, *texts: str) -> bool:
        """Skip the next token if it is one of these; return whether it was."""
        is_next = self.peek(*texts)
        self._at += is_next
        return is_next

    def expect(self, text: str) -> None:
        """Skip `text`; raises RenderError if it is not there."""
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

    def refused(self, refusal: UnsupportedConstruct, name: str = "") -> UnsupportedError:
        """Return the error for an unsupported construct, at the next token."""
        return UnsupportedError(
            f"{refusal.problem(name)} in `{self._tag.source}`",
            self._position(),
            hint=refusal.way_out(name),
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
        body = fold(self._or())
        if self.take("if"):
            condition = fold(self._or())
            otherwise = fold(self._or()) if self.take("else") else constant("")
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
            items = [call("contains", fold(items), fold(self._is()))]
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
        tested = self._test(fold(items))
        return ["!", tested] if negated else [tested]

    def _test(self, subject: nodes.Expr) -> nodes.Expr:
        token = self._token
        if token is None or token.kind is not TokenKind.NAME:
            raise self.error("expected the name of a test")
        name = "null" if token.text == "none" else token.text
        if name not in builtins.TESTS:
            raise self.refused(refusals.TEST, name)
        self._at += 1
        arguments = self._arguments() if self.take("(") else []
        if len(arguments) != builtins.TESTS[name].arguments:
            raise self.error(f"test '{name}' with {len(arguments)} arguments")
        return call(f"is {name}", subject, *arguments)

    def _compare(self) -> list[Item]:
        return self._row(self._concat, {text: [text] for text in COMPARISONS})

    def _concat(self) -> list[Item]:
        return self._row(self._sum, {"~": ["+", constant(""), "+"]})

    def _sum(self) -> list[Item]:
        return self._row(self._floored, {text: [text] for text in ("+", "-", "*", "/")})

    def _floored(self) -> list[Item]:
        items: list[Item] = self._modulo()
        while self.take("//"):
            items = [call("floor", fold([*items, "/", *self._modulo()]))]
        return items

    def _modulo(self) -> list[Item]:
        return self._row(self._power, {"%": ["%"]})

    def _power(self) -> list[Item]:
        items: list[Item] = self._unary()
        while self.take("**"):
            items = [call("power", fold(items), fold(self._unary()))]
        return items

    def _unary(self) -> list[Item]:
        for sign, function in (("-", "negative"), ("+", "numeric")):
            if self.take(sign):
                if self.peek("-", "+"):
                    raise self.refused(refusals.TWO_SIGNS)
                return [self._filtered(call(function, self._primary()))]
        return [self._filtered(self._primary())]

    def _filtered(self, value: nodes.Expr) -> nodes.Expr:
        while self.take("|"):
            value = self.filter_of(value)
        return value

    def filter_of(self, value: nodes.Expr) -> nodes.Expr:
        """
        Read a filter's name and arguments; return the node that applies it to `value`.

        Raises:
            RenderError: There is no such filter, or the arguments do not fit.
            UnsupportedError: Backstage has the filter, but it is refused here.
        """
        full_name = self.name()
        while self.take("."):
            full_name += f".{self.name()}"
        name = "dump" if full_name == "jsonify" and self._compat else full_name
        if name not in builtins.FILTERS:
            if name in builtins.FILTERS_REFUSED or not is_planning():
                raise self._unknown_filter(name)
            if self.take("("):
                self._arguments(keywords=True)
            return call("unknown filter", value, nodes.Const(name))
        if self._compat and builtins.FILTERS[name].of_backstage:
            self._at -= 1
            raise self.refused(refusals.COOKIECUTTER_FILTER, name)
        of_backstage = builtins.FILTERS[name].of_backstage
        arguments = self._arguments(keywords=not of_backstage) if self.take("(") else []
        arguments_min, arguments_max = builtins.FILTERS[name].arguments
        if (
            not arguments_min <= len(arguments) <= arguments_max
            and not builtins.FILTERS[name].keywords
        ):
            raise self.error(f"filter '{name}' takes {arguments_min} to {arguments_max} arguments")
        if len(arguments) > arguments_max:
            raise self.error(f"filter '{name}' takes {arguments_min} to {arguments_max} arguments")
        return call(f"| {name}", value, *arguments)

    def _unknown_filter(self, name: str) -> RenderError:
        self._at -= 1
        if name in builtins.FILTERS_REFUSED:
            return self.refused(refusals.FILTER, name)
        filter_names = f"filters: {', '.join(sorted(builtins.FILTERS))}"
        return self.error(f"there is no filter '{name}'", hint=filter_names)

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
            return self._postfix(constant(builtins.literal_number(token.text)))
        if token.text in _LITERALS:
            return self._postfix(constant(_LITERALS[token.text]))
        return self._postfix(self._variable(token.text))

    def _variable(self, name: str) -> nodes.Expr:
        """Read a name and the constant members after it: one look-up for ``values.a.b``."""
        if name in self._stale:
            raise self.refused(refusals.ELSE_NAME, name)
        keys: list[nodes.Expr] = [constant(name)]
        while self.peek(".", "[") and (key := self._constant_key()) is not None:
            keys.append(constant(self._key(key)))
        value = self._operation("lookup", nodes.Name(self._frame, "load"), *keys)
        if len(keys) > 1 or not self.take("("):
            return value
        frame = nodes.Name(self._frame, "load")
        return call("call", value, frame, *self._arguments(keywords=True))

    def _operation(self, function: str, first: nodes.Expr, *operands: nodes.Expr) -> nodes.Expr:
        """Return the node of an operation that ``cookiecutterCompat`` changes."""
        return call(f"compat {function}" if self._compat else function, first, *operands)

    def _constant_key(self) -> str | None:
        """Skip ``.name`` or ``["name"]`` and return the key, unless it is called or computed."""
        tokens = self._tag.tokens[self._at : self._at + 4]
        texts = [token.text for token in tokens]
        is_member = len(tokens) > 1 and texts[0] == "." and tokens[1].kind is TokenKind.NAME
        if is_member and texts[1] not in _LITERALS:
            if texts[2:3] == ["("] and tokens[2].kind is TokenKind.OPERATOR:
                return None
            self._at += 2
            return texts[1]
        if len(tokens) > 2 and tokens[1].kind is TokenKind.TEXT and texts[2] == "]":  # noqa: PLR2004
            if texts[3:4] == ["("] and tokens[3].kind is TokenKind.OPERATOR:
                return None
            self._at += 3
            return texts[1]
        return None

    def _postfix(self, value: nodes.Expr) -> nodes.Expr:
        while self.peek(".", "[", "("):
            if self.take("("):
                frame = nodes.Name(self._frame, "load")
                value = call("call", value, frame, *self._arguments(keywords=True))
                continue
            value = self._dotted(value) if self.take(".") else self._indexed(value)
        return value

    def _dotted(self, value: nodes.Expr) -> nodes.Expr:
        token = self._token
        if token is None or token.kind is not TokenKind.NAME:
            raise self.error("expected a name behind `.`")
        if token.text in _LITERALS:
            raise self.refused(refusals.LITERAL_MEMBER, token.text)
        self._at += 1
        return self._member(value, token.text)

    def _indexed(self, value: nodes.Expr) -> nodes.Expr:
        self._at += 1
        if self.peek(":"):
            raise self.refused(refusals.SLICE)
        key = self.expression()
        if self.peek(":"):
            raise self.refused(refusals.SLICE)
        self.expect("]")
        if isinstance(key, nodes.Const) and isinstance(key.value, str):
            return self._member(value, key.value)
        return self._operation("member", value, key)

    def _key(self, name: str) -> str:
        """Return a key that is written as text, unless it is refused."""
        if name in RESERVED:
            raise self.refused(refusals.RESERVED, name)
        return name

    def _member(self, value: nodes.Expr, name: str) -> nodes.Expr:
        """Return a look-up, or the call of a method if a parenthesis follows."""
        self._key(name)
        if not self.take("("):
            return self._operation("member", value, constant(name))
        if name not in methods.METHODS and not (self._compat and name in cookiecutter.METHODS):
            raise self.refused(refusals.METHOD, name)
        self.changes_lists |= name in methods.CHANGING or name in cookiecutter.CHANGING
        return self._operation("method", value, constant(name), *self._arguments())

    def _arguments(self, *, keywords: bool = False) -> list[nodes.Expr]:
        """Read arguments up to the closing parenthesis; the opening one has been read."""
        arguments: list[nodes.Expr] = []
        pairs: list[nodes.Pair] = []
        while not self.take(")"):
            if arguments or pairs:
                self.expect(",")
            token = self._token
            if token and token.kind is TokenKind.NAME and self._follows("="):
                if not keywords or token.text in _LITERALS:
                    raise self.refused(refusals.KEYWORD_IN_CALL)
                self._at += 2
                pairs.append(nodes.Pair(constant(token.text), self.expression()))
            else:
                arguments.append(self.expression())
        return [*arguments, call("keywords", nodes.Dict(pairs))] if pairs else arguments

    def signature(self) -> tuple[list[str], list[tuple[str, nodes.Expr]]]:
        """
        Read a macro's parameters; return names, and names with their defaults.

        Raises:
            RenderError: They are malformed.
            UnsupportedError: Two have the same name, or one is called ``caller``.
        """
        names: list[str] = []
        defaults: list[tuple[str, nodes.Expr]] = []
        while not self.take(")"):
            if names or defaults:
                self.expect(",")
            name = self.name()
            if name in {"caller", *names, *(default_name for default_name, _ in defaults)}:
                raise self.refused(refusals.PARAMETER, name)
            if self.take("="):
                defaults.append((name, self.expression()))
            else:
                names.append(name)
        return names, defaults

    def _aggregate(self, mark: str) -> nodes.Expr:
        if mark == "(":
            self._at += 1
            values = self._series(")", self.expression)
            if not values:
                raise self.error("nothing between the parentheses")
            return values[0] if len(values) == 1 else call("last", values[0], *values[1:])
        if mark == "[":
            self._at += 1
            return nodes.List(self._series("]", self.expression))
        if mark == "{":
            self._at += 1
            return nodes.Dict(self._series("}", self._pair))
        raise self.error(f"unexpected `{mark}`")

    def _series(self, end: str, read: Callable[[], NodeT]) -> list[NodeT]:
        series: list[NodeT] = []
        while not self.take(end):
            if series:
                self.expect(",")
            series.append(read())
        return series

    def _pair(self) -> nodes.Pair:
        token = self._token
        if token is None or token.kind is TokenKind.OPERATOR:
            raise self.error("expected a key")
        if token.kind is TokenKind.NUMBER:
            raise self.refused(refusals.NUMBER_KEY)
        if token.kind is TokenKind.NAME and token.text in _LITERALS:
            raise self.refused(refusals.LITERAL_KEY)
        self._at += 1
        self.expect(":")
        return nodes.Pair(constant(self._key(token.text)), self.expression())
