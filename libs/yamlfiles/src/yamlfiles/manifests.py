"""
Read manifests from untrusted files.

A file yields the Kubernetes objects in it, or one error with file and line. YAML is read as
Kubernetes reads it (``go_scalars``), from parser events with limits on size, depth, events and
aliases, because loading hostile YAML can hang or crash the process. Stricter than Kubernetes in one
respect: a repeated key is refused unless the limits say otherwise. No templating, no I/O.
"""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import yaml

from ground.errors import OrderkitError, shorten, with_article
from ground.objects.kube_objects import Kind, Manifest
from yamlfiles.go_scalars import Scalar, resolve

__all__ = [
    "DEFAULT_LIMITS",
    "ManifestError",
    "ManifestLimits",
    "depth_exceeds",
    "looks_like_manifest",
    "objects_in",
    "parse_documents",
    "parse_manifests",
]


@dataclass(frozen=True, slots=True)
class ManifestLimits:
    """Limits for one file."""

    size_bytes: int = 1_000_000
    depth: int = 64
    events: int = 50_000
    aliases: int = 20
    unique_keys: bool = True
    """Refuse a repeated key; without it the last one counts, as in Kubernetes."""


DEFAULT_LIMITS = ManifestLimits()

_CORE_TAGS = "tag:yaml.org,2002:"
_MERGE = "<<"


class ManifestError(OrderkitError):
    """A file that should contain manifests cannot be read."""

    def __init__(self, path: str, reason: str, *, line: int | None = None, hint: str = "") -> None:
        location = f"{path}: line {line}" if line else path
        hint = hint or _remedy(reason)
        super().__init__(f"{location}: {reason}", hint=hint)
        self.path, self.reason, self.line = path, reason, line


_TAB = "a tab where YAML wants blanks"
_REMEDIES = (
    (_TAB, "indent with blanks, not with tabs"),
    ("cannot start any token", "put the value into quotes"),
    ("is given twice", "keep one of the two"),
    ("aliases", "write the values out instead of aliases"),
    ("YAML events", "write the values out, and less of them"),
    ("larger than", "an order is a small file: take out what does not belong to it"),
    ("not UTF-8", "save the file in UTF-8"),
    ("apiVersion or kind is missing", "write both at its top: every Kubernetes object has them"),
)
_NOTHING_TAKEN = "correct the file and commit it; nothing was taken from it"
_CONFLICT = re.compile(r"^(?:<{7}|>{7}|\|{7})(?: .*)?$", re.MULTILINE)
"""What git writes into a file that two people changed."""


def _remedy(reason: str) -> str:
    return next((hint for words, hint in _REMEDIES if words in reason), _NOTHING_TAKEN)


def parse_manifests(
    path: str, data: bytes, *, limits: ManifestLimits = DEFAULT_LIMITS
) -> tuple[Manifest, ...]:
    """
    Return the objects of one YAML stream or (name ending in ``.json``) of one JSON file.

    Empty documents are skipped, and objects of kind List yield their items. If any part is invalid,
    nothing is returned.

    Args:
        path: Names the file in messages.

    Raises:
        ManifestError: It is not YAML or JSON, exceeds the limits, repeats a key, or has a document
            that is not a Kubernetes object.
    """
    documents = parse_documents(path, data, limits=limits)
    return tuple(
        manifest
        for document, line in documents
        if document is not None
        for manifest in objects_in(path, document, line)
    )


def parse_documents(
    path: str, data: bytes, *, limits: ManifestLimits = DEFAULT_LIMITS
) -> list[tuple[object, int]]:
    """
    Return every document of a file with its first line; empty documents are None.

    Raises:
        ManifestError: It is not YAML or JSON, exceeds the limits, or repeats a key.
    """
    text = _decode(path, data, limits)
    if conflict := _CONFLICT.search(text):
        raise ManifestError(
            path,
            f"an unresolved merge: the line begins with '{conflict[0][:7]}'",
            line=text.count("\n", 0, conflict.start()) + 1,
            hint="keep one side, and remove the lines that git wrote",
        )
    if path.endswith(".json"):
        return [(_parse_json(path, text, limits), 1)]
    return list(_parse_yaml(path, text, limits))


def looks_like_manifest(data: bytes) -> bool:
    """Return whether a broken file was meant as a manifest. Argo CD ignores other files."""
    return all(key in data for key in (b"apiVersion:", b"kind:", b"metadata:"))


def _decode(path: str, data: bytes, limits: ManifestLimits) -> str:
    if len(data) > limits.size_bytes:
        raise ManifestError(path, f"larger than {limits.size_bytes} bytes")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        reason = f"not UTF-8: {error.reason} at byte {error.start}"
        line = data.count(b"\n", 0, error.start) + 1
        raise ManifestError(path, reason, line=line) from error


def objects_in(path: str, document: object, line: int) -> Iterator[Manifest]:
    """
    Yield the document, or the items of a List.

    Raises:
        ManifestError: It is not a Kubernetes object.
    """
    if not isinstance(document, dict):
        raise ManifestError(path, "a document is not a map", line=line)
    try:
        kind = Kind.of(document)
    except ValueError as error:
        raise ManifestError(path, str(error), line=line) from error
    items = document.get("items")
    if kind.kind.endswith("List") and isinstance(items, list):
        for item in items:
            yield from objects_in(path, item, line)
        return
    if not isinstance(document.get("metadata", {}), dict):
        raise ManifestError(path, f"metadata of {kind} is not a map", line=line)
    yield document


def _parse_json(path: str, text: str, limits: ManifestLimits) -> object:
    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        entries = dict(pairs)
        if limits.unique_keys and len(entries) != len(pairs):
            names = [name for name, _ in pairs]
            twice = next(name for name in names if names.count(name) > 1)
            raise ManifestError(path, f"key {shorten(twice)!r} is given twice")
        return entries

    def refuse(constant: str) -> object:
        raise ManifestError(path, f"{constant} is not JSON")

    try:
        document = json.loads(text, object_pairs_hook=unique, parse_constant=refuse)
    except json.JSONDecodeError as error:
        raise ManifestError(path, error.msg, line=error.lineno) from error
    except ValueError as error:  # Python refuses integers of thousands of digits
        raise ManifestError(path, shorten(str(error))) from error
    except RecursionError as error:
        raise ManifestError(path, f"nested deeper than {limits.depth} levels") from error
    if depth_exceeds(document, limits.depth):
        raise ManifestError(path, f"nested deeper than {limits.depth} levels")
    # only such an escape can be half a character, so that most files need no second look
    if "\\ud" in text.lower() and not _is_encodable(document):
        raise ManifestError(path, "a \\ud… escape that is half a character")
    return document


def _is_encodable(document: object) -> bool:
    try:
        json.dumps(document, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return False
    return True


def depth_exceeds(value: object, depth_max: int) -> bool:
    """Say whether maps and lists are nested deeper than `depth_max` levels; never recurses."""
    level: list[object] = [value]
    for _ in range(depth_max + 1):
        level = [
            child
            for node in level
            if isinstance(node, dict | list)
            for child in (node.values() if isinstance(node, dict) else node)
        ]
        if not level:
            return False
    return True


def _parse_yaml(path: str, text: str, limits: ManifestLimits) -> Iterator[tuple[object, int]]:
    composer = _Composer(path, limits)
    try:
        for event in yaml.parse(text, Loader=yaml.CSafeLoader):
            if composer.take(event):
                yield composer.document, composer.document_line
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        reason = str(error.problem or error.context)
        if (
            mark
            and "cannot start any token" in reason
            and text[mark.index : mark.index + 1] == "\t"
        ):
            reason = _TAB
        raise ManifestError(path, reason, line=mark.line + 1 if mark else None) from error
    except yaml.YAMLError as error:
        raise ManifestError(path, shorten(str(error))) from error


@dataclass(slots=True)
class _Open:
    """A map or list whose end has not been reached."""

    value: dict[str, Any] | list[Any]
    line: int
    key: str | None = None
    merges: list[Any] | None = None
    anchor: str | None = None


class _Composer:
    """Builds plain data from parser events, one document at a time, never recursing."""

    def __init__(self, path: str, limits: ManifestLimits) -> None:
        self._path, self._limits = path, limits
        self._events = self._aliases = 0
        self._stack: list[_Open] = []
        self._anchors: dict[str, Any] = {}
        self.document: Any = None
        self.document_line = 1

    def take(self, event: yaml.Event) -> bool:
        """Process one event. Return whether it ended a document."""
        line = _line(event)
        self._count(1, line)
        if isinstance(event, yaml.DocumentStartEvent):
            self.document, self.document_line, self._anchors = None, line, {}
        elif isinstance(event, yaml.ScalarEvent):
            self._put(self._scalar(event, line), event.anchor, line)
        elif isinstance(event, yaml.AliasEvent):
            self._put(self._aliased(event, line), None, line)
        elif isinstance(event, yaml.MappingStartEvent | yaml.SequenceStartEvent):
            self._open(event, line)
        elif isinstance(event, yaml.MappingEndEvent | yaml.SequenceEndEvent):
            self._close(line)
        return isinstance(event, yaml.DocumentEndEvent)

    def _fail(self, reason: str, line: int) -> ManifestError:
        return ManifestError(self._path, reason, line=line)

    def _count(self, nodes: int, line: int) -> None:
        self._events += nodes
        if self._events > self._limits.events:
            raise self._fail(f"more than {self._limits.events} YAML events", line)

    def _scalar(self, event: yaml.ScalarEvent, line: int) -> Scalar:
        tag = (event.tag or "").removeprefix(_CORE_TAGS)
        if tag == "str" or (tag in ("", "!") and not event.implicit[0]):
            return str(event.value)
        if tag not in ("", "!", "null", "bool", "int", "float"):
            raise self._fail(f"tag {shorten(str(event.tag))} is not supported", line)
        try:
            value = resolve(event.value)
        except ValueError as error:
            raise self._fail(str(error), line) from error
        if tag and tag != "!" and not _fits(tag, value):
            raise self._fail(f"{shorten(event.value)!r} is not {with_article(tag)}", line)
        return value

    def _aliased(self, event: yaml.AliasEvent, line: int) -> object:
        self._aliases += 1
        if self._aliases > self._limits.aliases:
            raise self._fail(f"more than {self._limits.aliases} aliases", line)
        if event.anchor not in self._anchors:
            raise self._fail(f"unknown anchor {shorten(str(event.anchor))!r}", line)
        value = self._anchors[event.anchor]
        if depth_exceeds(value, self._limits.depth - len(self._stack)):
            raise self._fail(f"nested deeper than {self._limits.depth} levels", line)
        # An alias counts as much as its target: otherwise nested aliases multiply past the limit.
        self._count(_size(value), line)
        return copy.deepcopy(value)

    def _open(self, event: yaml.MappingStartEvent | yaml.SequenceStartEvent, line: int) -> None:
        if len(self._stack) >= self._limits.depth:
            raise self._fail(f"nested deeper than {self._limits.depth} levels", line)
        top = self._stack[-1] if self._stack else None
        if top is not None and isinstance(top.value, dict) and top.key is None:
            raise self._fail("a key that is a map or a list", line)
        if event.tag not in (None, "!", f"{_CORE_TAGS}map", f"{_CORE_TAGS}seq"):
            raise self._fail(f"tag {shorten(str(event.tag))} is not supported", line)
        empty: dict[str, Any] | list[Any] = {} if isinstance(event, yaml.MappingStartEvent) else []
        self._stack.append(_Open(empty, line, anchor=event.anchor))

    def _close(self, line: int) -> None:
        closed = self._stack.pop()
        # Merged last, so that keys written after the "<<" win, too.
        for merged in closed.merges or ():
            self._merge(closed, merged)
        self._put(closed.value, closed.anchor, line)

    def _merge(self, target: _Open, merged: object) -> None:
        """
        Add the entries of a ``<<`` key.

        Explicit keys win over merged ones, earlier merges over later.
        """
        for source in merged if isinstance(merged, list) else [merged]:
            if not isinstance(source, dict) or not isinstance(target.value, dict):
                raise self._fail("'<<' merges something that is not a map", target.line)
            for key, value in source.items():
                target.value.setdefault(key, value)

    def _put(self, value: Any, anchor: str | None, line: int) -> None:
        if anchor:
            self._anchors[anchor] = value
        if not self._stack:
            self.document = value
            return
        top = self._stack[-1]
        if isinstance(top.value, list):
            top.value.append(value)
        elif top.key is None:
            top.key = self._key(value, top, line)
        elif top.key == _MERGE:
            top.merges = [*(top.merges or []), value]
            top.key = None
        else:
            top.value[top.key] = value
            top.key = None

    def _key(self, value: Any, top: _Open, line: int) -> str:
        if isinstance(value, dict | list):
            raise self._fail("a key that is a map or a list", line)
        key = value if isinstance(value, str) else json.dumps(value)
        repeats = isinstance(top.value, dict) and key in top.value
        if repeats and self._limits.unique_keys:
            raise self._fail(f"key {shorten(key)!r} is given twice", line)
        return key


def _line(event: yaml.Event) -> int:
    return event.start_mark.line + 1 if event.start_mark else 1


def _fits(tag: str, value: Scalar) -> bool:
    if tag == "null":
        return value is None
    if isinstance(value, bool) or tag == "bool":
        return isinstance(value, bool) and tag == "bool"
    return isinstance(value, int) or (tag == "float" and isinstance(value, float))


def _size(value: object) -> int:
    if isinstance(value, dict):
        return 1 + sum(1 + _size(child) for child in value.values())
    if isinstance(value, list):
        return 1 + sum(_size(child) for child in value)
    return 1
