"""
Read YAML 1.2 documents as Backstage's parser does (core schema): ``yes`` is a string.

For files of a pack that the portal reads too: template.yaml. Size and nesting are checked first
(``bounds``), because building hostile YAML can crash the process.
"""

from __future__ import annotations

import re
from typing import Any

import yaml

from ground.errors import InvalidInputError
from yamlfiles.bounds import check_bounds

__all__ = ["load", "load_all"]

SIZE_MAX_BYTES = 1 << 20

_TAG = "tag:yaml.org,2002:"


class _Loader(yaml.CSafeLoader):
    """Safe loader with the core schema of YAML 1.2 and unique keys."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:  # noqa: FBT001, FBT002 - PyYAML's signature
        mapping = super().construct_mapping(node, deep=deep)
        if len(mapping) != len(node.value):
            raise yaml.constructor.ConstructorError(
                None, None, "a key is given twice", node.start_mark
            )
        return {self._key(key): value for key, value in mapping.items()}

    @staticmethod
    def _key(key: object) -> str:
        if key is None:
            return "null"
        return str(key).lower() if isinstance(key, bool) else str(key)


def _whole(loader: yaml.Loader, node: yaml.ScalarNode) -> int:
    text = str(loader.construct_scalar(node))
    return int(text, 0) if text[:2] in {"0x", "0o"} else int(text)


def _decimal(loader: yaml.Loader, node: yaml.ScalarNode) -> float:
    return float(str(loader.construct_scalar(node)))


_Loader.yaml_implicit_resolvers = {}
_LETTERS = list("-+.0123456789")
for _name, _pattern, _first in (
    ("null", r"(~|null|Null|NULL|)\Z", ["~", "n", "N", ""]),
    ("bool", r"(true|True|TRUE|false|False|FALSE)\Z", list("tTfF")),
    ("int", r"([-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+)\Z", _LETTERS),
    ("float", r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?\Z", _LETTERS),
):
    _Loader.add_implicit_resolver(_TAG + _name, re.compile(_pattern), _first)
_Loader.add_constructor(_TAG + "int", _whole)
_Loader.add_constructor(_TAG + "float", _decimal)


def load(data: bytes, *, name: str) -> Any:
    """
    Return the one document of `data`.

    Raises:
        InvalidInputError: Not UTF-8, not YAML, beyond the limits, several documents, a
            repeated key, or a tag of a foreign type.
    """
    documents = _load_all(data, name)
    if len(documents) > 1:
        raise InvalidInputError(
            name, len(documents), "documents; one is expected", hint="give each a file of its own"
        )
    return documents[0] if documents else None


def load_all(data: bytes, *, name: str) -> list[Any]:
    """Return the documents of `data` that are not empty; raises like `load`, but for several."""
    return [document for document in _load_all(data, name) if document is not None]


def _load_all(data: bytes, name: str) -> list[Any]:
    try:
        text = data.decode("utf-8-sig")
        _check(text, name)
        return list(yaml.load_all(text, _Loader))
    except (yaml.YAMLError, UnicodeDecodeError, ValueError) as error:
        hint = "correct the line that the message names"
        raise InvalidInputError(name, None, f"is not valid YAML: {error}", hint=hint) from error


def _check(text: str, name: str) -> None:
    if len(text) > SIZE_MAX_BYTES:
        raise InvalidInputError(
            name, "", f"is larger than {SIZE_MAX_BYTES} bytes", hint="split the file"
        )
    check_bounds(text, name=name)
