"""
What rendering refuses: the errors, and a table of constructs with the reason and the way out.

    RenderError            exit 2    the template, or what it does with the values, is wrong
      UndefinedValueError  exit 2    a value that was never passed reaches the output
      UnsupportedError     exit 2    the construct differs between engines, or is not ours yet
      LimitError           exit 2    the template is too large, too deep or runs too long

Each error has the position in the template, the problem and the way out. Operations on values raise
``OperationFault``; the engine adds the position.

Every refusal of the parser and of operations on values refers to an entry of the table, and
``docs/rendering.md`` is generated from it (``scripts/rendering_docs.py``), so page and code cannot
disagree. A construct is listed because Nunjucks 3.2.4 and Nunjitsu 0.7.0 read it differently,
because one of them lacks it, or because our implementation cannot be exact.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

from ground.errors import UsageError

__all__ = ["CASES", "UnsupportedConstruct", "table"]

_DIFFER = "the engines of different Backstage releases give different results"
_ONLY_NUNJUCKS = "Nunjitsu (Backstage >= 4.0.3) has none"


@dataclass(frozen=True, slots=True)
class UnsupportedConstruct:
    """A construct that is refused. `what` may contain one ``{}`` for a name."""

    construct: str
    why: str
    instead: str
    early: bool = True
    """Refused before rendering; otherwise it depends on the values."""

    def problem(self, name: str = "") -> str:
        """Return the sentence that an error shows."""
        return f"{self.construct.replace('{}', name)} is refused: {self.why}"

    def way_out(self, name: str = "") -> str:
        """Return what to write instead."""
        return self.instead.replace("{}", name)


# --- syntax

SLICE = UnsupportedConstruct(
    "a slice `x[1:3]`",
    "Nunjucks has none, Nunjitsu returns a list, also for text",
    "use `first`, `last` or `.slice(1, 3)`, which both have",
)
REGEX = UnsupportedConstruct(
    "a regular expression `r/…/`",
    "JavaScript and Python match differently, and a hostile one never ends",
    "use `| replace(a, b)` with texts, or compute the value before rendering",
)
NAME = UnsupportedConstruct(
    "the name {}",
    f"for numbers such as 1e3 or 0x10 and letters beyond ASCII {_DIFFER}",
    "use ASCII letters, digits and '_' in names, and decimal numbers; "
    'reach other keys by `values["the-key"]`',
)
LITERAL_MEMBER = UnsupportedConstruct(
    "the member '{}'", "Nunjucks reads it as a literal and fails", 'write ["{}"]'
)
NUMBER_DOT = UnsupportedConstruct(
    "a number that ends with a dot", f"with what may stand behind it {_DIFFER}", "write 1 or 1.0"
)
TWO_SIGNS = UnsupportedConstruct(
    "two signs in a row", "`--x` is a decrement in the code Nunjucks writes", "write one"
)
NUMBER_KEY = UnsupportedConstruct("a number as a map's key", "Nunjucks fails", "quote it")
LITERAL_KEY = UnsupportedConstruct("true, false or none as a map's key", _DIFFER, "quote it")
LIST_IN_TAG = UnsupportedConstruct(
    "a list of expressions in one tag", "both engines fail", "write one tag each"
)
METHOD = UnsupportedConstruct(
    "the method '{}'",
    f"one of JavaScript's; {_ONLY_NUNJUCKS}",
    "use a filter, for example `| replace(a, b)`; the table of methods shows what both have",
)
KEYWORD_IN_CALL = UnsupportedConstruct(
    "a keyword argument here",
    "Nunjitsu takes keywords in macros and built-in filters only",
    "pass it by position",
)
TEST = UnsupportedConstruct(
    "the test '{}'", "neither engine has it", "the table of tests shows what both have"
)
FILTER = UnsupportedConstruct(
    "the filter '{}'", "its result is random", "compute the value before rendering"
)
COOKIECUTTER_FILTER = UnsupportedConstruct(
    "the filter '{}' with cookiecutterCompat",
    "old releases of Backstage have it only without",
    "compute the value before rendering",
)

# --- tags

EMPTY_RAW_BEHIND = UnsupportedConstruct(
    "a line break inside the closing tag of raw", "Nunjitsu fails", "write {% endraw %} in one line"
)
SWITCH_HEAD = UnsupportedConstruct(
    "anything between `switch` and the first `case`",
    "Nunjucks drops it, Nunjitsu fails",
    "close the gap with dashes: {% switch x -%} … {%- case 1 %}",
)
SWITCH_CASES = UnsupportedConstruct(
    "a switch whose first part is no `case`", _DIFFER, "begin with a case, or use if"
)
SWITCH_GAP = UnsupportedConstruct(
    "a case with nothing in it but blanks that are trimmed",
    "Nunjucks ends there, Nunjitsu falls through",
    "write the two tags side by side, or something between them",
)
SET_DASH = UnsupportedConstruct(
    "`-%}` at the opening tag of a set block",
    "Nunjucks keeps the blanks behind it, Nunjitsu trims them",
    "put the dash at the other tags, or use `| trim`",
)
SET_HERE = UnsupportedConstruct(
    "`set` {}",
    f"where the variable ends up, {_DIFFER}",
    "set it before, or use another name",
)
MACRO_HERE = UnsupportedConstruct(
    "a macro {}", f"who sees it, {_DIFFER}", "define macros at the top of the file"
)
BLOCK_HERE = UnsupportedConstruct(
    "a block {}", "Nunjucks compiles it to code that fails or sees other names", "drop the block"
)
LOOP_NAME = UnsupportedConstruct(
    "a loop's variable or macro called `loop`", "one of the engines fails", "give it another name"
)
PARAMETER = UnsupportedConstruct(
    "the parameter '{}' of a macro",
    "a second parameter of that name, or one called `caller`, is bound differently",
    "give it another name",
)
LOOP_NAME_TWICE = UnsupportedConstruct(
    "a loop with two variables called '{}'",
    "which of the two values it holds depends on what the loop goes through",
    "give each variable a name of its own",
)
CALL_TARGET = UnsupportedConstruct(
    "a call block for '{}'",
    "Nunjitsu calls macros only",
    "call a macro by its name",
    early=False,
)
ELSE_NAME = UnsupportedConstruct(
    "the loop's variable '{}' in its else part",
    "it holds what an earlier run of the loop has left",
    "use another name",
)
RESERVED = UnsupportedConstruct(
    "the name '{}'",
    "Nunjitsu rejects it, because every JavaScript object has it",
    "give the key another name",
)
RAW_DASH = UnsupportedConstruct(
    "a tag with `-` behind a raw block that ends with blanks",
    "Nunjitsu trims them too, Nunjucks does not",
    "drop the dash, or end the raw block without blanks",
)
PLUS_TAG = UnsupportedConstruct("`{%+`", "it is Jinja's; both engines fail", "write `{%`")

# --- values

LENGTH_LOOP = UnsupportedConstruct(
    "a loop with one name over a map that has a key 'length'",
    "JavaScript takes the map for a list of that length",
    "write `for key, value in map`",
    early=False,
)
PAIRS_LOOP = UnsupportedConstruct(
    "a loop with three names or more over a map",
    f"for the third name {_DIFFER}",
    "write `for key, value in map`",
    early=False,
)
RAGGED_MAP = UnsupportedConstruct(
    "counting or listing the keys of what parseRepoUrl returns",
    "newer releases have all keys, with undefined, older ones those that are given",
    "use its members: `.owner`, `.repo`",
    early=False,
)
HALF_CHARACTER = UnsupportedConstruct(
    "taking text with characters above U+FFFF apart",
    "JavaScript cuts such a character into two halves",
    "pass the parts as a list",
    early=False,
)
SAFE_VALUE = UnsupportedConstruct(
    "the result of a macro, of `safe` or of `escape` in {}",
    "it is an object in JavaScript, and the engines differ about its parts",
    "join it with a text first: `x ~ ''`",
    early=False,
)
FUNCTION_VALUE = UnsupportedConstruct(
    "a function as a value in {}",
    "Nunjucks prints its source, Nunjitsu fails",
    "call it: add parentheses",
    early=False,
)
OBJECT_MEMBER = UnsupportedConstruct(
    "the member '{}'",
    "every JavaScript object of that kind has one; Nunjucks finds it, Nunjitsu does not",
    "give the key another name",
    early=False,
)
MIXED_ORDER = UnsupportedConstruct(
    "sorting values of different kinds in '{}'",
    "JavaScript's order of them depends on the engine and on where they stand",
    "sort texts or numbers only",
    early=False,
)
NOT_JSON = UnsupportedConstruct(
    "a value of '{}' that JSON has not: NaN, Infinity or minus zero",
    "older releases of Backstage make null or 0 of it, newer ones keep it",
    "compute the number behind the filter, or read the member by `.name`",
    early=False,
)
ESCAPED_BACKSLASH = UnsupportedConstruct(
    "`escape` of a text with a backslash",
    "Backstage up to 4.0.2 leaves it, newer releases write `&#92;`",
    r"take it out first: `x | replace('\\', '/') | escape`",
    early=False,
)
SET_MACRO = UnsupportedConstruct(
    "`set` of the name '{}', which is a macro of this loop,",
    "Nunjitsu also sets a variable of that name outside the loop",
    "use another name",
    early=False,
)
STALE_MACRO = UnsupportedConstruct(
    "the macro '{}' before the round of the loop defines it",
    "Nunjucks finds the macro of the round before, Nunjitsu does not",
    "define the macro at the top of the file",
    early=False,
)
NESTED_TAGS = UnsupportedConstruct(
    "`striptags` of tags inside tags",
    "Nunjitsu strips them again, Nunjucks does not",
    "clean the text before rendering",
    early=False,
)
DYNAMIC_NAME = UnsupportedConstruct(
    "the name '{}' inside a call block",
    "Nunjucks finds the macro's own variable of that name, Nunjitsu the one around the block",
    "give one of them another name",
    early=False,
)
UNDEFINED_DEFAULT = UnsupportedConstruct(
    "an undefined argument for the parameter '{}'",
    "Nunjucks looks further outside for a variable of that name",
    "give the argument a default",
    early=False,
)
UNDEFINED_VARIABLE = UnsupportedConstruct(
    "`set` of the variable '{}', which is undefined here or outside,",
    "Nunjucks looks past an undefined variable, Nunjitsu does not",
    "give the value a default",
    early=False,
)
ROUNDED_POWER = UnsupportedConstruct(
    "a power with a rounded result",
    "JavaScript leaves its last digits to the engine",
    "compute it before rendering",
    early=False,
)
BIG_INTEGER = UnsupportedConstruct(
    "a whole number beyond 2^53 in another base than ten",
    "JavaScript leaves the digits to the engine",
    "pass it as text",
    early=False,
)
FRACTION_RADIX = UnsupportedConstruct(
    "a fraction in another base than ten",
    "JavaScript leaves the digits to the engine",
    "round it first",
    early=False,
)
ARGUMENTS = UnsupportedConstruct(
    "this argument of '{}'",
    f"with it {_DIFFER}",
    "pass whole numbers, texts or lists as the table says",
    early=False,
)
METHOD_ARGUMENTS = UnsupportedConstruct(
    "`.{}()` with so many arguments", "Nunjitsu fails", "pass fewer", early=False
)
COMPAT_MEMBER = UnsupportedConstruct(
    "the key '{}' with cookiecutterCompat",
    "old releases find Python's method of that name, newer ones the data",
    "give the key another name",
    early=False,
)
COMPAT_FAILED = UnsupportedConstruct(
    "`.{}()` of something that is not in the list",
    "Nunjucks fails, Nunjitsu returns -1 or nothing",
    "ask with `in` first",
    early=False,
)
DOLLAR = UnsupportedConstruct(
    "`$` in the replacement of .replace()",
    "it has a meaning of its own in JavaScript",
    "use `| replace(a, b)`",
    early=False,
)


CASES: Mapping[str, str] = {
    "SLICE": "${{ values.l[1:2] }}",
    "REGEX": "${{ values.s | replace(r/a/g, 'b') }}",
    "NAME": "${{ 1e3 }}",
    "LITERAL_MEMBER": "${{ values.none }}",
    "NUMBER_DOT": "${{ 1. }}",
    "TWO_SIGNS": "${{ --1 }}",
    "NUMBER_KEY": "${{ {1: 'a'} }}",
    "LITERAL_KEY": "${{ {true: 'a'} }}",
    "LIST_IN_TAG": "${{ 'a', 'b' }}",
    "METHOD": "${{ values.s.padStart(9) }}",
    "KEYWORD_IN_CALL": "${{ values.s.split(separator=',') }}",
    "TEST": "${{ 1 is boolean }}",
    "FILTER": "${{ values.l | random }}",
    "COOKIECUTTER_FILTER": "{{ cookiecutter.s | parseRepoUrl }}",
    "EMPTY_RAW_BEHIND": "{% raw %}a{% endraw\n%}",
    "SWITCH_HEAD": "{% switch 1 %} {% case 1 %}a{% endswitch %}",
    "SWITCH_CASES": "{% switch 1 %}{% default %}a{% endswitch %}",
    "SWITCH_GAP": "{% switch 1 %}{% case 1 -%} {%- case 2 %}b{% endswitch %}",
    "SET_DASH": "{% set x -%} a{% endset %}",
    "SET_HERE": "{% filter upper %}{% set x = 1 %}{% endfilter %}",
    "MACRO_HERE": "{% block b %}{% macro m() %}{% endmacro %}{% endblock %}",
    "BLOCK_HERE": "{% switch 1 %}{% case 1 %}{% block b %}{% endblock %}{% endswitch %}",
    "LOOP_NAME": "{% for loop in [1] %}{% endfor %}",
    "PARAMETER": "{% macro m(a, a) %}{% endmacro %}",
    "LOOP_NAME_TWICE": "{% for a, b, a in 'xy' %}${{ a }}{% endfor %}",
    "CALL_TARGET": "{% call range() %}{% endcall %}",
    "ELSE_NAME": "{% for x in [] %}{% else %}${{ x }}{% endfor %}",
    "RESERVED": "${{ values.constructor }}",
    "RAW_DASH": "{% raw %}a {% endraw %}{%- if true %}{% endif %}",
    "PLUS_TAG": "{%+ if true %}{% endif %}",
    "LENGTH_LOOP": "{% for x in {'length': 2} %}{% endfor %}",
    "PAIRS_LOOP": "{% for a, b, c in values.o %}{% endfor %}",
    "RAGGED_MAP": "${{ 'host?repo=r' | parseRepoUrl | length }}",
    "HALF_CHARACTER": "${{ '\U0001f600' | first }}",
    "SAFE_VALUE": "${{ values.s | safe | list }}",
    "FUNCTION_VALUE": "${{ range }}",
    "OBJECT_MEMBER": "${{ values.s.trim }}",
    "MIXED_ORDER": "${{ ['a', 1] | sort }}",
    "NOT_JSON": "${{ {'n': 1 / 0} | pick('n') }}",
    "ESCAPED_BACKSLASH": r"${{ '\\' | escape }}",
    "SET_MACRO": "{% for x in [1] %}{% macro m() %}{% endmacro %}{% set m = 2 %}{% endfor %}",
    "STALE_MACRO": "{% for x in [1, 2] %}{% if m %}a{% endif %}{% macro m() %}{% endmacro %}"
    "{% endfor %}",
    "NESTED_TAGS": "${{ '<<b>b>' | striptags }}",
    "DYNAMIC_NAME": "{% macro m(a) %}${{ caller() }}{% endmacro %}"
    "{% call m(1) %}${{ a }}{% endcall %}",
    "UNDEFINED_DEFAULT": "{% macro m(values=1) %}${{ values }}{% endmacro %}${{ m(values=q) }}",
    "UNDEFINED_VARIABLE": "{% set y = q %}{% for x in [1] %}{% set y = 2 %}{% endfor %}${{ y }}",
    "ROUNDED_POWER": "${{ 2 ** 0.5 }}",
    "BIG_INTEGER": "${{ 'ffffffffffffffff' | int(0, 16) }}",
    "FRACTION_RADIX": "${{ (1.5).toString(2) }}",
    "ARGUMENTS": "${{ [1] | select('odd', 2) }}",
    "METHOD_ARGUMENTS": "${{ values.s.trim(1) }}",
    "COMPAT_MEMBER": "{{ cookiecutter.o.items }}",
    "COMPAT_FAILED": "{{ cookiecutter.l.index('z') }}",
    "DOLLAR": "${{ values.s.replace('t', '$') }}",
}
"""For each entry, a template that is refused because of it."""


def table() -> dict[str, UnsupportedConstruct]:
    """Return every entry by its name, in the order of the file."""
    return {
        name: value for name, value in globals().items() if isinstance(value, UnsupportedConstruct)
    }


@dataclass(frozen=True, slots=True)
class Position:
    """A position in a template: line and column, both from 1."""

    line: int
    column: int

    @classmethod
    def at(cls, source: str, offset: int) -> Self:
        """Return the position of an offset into `source`."""
        before = source[:offset]
        return cls(before.count("\n") + 1, offset - (before.rfind("\n") + 1) + 1)


class RenderError(UsageError):
    """A template cannot be rendered. Nothing was written."""

    def __init__(
        self, problem: str, position: Position | None = None, *, name: str = "", hint: str = ""
    ) -> None:
        location = f"{name or 'template'}:{position.line}:{position.column}" if position else name
        super().__init__(f"{location}: {problem}" if location else problem, hint=hint)
        self.problem, self.position, self.name = problem, position, name

    def named(self, name: str) -> Self:
        """Return the same error with the name of its file."""
        return type(self)(self.problem, self.position, name=name, hint=self.hint)


class UndefinedValueError(RenderError):
    """A value that was never passed would be printed; Backstage would print nothing."""


class UnsupportedError(RenderError):
    """Refused: the engines of different Backstage releases disagree, or ours lacks the feature."""


class LimitError(RenderError):
    """Refused: larger, deeper or longer than the limits allow."""


class OperationFault(Exception):  # noqa: N818 - the error is RenderError; this is its cause without a place
    """An operation failed on these values."""

    error: type[RenderError] = RenderError

    def __init__(self, problem: str, *, hint: str = "") -> None:
        super().__init__(problem)
        self.problem, self.hint = problem, hint


class MissingFault(OperationFault):
    """A value that was never passed is used as text or number."""

    error = UndefinedValueError


class UnsupportedFault(OperationFault):
    """The engines treat these values differently."""

    error = UnsupportedError

    @classmethod
    def of(cls, refusal: UnsupportedConstruct, name: str = "") -> Self:
        """Return the fault for an entry of the table of unsupported constructs."""
        return cls(refusal.problem(name), hint=refusal.way_out(name))


class LimitFault(OperationFault):
    error = LimitError
