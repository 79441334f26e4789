"""
The filters, tests, methods and functions that templates may use, by name.

``docs/rendering.md`` is generated from these tables. ``FILTERS_REFUSED`` lists what Backstage has
in addition. All are pure functions on JSON-like values.

Backstage's own filters (`parse_repo_url`, `project_slug`, `parse_entity_ref`, `pick`) check the
shape of a forge's address and what the public forges require. Which forges the portal integrates
with is known only while a platform's task runs (``integrations``).
"""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from urllib.parse import parse_qsl

from softwaretemplates.render import javascript as js
from softwaretemplates.render import list_filters as lists
from softwaretemplates.render import refusals
from softwaretemplates.render import text_filters as texts
from softwaretemplates.render.global_functions import FUNCTIONS
from softwaretemplates.render.integrations import has_integration, hosts_known
from softwaretemplates.render.javascript import UNDEFINED, Function, Safe, Undefined, Value
from softwaretemplates.render.methods import METHODS
from softwaretemplates.render.operands import must_be_text, used
from softwaretemplates.render.predicates import TESTS
from softwaretemplates.render.refusals import OperationFault, UnsupportedFault
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


_ADDRESS = re.compile(
    r"(?P<name>[A-Za-z0-9_-]+(?:\.[A-Za-z0-9_-]+)*\.?)(?P<port>:[1-9][0-9]{0,4})?(?:/[^?#\\]*)?"
    r"(?:\?(?P<query>[^#]*))?(?:#.*)?\Z"
)
_PARTS = ("owner", "repo", "organization", "workspace", "project")
_REQUIRED = {
    "github.com": ("owner",),
    "bitbucket.org": ("workspace", "project"),
    "dev.azure.com": ("project",),
}


def parse_repo_url(value: Value) -> Value:
    """Split ``host?owner=o&repo=r``; the keys are Backstage's."""
    source = must_be_text(value, "parseRepoUrl")
    match = _ADDRESS.match(source)
    if match is None or match["name"].rpartition(".")[2].isdigit() is not _is_ip(match["name"]):
        raise OperationFault(
            f"parseRepoUrl: '{source}' is not an address of a repository",
            hint="the form is 'host?owner=team&repo=name', without https://",
        )
    host = match["name"].lower() + (match["port"] or "").removesuffix(":443")
    if not has_integration(host):
        raise OperationFault(
            f"parseRepoUrl: the portal has no integration for host '{host}'",
            hint=f"hosts of this platform: {', '.join(sorted(hosts_known() or ()))}",
        )
    parameters: dict[str, str] = {}
    for key, text in parse_qsl(match["query"] or "", keep_blank_values=True):
        parameters.setdefault(key, text)
    for name in ("repo", *_REQUIRED.get(host, ())):
        if not parameters.get(name):
            raise OperationFault(
                f"parseRepoUrl: '{source}' has no {name}",
                hint="the form is 'host?owner=team&repo=name'",
            )
    parts = {name: parameters[name].strip("/") for name in _PARTS if name in parameters}
    return js.Ragged({"host": host} | parts)


def _is_ip(name: str) -> bool:
    parts = name.split(".")
    return len(parts) == 4 and all(  # noqa: PLR2004 - an IPv4 address
        octet.isdigit() and str(int(octet)) == octet and int(octet) < 256  # noqa: PLR2004
        for octet in parts
    )


def project_slug(value: Value) -> Value:
    """Return ``owner/repo``."""
    location = parse_repo_url(value)
    return f"{location.get('owner', 'undefined')}/{location['repo']}"


def parse_entity_ref(value: Value, context: Value = UNDEFINED) -> Value:
    """Split ``kind:namespace/name``, or complete an object with these keys."""
    source = used(value)
    if isinstance(source, Safe):
        raise UnsupportedFault.of(refusals.SAFE_VALUE, "'parseEntityRef'")
    kind: Value
    namespace: Value
    name: Value
    defaults = context if isinstance(context, dict) else {}
    if isinstance(source, str):
        kind, namespace, name = _reference(source)
    elif isinstance(source, dict):
        kind, namespace, name = (source.get(key) for key in ("kind", "namespace", "name"))
    else:
        raise OperationFault(f"parseEntityRef: {js.to_json(source)} is not an entity reference")
    kind = defaults.get("defaultKind") if kind is None else kind
    if namespace is None:
        namespace = defaults.get("defaultNamespace") or "default"
    for text, title in ((kind, "kind"), (namespace, "namespace"), (name, "name")):
        if isinstance(text, Safe):
            raise UnsupportedFault.of(refusals.SAFE_VALUE, "'parseEntityRef'")
        if not isinstance(text, str) or not text:
            raise OperationFault(
                f"parseEntityRef: {js.to_json(source)} has no {title}",
                hint="write kind:namespace/name, or pass {defaultKind: 'component'}",
            )
    return {"kind": kind, "namespace": namespace, "name": name}


def _reference(source: str) -> tuple[str | None, str | None, str]:
    slash, colon = source.find("/"), source.find(":")
    colon = -1 if -1 < slash < colon else colon
    kind = source[:colon] if colon >= 0 else None
    namespace = source[colon + 1 : slash] if slash >= 0 else None
    name = source[max(colon, slash) + 1 :]
    if "" in {kind, namespace, name}:
        raise OperationFault(
            f"parseEntityRef: '{source}' is not an entity reference",
            hint="write kind:namespace/name",
        )
    return kind, namespace, name


_PATH = re.compile(r"""\w+(?:\.\w+|\[[0-9]+\]|\["[^"\\\]]*"\]|\['[^'\\\]]*'\])*\Z""", re.ASCII)
_STEP = re.compile(r"""\["([^"]*)"\]|\['([^']*)'\]|\[([0-9]+)\]|(\w+)""")


def pick(value: Value, path: Value) -> Value:
    """Return a copy of the value at a path such as ``a.b[0]["c-d"]``; lodash's ``get``."""
    picked = _at(value, path)
    return picked if isinstance(picked, Undefined) else _through_json(picked)


def _at(value: Value, path: Value) -> Value:
    if isinstance(path, list):
        return functools.reduce(js.member, path, value)
    key = js.text(path)
    if key == "" or (isinstance(value, dict) and key in value):
        return _own(value, key)
    if not _PATH.match(key):
        raise UnsupportedFault.of(refusals.ARGUMENTS, "pick")
    steps = ["".join(match.groups(default="")) for match in _STEP.finditer(key)]
    return functools.reduce(_own, steps, value)


def _own(value: Value, key: Value) -> Value:
    return UNDEFINED if value is None or isinstance(value, Undefined) else js.member(value, key)


def _through_json(value: Value) -> Value:
    """
    Return a copy as JSON represents it: undefined members removed, undefined items null.

    Raises:
        UnsupportedFault: JSON would change more, and not in every release of Backstage.
    """
    if isinstance(value, Safe):
        raise UnsupportedFault.of(refusals.SAFE_VALUE, "'pick'")
    if isinstance(value, Function):
        raise UnsupportedFault.of(refusals.FUNCTION_VALUE, "'pick'")
    if isinstance(value, float) and not _in_json(value):
        raise UnsupportedFault.of(refusals.NOT_JSON, "pick")
    if isinstance(value, list):
        return [None if isinstance(item, Undefined) else _through_json(item) for item in value]
    if isinstance(value, dict):
        kept = ((key, item) for key, item in value.items() if not isinstance(item, Undefined))
        return type(value)((key, _through_json(item)) for key, item in kept)
    return value


def _in_json(number: float) -> bool:
    minus_zero = number == 0 and math.copysign(1, number) < 0
    return math.isfinite(number) and not minus_zero


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
            raise UnsupportedFault.of(refusals.FUNCTION_VALUE, f"'{name}'")
        if not self.takes_safe and any(isinstance(a, Safe | Function) for a in arguments):
            raise UnsupportedFault.of(refusals.SAFE_VALUE, f"an argument of '{name}'")
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
    "parseEntityRef": Filter(parse_entity_ref, (0, 1), of_backstage=True),
    "parseRepoUrl": Filter(parse_repo_url, of_backstage=True),
    "pick": Filter(pick, (1, 1), of_backstage=True),
    "projectSlug": Filter(project_slug, of_backstage=True),
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
