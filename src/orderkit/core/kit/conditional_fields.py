"""
Fields that are shown only with certain answers: ``dependencies.oneOf`` of a form.

Each question gets one branch per set of answers with the same consequences, so that exactly one
branch fits any answer. Called by ``core.generate.form_fields``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from orderkit.core.kit.model import When

Schema = dict[str, Any]


def conditions(
    schemas: Mapping[str, Schema], dependent: Mapping[str, tuple[str, When]]
) -> dict[str, Schema]:
    """
    Return ``dependencies``.

    Args:
        schemas: Every field side by side, by its name in the form.
        dependent: Field -> the question it depends on, and the answers that show it.
    """
    questions = dict.fromkeys(question for question, _ in dependent.values())
    return {question: _of_question(question, schemas, dependent) for question in questions}


def _of_question(
    question: str, schemas: Mapping[str, Schema], dependent: Mapping[str, tuple[str, When]]
) -> Schema:
    shown_for = {
        name: when.values for name, (asked, when) in dependent.items() if asked == question
    }
    branches: dict[tuple[str, ...], list[Any]] = {}
    named = list(dict.fromkeys(_answers(schemas[question], shown_for)))
    for answer in named:
        shown = tuple(name for name, values in shown_for.items() if _among(answer, values))
        branches.setdefault(shown, []).append(answer)
    found = [
        {"properties": {question: {"enum": answers}, **{name: schemas[name] for name in shown}}}
        for shown, answers in branches.items()
    ]
    if not _closed(schemas[question]):
        found.append({"properties": {question: {"not": {"enum": named}}}})
    return {"oneOf": found}


def _answers(schema: Schema, shown_for: Mapping[str, tuple[Any, ...]]) -> list[Any]:
    """Return the answers there are, or those that matter if there is no end of them."""
    if "enum" in schema:
        return list(schema["enum"])
    if schema.get("type") == "boolean":
        return [True, False]
    return [value for values in shown_for.values() for value in values]


def _closed(schema: Schema) -> bool:
    return "enum" in schema or schema.get("type") == "boolean"


def _among(answer: object, values: tuple[object, ...]) -> bool:
    return any(isinstance(answer, bool) == isinstance(v, bool) and answer == v for v in values)
