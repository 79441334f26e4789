"""
Orderkit's documents: ``apiVersion``, ``kind``, ``metadata.name`` and a ``spec``; one shape each.

The field `named` of a shape is its ``metadata.name``; the others are the ``spec``. Pure.
"""

from collections.abc import Callable, Mapping
from functools import cache
from pathlib import PurePath
from typing import Annotated, Any, TypeVar

from msgspec import Meta

from ground.names import NAME_MAX
from ground.shapes import Shape, StrictShape, json_schema, plain, read_shape
from yamlfiles import yaml11
from yamlfiles.format_versions import API_VERSION

T = TypeVar("T", bound=Shape)
DocumentName = Annotated[str, Meta(pattern=r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$", max_length=NAME_MAX)]
"""Allowed names of packs and kits."""


class DataKind(StrictShape, frozen=True):
    """Whether objects of a kind hold data that goes with them."""

    kind: str
    group: Annotated[str, Meta(description="Its API group. Default: any.")] = "*"
    holds: bool = True


class PlanRules(StrictShape, frozen=True):
    """What plans go by, as a pack or a kit says."""

    data_kinds: Annotated[
        tuple[DataKind, ...],
        Meta(description="Kinds whose removal deletes data, or does not; beside Orderkit's table."),
    ] = ()

    @property
    def holds_data(self) -> dict[tuple[str, str], bool]:
        """Whether kinds hold data, by group (``*``: any group) and kind."""
        return {(kind.group, kind.kind): kind.holds for kind in self.data_kinds}


@cache
def document_schema(shape: type[Shape], kinds: tuple[str, ...], named: str) -> dict[str, Any]:
    """
    Return the JSON Schema of a file.

    Beside a strict spec, other keys are refused too; a spec without required keys may be absent.
    """
    spec = json_schema(shape)
    strict = {key: spec[key] for key in ("additionalProperties",) if key in spec}
    required = [key for key in spec.get("required", ()) if key != named]
    return {
        "type": "object",
        **strict,
        "required": ["apiVersion", "kind", "metadata", *(["spec"] if required else [])],
        "properties": {
            "apiVersion": {"const": API_VERSION},
            "kind": {"enum": list(kinds)} if len(kinds) > 1 else {"const": kinds[0]},
            "metadata": {
                "type": "object",
                **strict,
                "required": ["name"],
                "properties": {"name": spec["properties"][named]},
            },
            "spec": {
                "type": "object" if required else ["object", "null"],
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
    data = {**(document.get("spec") or {}), named: document["metadata"]["name"]}
    return read_shape(shape, data, path_of=path_of)


def record(kind: str, name: str, spec: Mapping[str, Any]) -> dict[str, Any]:
    """Return a document, by its kind, its name and its ``spec``."""
    return {"apiVersion": API_VERSION, "kind": kind, "metadata": {"name": name}, "spec": spec}


def write_document(kind: str, value: Shape, *, named: str) -> str:
    """Write a file, without what is as usual."""
    spec = plain(value)
    name = spec.pop(named)
    return yaml11.dump(record(kind, name, {key: part for key, part in spec.items() if part != {}}))
