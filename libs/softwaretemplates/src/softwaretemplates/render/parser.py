"""
Parse a whole template: literal text, ``${{ }}`` and every tag of Nunjucks except loading ones.

Emits Jinja2's syntax tree. Each statement has a number, which is stored as Jinja2's line number;
the table ``statements`` maps it to line, column and source. Scopes are ``scopes.Frame`` objects in
variables ``f0``, ``f1``…, one per nested loop, because Nunjucks' ``set`` writes to outer scopes,
which Jinja2's variables cannot. What renders to a value of its own (macros, call, filter and set
blocks, blocks) becomes a separate tree, a *body*, which runs with the scope it needs.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import ClassVar

from jinja2 import nodes

from softwaretemplates.render import refusals
from softwaretemplates.render.grammar import ExpressionParser
from softwaretemplates.render.lexer import Delimiters, Lexer, Literal, Tag
from softwaretemplates.render.precedence import call, constant
from softwaretemplates.render.refusals import (
    LimitError,
    Position,
    RenderError,
    UnsupportedConstruct,
    UnsupportedError,
)

__all__ = ["BLOCKS_MAX", "LOOPS_MAX", "TAGS"]

BLOCKS_MAX, LOOPS_MAX = 40, 12
"""Deepest nesting of blocks, and of loops among them (CPython compiles at most 20)."""
TAGS = (
    "if", "elif", "elseif", "else", "for", "set", "macro", "call", "filter", "switch", "case",
    "default", "block", "raw", "verbatim",
)  # fmt: skip
"""Every tag that can be rendered."""


@dataclass(frozen=True, slots=True)
class Statement:
    """Position and source of a piece of a template."""

    position: Position
    source: str


@dataclass(slots=True)
class Parsed:
    """A template as Jinja2 trees, the whole one last, and its statements by number (from 1)."""

    bodies: list[nodes.Template]
    statements: list[Statement] = field(default_factory=list)
    sole_expression: bool = False
    """The template is exactly one ``${{ }}`` and nothing else."""
    sole_block: bool = False
    """The template is exactly one block (``{% if %}`` to ``{% endif %}``), and is captured."""
    changes_lists: bool = False
    """A method that changes a list in place is called."""


@dataclass(frozen=True, slots=True)
class _Place:
    """Restrictions at the parser's position: the words that complete a refusal, or ""."""

    sets: str = ""
    macros: str = ""
    blocks: str = ""
    in_block: bool = False
    stale: frozenset[str] = frozenset()
    """Names whose values are left over from a loop."""


class TemplateParser:
    """Parses one template into trees. `capture` keeps the value of a sole expression or block."""

    def __init__(self, source: str, delimiters: Delimiters, *, capture: bool = False) -> None:
        self._source, self._compat = source, delimiters.cookiecutter
        parts = list(Lexer(source, delimiters).parts())
        self.sole = len(parts) == 1 and isinstance(parts[0], Tag) and not parts[0].block
        self._capture = capture
        self._prints: list[nodes.Filter] = []
        """The outputs that go straight into the template's text."""
        self._separated = 0
        self._parts: Iterator[Literal | Tag] = iter(parts)
        self._statements: list[Statement] = []
        self._bodies: list[nodes.Template] = []
        self._loops, self._blocks, self._switches = 0, 0, 0
        self._names: set[str] = set()
        self._place = _Place()
        self._readers: list[ExpressionParser] = []
        self._stop: Tag | None = None

    def parse(self) -> Parsed:
        """
        Parse the whole template.

        Raises:
            RenderError: It is malformed.
            UnsupportedError: It uses a construct outside the common language.
            LimitError: It is nested too deeply.
        """
        body = self._body(())
        self._keep(body)
        is_block = self._capture and len(body) == 1 and not self.sole and bool(self._readers)
        if self._capture and (self.sole or is_block):
            for node in self._prints:
                node.name = "capture" if self.sole else "encode"
        changes = any(reader.changes_lists for reader in self._readers)
        return Parsed(self._bodies, self._statements, self.sole, is_block, changes)

    def _keep(self, body: list[nodes.Node]) -> nodes.Expr:
        """Store a body; return its number as a node."""
        self._bodies.append(nodes.Template(body, lineno=1))
        return constant(len(self._bodies) - 1)

    def _statement(self, tag: Tag | Literal) -> int:
        source = tag.source if isinstance(tag, Tag) else ""
        position = Position.at(self._source, tag.offset)
        self._statements.append(Statement(position, " ".join(source.split())))
        return len(self._statements)

    @property
    def _frame(self) -> nodes.Expr:
        return nodes.Name(f"f{self._loops}", "load")

    def _expressions(self, tag: Tag) -> ExpressionParser:
        reader = ExpressionParser(
            tag,
            self._source,
            f"f{self._loops}",
            compat=self._compat,
            stale=self._place.stale,
        )
        self._readers.append(reader)
        return reader

    def _body(self, ends: tuple[str, ...]) -> list[nodes.Node]:
        """Read up to one of the tags in `ends`, which is then in `self._stop`."""
        self._blocks += 1
        if self._blocks > BLOCKS_MAX:
            raise LimitError(f"blocks nested deeper than {BLOCKS_MAX} levels")
        body: list[nodes.Node] = []
        self._stop = None
        for piece in self._parts:
            if isinstance(piece, Literal):
                number = self._statement(piece)
                body.append(nodes.Output([nodes.TemplateData(piece.text)], lineno=number))
            elif not piece.block:
                body.append(self._output(piece))
            elif piece.tokens and piece.tokens[0].text in ends:
                self._stop = piece
                break
            else:
                body.append(self._tag(piece))
        else:
            self._stop = None
        self._blocks -= 1
        return body

    def _output(self, tag: Tag) -> nodes.Node:
        reader = self._expressions(tag)
        value = reader.expression()
        if reader.peek(","):
            raise reader.refused(refusals.LIST_IN_TAG)
        reader.end()
        return self._printed(tag, call("print", value))

    def _printed(self, tag: Tag, value: nodes.Filter) -> nodes.Node:
        number = self._statement(tag)
        value.lineno = number
        if not self._separated:
            self._prints.append(value)
        return nodes.Output([value], lineno=number)

    def _statement_node(self, tag: Tag, value: nodes.Expr) -> nodes.Node:
        return nodes.ExprStmt(value, lineno=self._statement(tag))

    def _tag(self, tag: Tag) -> nodes.Node:
        name = tag.tokens[0].text if tag.tokens else ""
        reader = self._expressions(tag)
        read = self._READERS.get(name)
        if read is None:
            raise RenderError(
                f"there is no tag `{name}` here: `{tag.source}`",
                Position.at(self._source, tag.offset),
                hint=f"tags: {', '.join(TAGS)}; literal text goes between raw and endraw",
            )
        reader.take(name)
        return read(self, tag, reader)

    def _closing(self, tag: Tag, end: str) -> Tag:
        if self._stop is None:
            position = Position.at(self._source, tag.offset)
            raise RenderError(f"`{tag.source}` without `{{% {end} %}}`", position)
        if self._stop.tokens[0].text == end:
            closer = self._expressions(self._stop)
            closer.take(end)
            closer.end()
        return self._stop

    def _refused(self, tag: Tag, refusal: UnsupportedConstruct, name: str) -> UnsupportedError:
        return UnsupportedError(
            f"{refusal.problem(name)} in `{tag.source}`",
            Position.at(self._source, tag.offset),
            hint=refusal.way_out(name),
        )

    def _inside(self, end: str, tag: Tag, **restrictions: str | frozenset[str]) -> list[nodes.Node]:
        """Read a body up to its closing tag, with additional restrictions."""
        before = self._place
        self._place = replace(before, **restrictions)  # type: ignore[arg-type]  # fields of _Place
        body = self._body((end,))
        self._place = before
        self._closing(tag, end)
        return body

    # --- conditions

    def _if(self, tag: Tag, reader: ExpressionParser) -> nodes.Node:
        number = self._statement(tag)
        test = call("truthy", reader.expression())
        reader.end()
        node = nodes.If(test, self._body(_BRANCHES), [], [], lineno=number)
        while (stop := self._closing(tag, "endif")).tokens[0].text != "endif":
            branch = self._expressions(stop)
            if branch.take("else"):
                branch.end()
                node.else_ = self._body(("endif",))
            else:
                branch.take("elif", "elseif")
                at = self._statement(stop)
                other = call("truthy", branch.expression())
                branch.end()
                node.elif_.append(nodes.If(other, self._body(_BRANCHES), [], [], lineno=at))
        return node

    def _switch(self, tag: Tag, reader: ExpressionParser) -> nodes.Node:
        number = self._statement(tag)
        self._switches += 1
        subject = f"s{self._switches}"
        kept = nodes.Assign(nodes.Name(subject, "store"), reader.expression(), lineno=number)
        reader.end()
        place_before = self._place
        self._place = replace(place_before, blocks="inside a switch")
        gap = self._body(_CASES)
        first = self._closing(tag, "endswitch")
        if gap:
            raise self._refused(tag, refusals.SWITCH_HEAD, "")
        if first.tokens[0].text != "case":
            raise self._refused(first, refusals.SWITCH_CASES, "")
        branches, otherwise = self._cases(tag, subject)
        self._place = place_before
        chain = branches[0]
        chain.elif_, chain.else_ = branches[1:], otherwise
        return nodes.Scope([kept, chain], lineno=number)

    def _cases(self, tag: Tag, subject: str) -> tuple[list[nodes.If], list[nodes.Node]]:
        """Read all cases and the default; empty cases fall through to the next."""
        branches: list[nodes.If] = []
        tests: list[nodes.Expr] = []
        while (stop := self._closing(tag, "endswitch")).tokens[0].text == "case":
            at = self._statement(stop)
            reader = self._expressions(stop)
            reader.take("case")
            tests.append(call("same", nodes.Name(subject, "load"), reader.expression()))
            reader.end()
            body = self._body(_CASES)
            if body:
                branches.append(nodes.If(_any(tests), body, [], [], lineno=at))
                tests = []
            elif self._stop is not None and self._stop.offset != stop.end:
                raise self._refused(stop, refusals.SWITCH_GAP, "")
        otherwise: list[nodes.Node] = []
        if stop.tokens[0].text == "default":
            reader = self._expressions(stop)
            reader.take("default")
            reader.end()
            otherwise = self._body(("endswitch",))
            self._closing(tag, "endswitch")
        if tests:  # the last cases are empty: parsed for their errors, then the default applies
            judged = call("untrue", nodes.List(tests))
            branches.append(nodes.If(judged, [], [], [], lineno=self._statement(stop)))
        return branches, otherwise

    # --- loops

    def _for(self, tag: Tag, reader: ExpressionParser) -> nodes.Node:
        number = self._statement(tag)
        names = [reader.name()]
        while reader.take(","):
            names.append(reader.name())
        if "loop" in names:
            raise reader.refused(refusals.LOOP_NAME)
        if twice := next((name for name in names if names.count(name) > 1), None):
            raise reader.refused(refusals.LOOP_NAME_TWICE, twice)
        reader.expect("in")
        sequence = reader.expression()
        reader.end()
        if self._loops >= LOOPS_MAX:
            raise LimitError(
                f"loops nested deeper than {LOOPS_MAX} levels",
                Position.at(self._source, tag.offset),
            )
        steps = call("loop", self._frame, sequence, *map(constant, names))
        place_before = self._place
        self._place = replace(
            place_before,
            blocks=place_before.blocks or ("inside a loop with several names" if names[1:] else ""),
            sets=place_before.sets or ("in a loop inside a block" if place_before.in_block else ""),
        )
        self._loops += 1
        target = nodes.Name(f"f{self._loops}", "store")
        body = self._body(("else", "endfor"))
        self._loops -= 1
        otherwise: list[nodes.Node] = []
        if self._closing(tag, "endfor").tokens[0].text == "else" and self._stop:
            closer = self._expressions(self._stop)
            closer.take("else")
            closer.end()
            otherwise = self._inside(
                "endfor",
                tag,
                sets="in the else part of a loop",
                macros="in a loop's else part",
                blocks="in a loop's else part",
                stale=place_before.stale | frozenset(names),
            )
        self._place = place_before
        return nodes.For(target, steps, body, otherwise, None, False, lineno=number)  # noqa: FBT003 - a node's fields

    # --- variables

    def _set(self, tag: Tag, reader: ExpressionParser) -> nodes.Node:
        if self._place.sets:
            raise self._refused(tag, refusals.SET_HERE, self._place.sets)
        names = [reader.name()]
        while reader.take(","):
            names.append(reader.name())
        keys = [constant(name) for name in names]
        if reader.take("="):
            value = reader.expression()
            reader.end()
            return self._statement_node(tag, call("assign", self._frame, value, *keys))
        reader.end()
        if tag.source.endswith("-%}"):
            raise self._refused(tag, refusals.SET_DASH, "")
        frame = self._frame
        body = self._separate(
            "endset", tag, macros="inside a set block", blocks="inside a set block"
        )
        return self._statement_node(tag, call("assign_text", frame, body, *keys))

    def _separate(self, end: str, tag: Tag, **restrictions: str) -> nodes.Expr:
        """Read a body that runs on its own; return its number as a node."""
        loops, self._loops = self._loops, 0
        self._separated += 1
        body = self._inside(end, tag, **restrictions)
        self._separated -= 1
        self._loops = loops
        return self._keep(body)

    def _filter(self, tag: Tag, reader: ExpressionParser) -> nodes.Node:
        body = nodes.Const(0)
        value = reader.filter_of(call("text", self._frame, body))
        reader.end()
        context = "inside a filter block"
        number = self._separate("endfilter", tag, macros=context, blocks=context, sets=context)
        body.value = number.as_const()
        return self._printed(tag, call("print", value))

    # --- macros

    def _macro(self, tag: Tag, reader: ExpressionParser) -> nodes.Node:
        if self._place.macros:
            raise self._refused(tag, refusals.MACRO_HERE, self._place.macros)
        name = reader.name()
        if name == "loop" and self._loops:
            raise reader.refused(refusals.LOOP_NAME)
        reader.expect("(")
        names, defaults, preamble = self._parameters(tag, reader)
        reader.end()
        context = "inside a macro"
        body = self._separate_after(
            preamble, "endmacro", tag, macros=context, blocks=context, sets=""
        )
        node = call("macro", self._frame, constant(name), body, _texts(names), _texts(defaults))
        return self._statement_node(tag, node)

    def _parameters(
        self, tag: Tag, reader: ExpressionParser
    ) -> tuple[list[str], list[str], list[nodes.Node]]:
        """Read the parameters; return names, names with defaults, and nodes that set defaults."""
        inner = ExpressionParser(tag, self._source, "f0", compat=self._compat)
        inner.continue_at(reader)
        names, defaults = inner.signature()
        reader.continue_at(inner)
        self._readers.append(inner)
        scope = nodes.Name("f0", "load")
        number = self._statement(tag)
        preamble: list[nodes.Node] = []
        for name, default in defaults:
            key = constant(name)
            otherwise = nodes.ExprStmt(call("parameter", scope, default, key), lineno=number)
            preamble.append(nodes.If(call("given", scope, key), [], [], [otherwise], lineno=number))
        return names, [name for name, _ in defaults], preamble

    def _separate_after(
        self, preamble: list[nodes.Node], end: str, tag: Tag, **restrictions: str
    ) -> nodes.Expr:
        number = self._separate(end, tag, **restrictions)
        body = self._bodies[number.as_const()]
        body.body = [*preamble, *body.body]
        return number

    def _call(self, tag: Tag, reader: ExpressionParser) -> nodes.Node:
        names: list[str] = []
        defaults: list[str] = []
        preamble: list[nodes.Node] = []
        if reader.take("("):
            names, defaults, preamble = self._parameters(tag, reader)
        callee = reader.expression()
        reader.end()
        if not isinstance(callee, nodes.Filter) or callee.name != "call" or callee.node is None:
            raise self._refused(tag, refusals.CALL_TARGET, "an expression")
        context = "inside a call block"
        body = self._separate_after(
            preamble, "endcall", tag, macros=context, blocks=context, sets=context
        )
        content = call("caller", self._frame, body, _texts(names), _texts(defaults))
        wrapped = call("call_with", callee.node, *callee.args[:1], content, *callee.args[1:])
        return self._printed(tag, call("print", wrapped))

    def _block(self, tag: Tag, reader: ExpressionParser) -> nodes.Node:
        if self._place.blocks:
            raise self._refused(tag, refusals.BLOCK_HERE, self._place.blocks)
        name = reader.name()
        reader.end()
        if name in self._names:
            raise RenderError(
                f"the block `{name}` is there twice", Position.at(self._source, tag.offset)
            )
        self._names.add(name)
        place_before, loops_before = self._place, self._loops
        self._place = replace(place_before, macros="inside a block", in_block=True)
        self._loops = 0
        body = self._body(("endblock",))
        self._place, self._loops = place_before, loops_before
        if self._stop is not None and len(self._stop.tokens) == 2:  # noqa: PLR2004 - endblock name
            closer = self._expressions(self._stop)
            closer.take("endblock")
            closer.expect(name)
            closer.end()
        else:
            self._closing(tag, "endblock")
        printed = call("block", self._frame, self._keep(body))
        return nodes.Output([printed], lineno=self._statement(tag))

    _READERS: ClassVar = {
        "if": _if, "for": _for, "set": _set, "switch": _switch, "filter": _filter,
        "macro": _macro, "call": _call, "block": _block,
    }  # fmt: skip


_BRANCHES = ("elif", "elseif", "else", "endif")
_CASES = ("case", "default", "endswitch")


def _any(tests: list[nodes.Expr]) -> nodes.Expr:
    test_node = tests[-1]
    for test in reversed(tests[:-1]):
        test_node = nodes.Or(test, test_node)
    return test_node


def _texts(names: list[str]) -> nodes.Expr:
    return nodes.Tuple([constant(name) for name in names], "load")
