"""
Orderkit's documents: ``apiVersion``, ``kind``, ``metadata.name`` and a ``spec``; one shape each.

The field `named` of a shape is its ``metadata.name``; the others are the ``spec``. Pure.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import PurePath
from typing import Any, TypeVar

from ground.shapes import Shape, json_schema, plain, read_shape
from yamlfiles import yaml11
from yamlfiles.documents import API_VERSION, record

T = TypeVar("T", bound=Shape)


@cache
def document_schema(shape: type[Shape], kinds: tuple[str, ...], named: str) -> dict[str, Any]:
    """Return the JSON Schema of a file; beside a strict spec, other keys are refused too."""
    spec = json_schema(shape)
    strict = {key: spec[key] for key in ("additionalProperties",) if key in spec}
    required = [key for key in spec.get("required", ()) if key != named]
    return {
        "type": "object",
        **strict,
        "required": ["apiVersion", "kind", "metadata", "spec"],
        "properties": {
            "apiVersion": {"const": API_VERSION},
            "kind": {"enum": list(kinds)} if len(kinds) > 1 else {"const": kinds[0]},
            "metadata": {
                "type": "object",
                **strict,
                "required": ["name"],
                "properties": {"name": {"type": "string"}},
            },
            "spec": {
                "type": "object",
                **strict,
                **({"required": required} if required else {}),
                "properties": {k: v for k, v in spec["properties"].items() if k != named},
            },
        },
    }


def read_document(
    shape: type[T],
    text: str | bytes,
    *,
    name: str,
    kinds: tuple[str, ...],
    named: str,
    path_of: Callable[[str], PurePath] = PurePath,
) -> T:
    """
    Read a file.

    Args:
        name: The file's name in messages.
        path_of: What a path in it means.

    Raises:
        InvalidInputError: It is no YAML, or has a key or value that its shape refuses.
    """
    document = yaml11.load(text, name=name, schema=document_schema(shape, kinds, named))
    data = {**document["spec"], named: document["metadata"]["name"]}
    return read_shape(shape, data, path_of=path_of)


def write_document(kind: str, value: Shape, *, named: str) -> str:
    """Write a file, without what is as usual."""
    spec = plain(value)
    name = spec.pop(named)
    return yaml11.dump(record(kind, name, {key: part for key, part in spec.items() if part != {}}))
