"""
Fields that are shown only for certain answers: ``dependencies.oneOf`` of a form.

Each question gets one branch per set of answers that show the same fields, so that exactly one
branch matches any answer.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from orderkit.core.kit.form_shapes import When

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
        name: when.values
        for name, (asked_question, when) in dependent.items()
        if asked_question == question
    }
    branches: dict[tuple[str, ...], list[Any]] = {}
    known_answers = list(dict.fromkeys(_answers(schemas[question], shown_for)))
    for answer in known_answers:
        visible = tuple(name for name, values in shown_for.items() if _is_one_of(answer, values))
        branches.setdefault(visible, []).append(answer)
    alternatives = [
        {
            "properties": {
                question: {"enum": answers},
                **{name: schemas[name] for name in fields_shown},
            }
        }
        for fields_shown, answers in branches.items()
    ]
    if not _has_finite_answers(schemas[question]):
        alternatives.append({"properties": {question: {"not": {"enum": known_answers}}}})
    return {"oneOf": alternatives}


def _answers(schema: Schema, shown_for: Mapping[str, tuple[Any, ...]]) -> list[Any]:
    """Return all answers, or only those that show a field if there are infinitely many."""
    if "enum" in schema:
        return list(schema["enum"])
    if schema.get("type") == "boolean":
        return [True, False]
    return [value for values in shown_for.values() for value in values]


def _has_finite_answers(schema: Schema) -> bool:
    return "enum" in schema or schema.get("type") == "boolean"


def _is_one_of(answer: object, values: tuple[object, ...]) -> bool:
    return any(isinstance(answer, bool) == isinstance(v, bool) and answer == v for v in values)
