"""
Resolve ``$text``, ``$json`` and ``$yaml`` of an entity as Backstage's catalog does.

A map of one such key is replaced by the content of the file that its value names, relative to the
entity's own file. A map with further keys beside one with a dollar, or with another name behind it,
stays as it is, with all that is in it; what a file brings is not looked at again
(PlaceholderProcessor of plugin-catalog-backend 4.0.0). Stricter: files come from the entity's own
repository only, each may have 1 MiB, all of them 4 MiB, and there may be 100.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from ground.errors import InvalidInputError
from softwaretemplates.size_limit import MIB
from yamlfiles import yaml12

__all__ = ["ReadBeside", "resolve_placeholders"]

ReadBeside = Callable[[str], bytes]
"""
Returns a file that a path names, relative to the entity's file or, after a slash, the repository.

Raises InvalidInputError if there is none, or if the path leads out of the repository.
"""
_FILES_MAX, _FILE_MAX, _ALL_MAX = 100, MIB, 4 * MIB


def resolve_placeholders(entity: Any, read: ReadBeside, *, name: str) -> Any:
    """
    Return an entity with the content of the files that its placeholders name.

    Args:
        name: The file's name in messages.

    Raises:
        InvalidInputError: A placeholder is no path, its file cannot be read, is not what the
            placeholder says, or brings too much.
    """
    return _Placeholders(read, name).resolved(entity, "")


class _Placeholders:
    """The placeholders of one entity, and what they have brought so far."""

    def __init__(self, read: ReadBeside, name: str) -> None:
        self._read, self._name = read, name
        self._files, self._bytes = 0, 0

    def resolved(self, value: Any, path: str) -> Any:
        if isinstance(value, list):
            return [self.resolved(item, f"{path}[{at}]") for at, item in enumerate(value)]
        if not isinstance(value, dict):
            return value
        if not any(key.startswith("$") for key in value):
            return {k: self.resolved(v, f"{path}.{k}".lstrip(".")) for k, v in value.items()}
        ((key, target), *more) = value.items()
        parse = _PARSERS.get(key)
        # with further keys it stays as it is, with all that is in it (PlaceholderProcessor of
        # plugin-catalog-backend 4.0.0)
        if more or parse is None:
            return value
        field = f"{self._name}: {path}.{key}"
        if not isinstance(target, str) or "://" in target:
            raise InvalidInputError(field, target, "is not a path in the template's own repository")
        data = self._content(field, target)
        try:
            return parse(data, target)
        except ValueError as error:
            raise InvalidInputError(field, target, f"is not {key[1:].upper()}: {error}") from error

    def _content(self, field: str, target: str) -> bytes:
        try:
            data = self._read(target)
        except InvalidInputError as error:
            raise InvalidInputError(field, target, error.rule, hint=error.hint) from error
        self._files += 1
        self._bytes += len(data)
        if len(data) > _FILE_MAX or self._bytes > _ALL_MAX or self._files > _FILES_MAX:
            raise InvalidInputError(
                field,
                target,
                f"has {len(data)} bytes, and is file {self._files} of {self._bytes} bytes; at most "
                f"{_FILE_MAX} bytes in a file, {_ALL_MAX} in all and {_FILES_MAX} files",
            )
        return data


def _text(data: bytes, _name: str) -> str:
    return data.decode(errors="replace")  # as Node reads it


def _json(data: bytes, _name: str) -> Any:
    return json.loads(_text(data, ""), parse_constant=_no_constant)


def _no_constant(text: str) -> None:
    raise ValueError(f"{text} is no number of JSON")


def _yaml(data: bytes, name: str) -> Any:
    documents = yaml12.load_all(data, name=name)
    if len(documents) != 1:
        raise ValueError(f"{len(documents)} documents; one is expected")
    return documents[0]


_PARSERS: dict[str, Callable[[bytes, str], Any]] = {"$text": _text, "$json": _json, "$yaml": _yaml}
