"""
The filters, tests, methods and functions that templates may use, by name.

``docs/rendering.md`` is generated from these tables. ``FILTERS_REFUSED`` lists what Backstage has
in addition. All are pure functions on JSON-like values.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from softwaretemplates.render import backstage_filters as own
from softwaretemplates.render import javascript as js
from softwaretemplates.render import list_filters as lists
from softwaretemplates.render import text_filters as texts
from softwaretemplates.render import unsupported
from softwaretemplates.render.global_functions import FUNCTIONS
from softwaretemplates.render.javascript import Function, Safe, Value
from softwaretemplates.render.methods import METHODS
from softwaretemplates.render.predicates import TESTS
from softwaretemplates.render.render_errors import UnsupportedFault
from softwaretemplates.render.scopes import Keywords

__all__ = [
    "FILTERS",
    "FILTERS_REFUSED",
    "FUNCTIONS",
    "METHODS",
    "TESTS",
    "Filter",
    "literal_number",
]


@dataclass(frozen=True, slots=True)
class Filter:
    """A filter: its function, its number of arguments, and how it treats safe text."""

    run: Callable[..., Value]
    arguments: tuple[int, int] = (0, 0)
    keywords: tuple[str, ...] = ()
    """Arguments that may be given by keyword, in order."""
    keeps_safe: bool = False
    """The result is safe text if the value is (Nunjucks' `copySafeness`)."""
    takes_safe: bool = False
    """Arguments may be safe text."""
    of_backstage: bool = False

    def bound(self, name: str) -> Callable[..., Value]:
        """Return the function that the compiled template calls."""

        def apply(value: Value, *arguments: Value) -> Value:
            if not arguments and value.__class__ is not Safe and not isinstance(value, Function):
                return self.run(value)
            return self._apply(name, value, arguments)

        return apply

    def _apply(self, name: str, value: Value, arguments: tuple[Value, ...]) -> Value:
        if isinstance(value, Function) and name not in {"default", "d"}:
            raise UnsupportedFault.of(unsupported.FUNCTION_VALUE, f"'{name}'")
        if not self.takes_safe and any(isinstance(a, Safe | Function) for a in arguments):
            raise UnsupportedFault.of(unsupported.SAFE_VALUE, f"an argument of '{name}'")
        keyword_values: Mapping[str, Value] = {}
        if arguments and isinstance(arguments[-1], Keywords):
            keyword_values = arguments[-1]
            if not self.keywords:
                arguments = (*arguments[:-1], {**keyword_values, "__keywords": True})
                keyword_values = {}
            else:
                arguments = arguments[:-1]
        names = self.keywords[len(arguments) :]
        result = self.run(
            value, *arguments, **{k: v for k, v in keyword_values.items() if k in names}
        )
        if self.keeps_safe and isinstance(value, Safe) and isinstance(result, str):
            return Safe(result)
        return result


_ESCAPE = Filter(texts.escape)
_DEFAULT = Filter(lists.default, (0, 2), takes_safe=True)

FILTERS: Mapping[str, Filter] = {
    "abs": Filter(texts.absolute),
    "batch": Filter(lists.batch, (1, 2)),
    "capitalize": Filter(texts.capitalize, keeps_safe=True),
    "center": Filter(texts.center, (0, 1), keeps_safe=True),
    "d": _DEFAULT,
    "default": _DEFAULT,
    "dictsort": Filter(lists.dictsort, (0, 2)),
    "dump": Filter(lists.dump, (0, 1)),
    "e": _ESCAPE,
    "escape": _ESCAPE,
    "first": Filter(lists.first),
    "float": Filter(texts.to_float, (0, 1)),
    "forceescape": Filter(texts.forceescape),
    "groupby": Filter(lists.group_by, (1, 1)),
    "indent": Filter(texts.indent, (0, 2), keeps_safe=True),
    "int": Filter(texts.to_int, (0, 2), keywords=("default", "base")),
    "join": Filter(lists.join, (0, 2), takes_safe=True),
    "last": Filter(lists.last),
    "length": Filter(lists.length),
    "list": Filter(lists.to_list),
    "lower": Filter(texts.lower),
    "nl2br": Filter(texts.nl2br, keeps_safe=True),
    "parseEntityRef": Filter(own.parse_entity_ref, (0, 1), of_backstage=True),
    "parseRepoUrl": Filter(own.parse_repo_url, of_backstage=True),
    "pick": Filter(own.pick, (1, 1), of_backstage=True),
    "projectSlug": Filter(own.project_slug, of_backstage=True),
    "reject": Filter(lists.chooser(keep=False), (0, 2)),
    "rejectattr": Filter(lists.chooser_by(keep=False), (1, 9)),
    "replace": Filter(texts.replace, (2, 3), keeps_safe=True),
    "reverse": Filter(lists.reverse),
    "round": Filter(texts.to_round, (0, 2)),
    "safe": Filter(texts.safe),
    "select": Filter(lists.chooser(keep=True), (0, 2)),
    "selectattr": Filter(lists.chooser_by(keep=True), (1, 9)),
    "slice": Filter(lists.slices, (1, 2)),
    "sort": Filter(lists.sort, (0, 3), keywords=("reverse", "case_sensitive", "attribute")),
    "string": Filter(texts.string, keeps_safe=True),
    "striptags": Filter(texts.striptags, (0, 1), keeps_safe=True),
    "sum": Filter(lists.total, (0, 2)),
    "title": Filter(texts.title, keeps_safe=True),
    "trim": Filter(texts.trim, keeps_safe=True),
    "truncate": Filter(texts.truncate, (0, 3), keeps_safe=True),
    "upper": Filter(texts.upper),
    "urlencode": Filter(texts.urlencode),
    "urlize": Filter(texts.urlize, (0, 2)),
    "wordcount": Filter(texts.wordcount),
}
FILTERS_REFUSED = frozenset({"random"})
"""Backstage's filters whose results no offline rendering can repeat."""


def literal_number(digits: str) -> float:
    """Return the value of a number literal such as ``12`` or ``1.5``."""
    return js.normal(float(digits))
