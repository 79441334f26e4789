"""
Manifests together with the line and column of each value.

`yamlfiles.manifests` reads the file first, with all its limits, so a file that gets here is
harmless. Then the parser's events are walked again for their marks. JSON is walked as YAML, of
which it is a subset; if that fails, positions are unknown.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import yaml

from ground.objects.kube_objects import Manifest
from yamlfiles.manifests import objects_in, parse_documents

__all__ = ["LocatedManifest", "located_manifests"]

Steps = tuple[str, ...]
Mark = tuple[int, int]
"""Line and column, both from 1."""


@dataclass(frozen=True, slots=True)
class LocatedManifest:
    """An object and the positions of its parts."""

    manifest: Manifest
    line: int
    """The first line of its document."""
    marks: Mapping[Steps, Mark]
    root: Steps = ()
    """Path of the object in its document; not empty if it is an item of a List."""

    def find(self, steps: Sequence[str]) -> Mark | None:
        """Return the position of a field, or of the nearest enclosing field; None if unknown."""
        full_steps = (*self.root, *steps)
        for length in range(len(full_steps), len(self.root) - 1, -1):
            if full_steps[:length] in self.marks:
                return self.marks[full_steps[:length]]
        return None


def located_manifests(path: str, data: bytes) -> tuple[LocatedManifest, ...]:
    """
    Return the objects of a file with their positions.

    Raises:
        ManifestError: As ``manifests.parse_manifests``.
    """
    documents = parse_documents(path, data)
    marks = _marks(data.decode("utf-8-sig"))
    located: list[LocatedManifest] = []
    for index, (document, line) in enumerate(documents):
        if document is None:
            continue
        document_marks = marks[index] if index < len(marks) else {}
        objects = list(objects_in(path, document, line))
        alone = len(objects) == 1 and objects[0] is document
        for number, manifest in enumerate(objects):
            root = () if alone else ("items", str(number))
            located.append(LocatedManifest(manifest, line, document_marks, root))
    return tuple(located)


def _marks(text: str) -> list[dict[Steps, Mark]]:
    walk = _Walk()
    try:
        for event in yaml.parse(text, Loader=yaml.CSafeLoader):
            walk.take(event)
    except yaml.YAMLError:
        return []  # not all JSON is YAML
    return walk.documents


@dataclass(slots=True)
class _Open:
    """A map or list that is being walked."""

    steps: Steps
    is_map: bool
    key: str | None = None
    key_mark: Mark = (1, 1)
    count: int = 0


@dataclass(slots=True)
class _Walk:
    documents: list[dict[Steps, Mark]] = field(default_factory=list)
    _stack: list[_Open] = field(default_factory=list)

    def take(self, event: yaml.Event) -> None:
        if isinstance(event, yaml.DocumentStartEvent):
            self.documents.append({})
        elif isinstance(event, yaml.MappingEndEvent | yaml.SequenceEndEvent):
            self._stack.pop()
        elif isinstance(event, yaml.NodeEvent):
            self._node(event)

    def _node(self, event: yaml.NodeEvent) -> None:
        start = event.start_mark
        mark = (start.line + 1, start.column + 1) if start else (1, 1)
        top = self._stack[-1] if self._stack else None
        if top is not None and top.is_map and top.key is None:
            top.key, top.key_mark = getattr(event, "value", ""), mark
            return
        steps = self._step(top, mark)
        if isinstance(event, yaml.MappingStartEvent | yaml.SequenceStartEvent):
            self._stack.append(_Open(steps, isinstance(event, yaml.MappingStartEvent)))

    def _step(self, top: _Open | None, mark: Mark) -> Steps:
        """Record a value's position. In a map it is the key's, which is what people look for."""
        if top is None:
            steps: Steps = ()
        elif top.is_map:
            steps, mark = (*top.steps, top.key or ""), top.key_mark
            top.key = None
        else:
            steps = (*top.steps, str(top.count))
            top.count += 1
        self.documents[-1][steps] = mark
        return steps
