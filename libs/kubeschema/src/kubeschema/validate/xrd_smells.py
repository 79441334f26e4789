"""
Parts of an XRD's schema that are accepted but probably unintended.

Defaults that never apply, objects that keep no fields, patterns that the form's engine reads
differently, columns of fields that do not exist.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from ground import js_regex
from kubeschema import structural
from kubeschema.extensions import INT_OR_STRING, PRESERVE
from kubeschema.pruning import default
from kubeschema.re2_patterns import PatternError, compile_pattern
from kubeschema.validate.findings import Finding, FindingSeverity, Reason

Schema = Mapping[str, Any]

_COLUMN_PATH = re.compile(r"\.(spec|status)((?:\.[A-Za-z0-9_-]+)*)\Z")
_UNLIKE = re.compile(r"(\\[sS])|\\.|\[(?:\\[^sS]|[^\\\]])*\]|(\.)")
"""
Constructs that RE2 and JavaScript both accept but match differently for a few characters (in the
regular expression's groups).
"""


def schema_smells(schema: Schema, at: str) -> Iterator[Finding]:
    """
    Yield findings about the fields of a version.

    Args:
        schema: The author's, as Crossplane reads it (``xrd.typed_schema``).
        at: Path of the schema in its XRD.
    """
    for section in ("spec", "status"):
        section_schema = (schema.get("properties") or {}).get(section)
        if section_schema:
            yield from _walk(section_schema, f"{at}.properties[{section}]", section, is_part=True)


def _walk(schema: Schema, path: str, field: str, *, is_part: bool = False) -> Iterator[Finding]:
    yield from _pattern(schema, path, field)
    yield from _multiple(schema, path, field)
    if not is_part:
        yield from _empty(schema, path, field)
    for name, child in (schema.get("properties") or {}).items():
        child_path, label = f"{path}.properties[{name}]", f"{field}.{name}"
        if name not in (schema.get("required") or ()):
            yield from _orphans(child, child_path, label)
        yield from _walk(child, child_path, label)
    for keyword, sign in (("items", "[]"), ("additionalProperties", ".*")):
        if isinstance(schema.get(keyword), Mapping):
            yield from _walk(schema[keyword], f"{path}.{keyword}", f"{field}{sign}")


def _unmeant(
    path: str,
    message: str,
    hint: str,
    severity: FindingSeverity = FindingSeverity.WARNING,
    **details: str,
) -> Finding:
    return Finding(path, Reason.UNMEANT, message, hint=hint, severity=severity, **details)


def _orphans(schema: Schema, path: str, field: str) -> Iterator[Finding]:
    """Find defaults inside an object that may be missing and has no default itself."""
    if schema.get("type") != "object" or "default" in schema or not schema.get("properties"):
        return
    shaped = default(schema, {})
    if shaped and not structural.problems(schema, shaped):
        yield _unmeant(
            path,
            f"the defaults inside {field} do not apply where an XR leaves {field} out",
            f"write default: {{}} at {field}",
            rule="default",
        )


def _empty(schema: Schema, path: str, field: str) -> Iterator[Finding]:
    has_content = any(
        schema.get(key) not in (None, False) for key in ("properties", "additionalProperties")
    )
    embedded = schema.get("x-kubernetes-embedded-resource")
    if schema.get("type") == "object" and not (has_content or schema.get(PRESERVE) or embedded):
        yield _unmeant(
            path,
            f"{field} is an object without fields: whatever is written into it is dropped",
            f"declare its fields, or set {PRESERVE}: true",
            rule="properties",
        )


def _multiple(schema: Schema, path: str, field: str) -> Iterator[Finding]:
    factor = schema.get("multipleOf")
    if isinstance(factor, float) and not factor.is_integer():
        yield _unmeant(
            f"{path}.multipleOf",
            f"the API server rounds {factor} down where {field} is a whole number, "
            "and refuses it if nothing is left",
            "count in a smaller unit, with an integer",
            rule=f"multipleOf {factor}",
        )


def _pattern(schema: Schema, path: str, field: str) -> Iterator[Finding]:
    pattern = schema.get("pattern")
    if not isinstance(pattern, str) or schema.get(INT_OR_STRING):
        return
    try:
        compile_pattern(pattern)
    except PatternError:
        return  # the server reports this itself
    try:
        js_regex.compile_pattern(pattern)
    except ValueError as error:
        yield _unmeant(
            f"{path}.pattern",
            f"the API server (RE2) and forms (JavaScript) do not read {pattern!r} alike: {error}",
            "generated forms get it translated where that is exact; for others write classes out: "
            "[a-zA-Z] for [[:alpha:]] or (?i), $ for \\z, (…) for (?P<name>…)",
            rule=f"pattern {pattern}",
        )
        return
    unlike = next((m[1] or m[2] for m in _UNLIKE.finditer(pattern) if m[1] or m[2]), "")
    if unlike:
        yield _unmeant(
            f"{path}.pattern",
            f"{unlike} means other characters to the API server (RE2) than to forms "
            f"(JavaScript): line ends and spaces beyond ASCII differ in {field}",
            "list the characters that are allowed, if it matters",
            FindingSeverity.NOTE,
            rule=f"pattern {pattern}",
        )


def column_smells(columns: list[Any], schema: Schema, at: str) -> Iterator[Finding]:
    """
    Yield findings about printer columns that show a field the CRD lacks.

    Args:
        schema: The CRD's.
        at: Path of the version in its XRD.
    """
    for index, column in enumerate(columns):
        json_path = column.get("jsonPath") if isinstance(column, Mapping) else None
        if isinstance(json_path, str) and not _exists(json_path, schema):
            yield _unmeant(
                f"{at}.additionalPrinterColumns[{index}].jsonPath",
                f"the column {column.get('name')} shows {json_path}, which the schema lacks",
                "name a field of spec or status, or declare it",
                rule=f"jsonPath {json_path}",
            )


def _exists(json_path: str, schema: Schema) -> bool:
    """Return whether the path exists. Filters and indices are assumed to be right."""
    match = _COLUMN_PATH.match(json_path)
    if match is None:
        return True
    level = schema["properties"][match[1]]
    for step in match[2].split(".")[1:]:
        if level.get(PRESERVE) or "additionalProperties" in level:
            return True
        if step not in (level.get("properties") or {}):
            return False
        level = level["properties"][step]
    return True
