"""
Parse a whole template: literal text, ``${{ }}``, ``if``, ``for``, ``set``, ``raw``.

Emits Jinja2's syntax tree. Each statement has a number that stands in the place of Jinja2's
line number; the table ``statements`` leads from there to line, column and source. Scopes are
``engine.Frame`` objects in variables ``f0``, ``f1``…, one per nested loop, because Nunjucks'
``set`` writes to outer scopes, which Jinja2's variables cannot.

Refused for now: macro, call, filter, switch, block, ``set`` with a body; they are rare in
templates (none in 75 counted), and part of the next step to exactness. Called by ``engine``.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from jinja2 import nodes

from orderkit.core.render.faults import LimitError, Position, RenderError, UnsupportedError
from orderkit.core.render.grammar import ExpressionParser, call, constant
from orderkit.core.render.lexer import Delimiters, Lexer, Literal, Tag

BLOCKS_MAX, LOOPS_MAX = 40, 12
"""Deepest nesting of blocks, and of loops among them (CPython compiles at most 20)."""
_TAGS = ("if", "for", "set", "raw", "verbatim")
_TAGS_OF_BACKSTAGE = frozenset({"macro", "call", "filter", "switch", "case", "block"})


@dataclass(frozen=True, slots=True)
class Statement:
    """Where a piece of a template stands and how it reads."""

    position: Position
    source: str


@dataclass(slots=True)
class Parsed:
    """A template as Jinja2's tree, and its statements by number (from 1)."""

    tree: nodes.Template
    statements: list[Statement] = field(default_factory=list)
    sole_expression: bool = False
    """The template is exactly one ``${{ }}`` and nothing else."""


class TemplateParser:
    """Turns one template into a tree. `capture` keeps a sole expression's value unprinted."""

    def __init__(self, source: str, delimiters: Delimiters, *, capture: bool = False) -> None:
        self._source = source
        parts = list(Lexer(source, delimiters).parts())
        self.sole = len(parts) == 1 and isinstance(parts[0], Tag) and not parts[0].block
        self._print = "capture" if capture and self.sole else "print"
        self._parts: Iterator[Literal | Tag] = iter(parts)
        self._statements: list[Statement] = []
        self._loops, self._blocks = 0, 0
        self._stop: Tag | None = None

    def parse(self) -> Parsed:
        """
        Parse the whole template.

        Raises:
            RenderError: It is malformed.
            UnsupportedError: It uses what is outside the common language.
            LimitError: It is nested too deeply.
        """
        body = self._body(())
        tree = nodes.Template(body, lineno=1)
        return Parsed(tree, self._statements, self.sole)

    def _statement(self, tag: Tag | Literal) -> int:
        source = tag.source if isinstance(tag, Tag) else ""
        position = Position.at(self._source, tag.offset)
        self._statements.append(Statement(position, " ".join(source.split())))
        return len(self._statements)

    @property
    def _frame(self) -> str:
        return f"f{self._loops}"

    def _expressions(self, tag: Tag) -> ExpressionParser:
        return ExpressionParser(tag, self._source, self._frame)

    def _body(self, ends: tuple[str, ...]) -> list[nodes.Node]:
        """Read until one of the tags in `ends`, which is then in `self._stop`."""
        self._blocks += 1
        if self._blocks > BLOCKS_MAX:
            raise LimitError(f"blocks nested deeper than {BLOCKS_MAX} levels")
        body: list[nodes.Node] = []
        for part in self._parts:
            if isinstance(part, Literal):
                number = self._statement(part)
                body.append(nodes.Output([nodes.TemplateData(part.text)], lineno=number))
            elif not part.block:
                body.append(self._output(part))
            elif part.tokens and part.tokens[0].text in ends:
                self._blocks -= 1
                self._stop = part
                return body
            else:
                body.append(self._block(part))
        self._blocks -= 1
        self._stop = None
        return body

    def _output(self, tag: Tag) -> nodes.Node:
        number = self._statement(tag)
        reader = self._expressions(tag)
        value = reader.expression()
        if reader.peek(","):
            raise reader.unsupported("a list of expressions", "write one tag for each")
        reader.end()
        printed = call(self._print, value)
        printed.lineno = number
        return nodes.Output([printed], lineno=number)

    def _block(self, tag: Tag) -> nodes.Node:
        name = tag.tokens[0].text if tag.tokens else ""
        reader = self._expressions(tag)
        if name in {"if", "for", "set"}:
            reader.take(name)
            return {"if": self._if, "for": self._for, "set": self._set}[name](tag, reader)
        position = Position.at(self._source, tag.offset)
        if name in _TAGS_OF_BACKSTAGE:
            raise UnsupportedError(
                f"the tag `{name}` is refused", position, hint=f"tags: {', '.join(_TAGS)}"
            )
        raise RenderError(
            f"there is no tag `{name}` here: `{tag.source}`",
            position,
            hint=f"tags: {', '.join(_TAGS)}; literal text goes between raw and endraw",
        )

    def _if(self, tag: Tag, reader: ExpressionParser) -> nodes.Node:
        number = self._statement(tag)
        test = call("truthy", reader.expression())
        reader.end()
        body = self._body(("elif", "elseif", "else", "endif"))
        found = nodes.If(test, body, [], [], lineno=number)
        while (stop := self._closing(tag, "endif")).tokens[0].text != "endif":
            branch = self._expressions(stop)
            if branch.take("else"):
                branch.end()
                found.else_ = self._body(("endif",))
            else:
                branch.take("elif", "elseif")
                at = self._statement(stop)
                other = call("truthy", branch.expression())
                branch.end()
                elif_body = self._body(("elif", "elseif", "else", "endif"))
                found.elif_.append(nodes.If(other, elif_body, [], [], lineno=at))
        return found

    def _closing(self, tag: Tag, end: str) -> Tag:
        if self._stop is None:
            position = Position.at(self._source, tag.offset)
            raise RenderError(f"`{tag.source}` without `{{% {end} %}}`", position)
        if self._stop.tokens[0].text == end:
            closer = self._expressions(self._stop)
            closer.take(end)
            closer.end()
        return self._stop

    def _for(self, tag: Tag, reader: ExpressionParser) -> nodes.Node:
        number = self._statement(tag)
        targets = [constant(reader.name())]
        while reader.take(","):
            targets.append(constant(reader.name()))
        reader.expect("in")
        sequence = reader.expression()
        reader.end()
        if self._loops >= LOOPS_MAX:
            raise LimitError(
                f"loops nested deeper than {LOOPS_MAX} levels",
                Position.at(self._source, tag.offset),
            )
        outer = nodes.Name(self._frame, "load")
        self._loops += 1
        target = nodes.Name(self._frame, "store")
        body = self._body(("else", "endfor"))
        otherwise: list[nodes.Node] = []
        self._closing(tag, "endfor")
        if self._stop and self._stop.tokens[0].text == "else":
            self._expressions(self._stop).take("else")
            self._loops -= 1
            otherwise = self._body(("endfor",))
            self._closing(tag, "endfor")
            if _contains_set(otherwise):
                raise UnsupportedError(
                    "`set` in the else part of a loop is refused",
                    Position.at(self._source, tag.offset),
                    hint="set it before the loop",
                )
        else:
            self._loops -= 1
        steps = call("loop", outer, sequence, *targets)
        return nodes.For(target, steps, body, otherwise, None, False, lineno=number)  # noqa: FBT003 - a node's fields

    def _set(self, tag: Tag, reader: ExpressionParser) -> nodes.Node:
        number = self._statement(tag)
        names = [reader.name()]
        while reader.take(","):
            names.append(reader.name())
        if not reader.take("="):
            raise reader.unsupported("`set` with a body", "write {% set name = value %}")
        value = reader.expression()
        reader.end()
        keys = [constant(name) for name in names]
        assigned = call("assign", nodes.Name(self._frame, "load"), value, *keys)
        return nodes.ExprStmt(assigned, lineno=number)


def _contains_set(body: list[nodes.Node]) -> bool:
    return any(isinstance(node, nodes.ExprStmt) or node.find(nodes.ExprStmt) for node in body)
