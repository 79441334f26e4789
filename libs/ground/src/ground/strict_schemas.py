"""
Check our own documents and requests against JSON Schemas.

Patterns are matched by RE2: in linear time, and ``$`` is the end of the text. The library matches
them with ``re.search``, where ``$`` also stands before a final newline.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping
from typing import Any

from ground.regular_expressions import compile_linear

__all__ = ["first_problem"]


def first_problem(schema: Mapping[str, Any], value: object) -> Any | None:
    """Return the most telling error (a ``jsonschema.ValidationError``), or None."""
    import jsonschema  # lazy: heavy

    return jsonschema.exceptions.best_match(_validator()(schema).iter_errors(value))


@functools.cache
def _validator() -> Any:
    import jsonschema  # lazy: heavy

    extend: Any = jsonschema.validators.extend
    return extend(jsonschema.Draft202012Validator, {"pattern": _pattern})


def _pattern(_validator: Any, pattern: str, value: object, _schema: object) -> Iterator[Any]:
    import jsonschema  # lazy: heavy

    if isinstance(value, str) and not compile_linear(pattern).search(value):
        yield jsonschema.ValidationError(f"{value!r} does not match {pattern!r}")
