"""
Other people's YAML readers as judges: PyYAML (YAML 1.1), ruamel (YAML 1.2), Go's two.

Each returns the documents of a text as ``typed`` data: maps with keys as text, lists, scalars as
texts that begin with their type, so that 1, 1.0, true and '1' are four values.
"""

from __future__ import annotations

import json
import subprocess
import warnings
from pathlib import Path
from typing import Any, Protocol

import ruamel.yaml
import yaml
from ruamel.yaml.error import YAMLWarning


class Unreadable(Exception):  # noqa: N818 - it is what a reader says, not a fault of ours
    """The reader refuses the text."""


class Reader(Protocol):
    """Reads a text of several documents."""

    name: str

    def read(self, text: str) -> list[Any]: ...


def typed(value: Any) -> Any:
    """Return plain data in the form in which readers are compared."""
    if isinstance(value, dict):
        return {_key(key): typed(item) for key, item in value.items()}
    if isinstance(value, list):
        return [typed(item) for item in value]
    for kind, mark in _MARKS.items():
        if isinstance(value, kind):
            return f"{mark}:{_shown(value)}"
    return f"{type(value).__name__}:{value}"


_MARKS: dict[type, str] = {bool: "b", type(None): "n", str: "s", int: "i", float: "f"}


def _shown(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    return repr(float(value)) if isinstance(value, float) else str(value)


def _key(key: Any) -> str:
    if isinstance(key, bool):
        return str(key).lower()
    return "null" if key is None else str(key)


class PyYaml:
    """PyYAML's safe loader: YAML 1.1."""

    name = "PyYAML 1.1"

    def read(self, text: str) -> list[Any]:
        try:
            return [typed(found) for found in yaml.load_all(text, yaml.CSafeLoader)]
        except (yaml.YAMLError, ValueError, TypeError) as error:
            raise Unreadable(str(error)) from error


class Ruamel:
    """ruamel's safe loader in pure Python: YAML 1.2."""

    name = "ruamel 1.2"

    def read(self, text: str) -> list[Any]:
        reader = ruamel.yaml.YAML(typ="safe", pure=True)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", YAMLWarning)
                return [typed(found) for found in reader.load_all(text)]
        except (ruamel.yaml.error.YAMLError, ValueError, TypeError) as error:
            raise Unreadable(str(error)) from error


class GoReaders:
    """The program of ``lab/yamlreader``: one process for many texts."""

    def __init__(self, folder: Path) -> None:
        self._process = subprocess.Popen(
            [folder / "yamlreader"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )

    def close(self) -> None:
        self._process.communicate()

    def ask(self, text: str) -> dict[str, Any]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(text).encode() + b"\n")
        self._process.stdin.flush()
        found: dict[str, Any] = json.loads(self._process.stdout.readline())
        return found

    def readers(self) -> list[Reader]:
        return [GoReader(self, "v2"), GoReader(self, "v3")]


class GoReader:
    """One of Go's dialects: v2 is that of Kubernetes."""

    def __init__(self, process: GoReaders, dialect: str) -> None:
        self._process, self._dialect = process, dialect
        self.name = f"Go {dialect}"

    def read(self, text: str) -> list[Any]:
        answer = self._process.ask(text)[self._dialect]
        if "error" in answer:
            raise Unreadable(answer["error"])
        return [_floats(found) for found in answer["documents"]]


def _floats(value: Any) -> Any:
    """Write floating-point numbers as Python does."""
    if isinstance(value, dict):
        return {key: _floats(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_floats(item) for item in value]
    return f"f:{float(value[2:])!r}" if value.startswith("f:") else value
