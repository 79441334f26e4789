"""
Read and write our own small YAML documents: pack.yaml, kit.yaml, platform.yaml, records.

Documents are read as YAML 1.1 without dates (a timestamp stays a string) and checked by a JSON
Schema, so that a misspelt key is an error that names the key. When writing, every string that YAML
1.1 or 1.2 would read as something else is quoted. Files from other people's repositories go through
``manifests``, which adds limits.
"""

from __future__ import annotations

import re
from typing import Any

import yaml

from ground.errors import InvalidInputError
from ground.strict_schemas import first_problem
from ground.suggestions import did_you_mean
from yamlfiles.bounds import check_bounds
from yamlfiles.format_versions import refuse_newer

__all__ = ["dump", "dump_all", "dump_block", "field_location", "line_of", "load"]

Steps = tuple[str | int, ...]
"""Keys and list positions that lead to a value."""


class _Loader(yaml.CSafeLoader):
    """libyaml's safe loader, but dates stay strings because JSON has none."""


_Loader.yaml_implicit_resolvers = {
    first: [(tag, regexp) for tag, regexp in resolvers if tag != "tag:yaml.org,2002:timestamp"]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


class _Dumper(yaml.SafeDumper):
    """Safe dumper that indents lists and quotes every ambiguous string."""

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:  # noqa: ARG002, FBT001, FBT002 - PyYAML's signature
        super().increase_indent(flow, indentless=False)

    def ignore_aliases(self, data: object) -> bool:  # noqa: ARG002 - PyYAML's signature
        return True


# YAML 1.2 reads 0o17 and 1e3 as numbers, PyYAML does not. go-yaml, which Kubernetes uses, reads y
# and n as booleans. A string is left plain only if all of them read it as a string.
_AMBIGUOUS = re.compile(
    r"^(?:[yYnN]|[-+]?0[xob][0-9a-fA-F_]+|[-+]?[0-9][0-9_]*(?:[eE][-+]?[0-9]+)?"
    r"|[-+]?\.[0-9]+(?:[eE][-+]?[0-9]+)?|[-+]?[0-9]+\.[0-9]*(?:[eE][-+]?[0-9]+)?)$"
)


_SENTINEL = "__ORDERKIT_"
"""Sentinels are quoted, because the value baked in their place may look like a number."""


def _text(dumper: yaml.SafeDumper, value: str) -> yaml.ScalarNode:
    quoted = _AMBIGUOUS.match(value) or _SENTINEL in value
    style = "|" if "\n" in value else ("'" if quoted else None)
    if not value.isprintable() and not value.replace("\n", "").isprintable():
        style = '"'  # YAML 1.1 breaks lines at U+0085 and U+2028, YAML 1.2 does not
    return dumper.represent_scalar("tag:yaml.org,2002:str", value, style=style)


_Dumper.add_representer(str, _text)


def load(text: str | bytes, *, name: str, schema: dict[str, Any]) -> dict[str, Any]:
    """
    Read one document and check it against a JSON Schema.

    If the part of the schema that refuses a value has a ``description``, that becomes the error's
    hint.

    Args:
        name: The file's name in messages.

    Raises:
        InvalidInputError: It is not YAML, not one map, or has a key or value that the schema
            refuses.
        RefusedError: Its ``apiVersion`` is newer than the schema's.
    """
    try:
        check_bounds(text, name=name)
        data = yaml.load(text, _Loader)  # noqa: S506 - a subclass of SafeLoader
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        hint = "correct the line that the message names"
        raise InvalidInputError(name, None, f"is not valid YAML: {error}", hint=hint) from error
    problem = first_problem(schema, data)
    if problem is not None:
        known = schema.get("properties", {}).get("apiVersion", {}).get("const", "")
        refuse_newer(data.get("apiVersion") if isinstance(data, dict) else None, name, known=known)
        raise _invalid(name, text, problem)
    if not isinstance(data, dict):
        raise InvalidInputError(name, data, "is not a map")
    return data


def _invalid(name: str, text: str | bytes, problem: Any) -> InvalidInputError:
    steps = tuple(problem.absolute_path)
    if problem.validator == "additionalProperties":
        known_keys = list(problem.schema.get("properties", ()))
        unknown = next(key for key in problem.instance if key not in known_keys)
        hint = did_you_mean(str(unknown), known_keys, f"known: {', '.join(known_keys)}")
        field = field_location(name, text, steps, line_at=(*steps, unknown))
        return InvalidInputError(field, unknown, "is not a known key", hint=hint)
    field = field_location(name, text, steps)
    hint = str(problem.schema.get("description", ""))
    return InvalidInputError(field, problem.instance, f"is refused: {problem.message}", hint=hint)


def field_location(
    name: str, text: str | bytes, steps: Steps, *, line_at: Steps | None = None
) -> str:
    """Return ``file:line: key.key`` for messages; `line_at` selects another key's line."""
    path = ".".join(str(step) for step in steps)
    location = f"{name}:{line_of(text, steps if line_at is None else line_at)}"
    return f"{location}: {path}" if path else location


def line_of(text: str | bytes, steps: Steps) -> int:
    """Return the line, from 1, of a key or list entry; if missing, of the nearest one above."""
    node = yaml.compose(text, _Loader)
    line = 0
    for step in steps:
        if isinstance(node, yaml.MappingNode):
            entry = next((e for e in node.value if e[0].value == str(step)), None)
            if entry is None:
                break
            line, node = entry[0].start_mark.line, entry[1]
        elif isinstance(node, yaml.SequenceNode) and isinstance(step, int):
            node = node.value[step]
            line = node.start_mark.line
        else:
            break
    return line + 1


def dump(value: dict[str, Any], *, width: int = 100) -> str:
    """Write one document: keys in their order, ``---`` first, a final newline."""
    return dump_all([value], width=width)


def dump_block(value: dict[str, Any] | list[Any], *, width: int = 100) -> str:
    """Write a map or a list as part of a document: without ``---``, with a final newline."""
    return _dump([value], width=width, explicit_start=False)


def dump_all(values: list[dict[str, Any]], *, width: int = 100) -> str:
    """Write a stream of documents. Longer lines are broken at blanks."""
    return _dump(values, width=width, explicit_start=True)


def _dump(values: list[Any], *, width: int, explicit_start: bool) -> str:
    return yaml.dump_all(
        values,
        Dumper=_Dumper,
        sort_keys=False,
        allow_unicode=True,
        explicit_start=explicit_start,
        width=width,
        default_flow_style=False,
    )
