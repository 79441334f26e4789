"""
What the portal shows of the registry: files of a catalog repository, made from the records.

Each record becomes a ``Resource`` with ``spec.type: dataset``. The first two digits of a digest of
its name choose the file: a change rewrites one small file, and the portal reads at most 256 files
for ten thousand datasets. A ``Location`` beside them lists the files; it is registered in the
portal.

Pure; called by ``catalogrepo``.
"""

from __future__ import annotations

import hashlib
import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

from orderkit.controllers import Manifest, dig, dump_yaml, metadata
from whisperops.records import SOURCE, human

ROOT_FILE = "catalog-info.yaml"
FOLDER = "entities"
GCS_PATH = "whisperops.io/gcs-path"
SIZE_BYTES = "whisperops.io/size-bytes"
READY = "whisperops.io/ready"
"""Annotations of an entity; `READY` is a label, so that a form can leave out other datasets."""
_HEADER = (
    "# Kept by dataset-watcher from the XDatasets of the cluster. What is edited here is lost.\n"
)


@dataclass(frozen=True, slots=True, order=True)
class Dataset:
    """What the portal shows of a record."""

    name: str
    title: str
    path: str
    size_bytes: int
    ready: bool

    @classmethod
    def of(cls, record: Manifest) -> Dataset:
        return cls(
            str(metadata(record)["name"]),
            str(dig(record, "spec", "displayName", default="")),
            str(dig(record, "spec", "gcsPath", default="")),
            int(dig(record, "spec", "sizeBytes", default=0)),
            ready=dig(record, "status", "ready") is True,
        )


def entity(dataset: Dataset, *, source: str, owner: str) -> dict[str, Any]:
    """Return the entity of a dataset. It has the record's name."""
    return {
        "apiVersion": "backstage.io/v1alpha1",
        "kind": "Resource",
        "metadata": {
            "name": dataset.name,
            "title": dataset.title,
            "description": f"{human(dataset.size_bytes)} of CSV in {dataset.path}",
            "labels": {READY: str(dataset.ready).lower(), SOURCE: source},
            "annotations": {GCS_PATH: dataset.path, SIZE_BYTES: str(dataset.size_bytes)},
        },
        "spec": {"type": "dataset", "owner": owner},
    }


class Entities:
    """Makes the files of one source; reuses the text of entities that did not change."""

    def __init__(self, source: str, owner: str) -> None:
        self._source, self._owner = source, owner
        self._texts: dict[Dataset, str] = {}

    def files(self, datasets: Iterable[Dataset]) -> Mapping[PurePosixPath, bytes]:
        """Return every file of the source by its path in the repository."""
        sorted_datasets = sorted(datasets)
        self._texts = {dataset: self._text(dataset) for dataset in sorted_datasets}
        shards: dict[str, list[str]] = defaultdict(list)
        for dataset in sorted_datasets:
            shards[_shard(dataset.name)].append(self._texts[dataset])
        folder = PurePosixPath(self._source)
        entity_files = {
            folder / FOLDER / f"{shard}.yaml": (_HEADER + "".join(texts)).encode()
            for shard, texts in shards.items()
        }
        return {folder / ROOT_FILE: self._location(sorted(shards)), **entity_files}

    def _text(self, dataset: Dataset) -> str:
        unchanged = self._texts.get(dataset)
        if unchanged is not None:
            return unchanged
        new_entity = entity(dataset, source=self._source, owner=self._owner)
        return "---\n" + "".join(_yaml_lines(new_entity, ""))

    def _location(self, shards: list[str]) -> bytes:
        location = {
            "apiVersion": "backstage.io/v1alpha1",
            "kind": "Location",
            "metadata": {"name": self._source, "description": "Datasets that agents can analyse"},
            "spec": {"type": "url", "targets": [f"./{FOLDER}/{shard}.yaml" for shard in shards]},
        }
        return (_HEADER + dump_yaml(location)).encode()


def is_kept(path: PurePosixPath, source: str) -> bool:
    """Return whether this source writes, and may delete, a file of the repository."""
    folder = PurePosixPath(source)
    return path == folder / ROOT_FILE or path.parent == folder / FOLDER


def _yaml_lines(mapping: Mapping[str, Any], indent: str) -> Iterator[str]:
    """
    Yield the YAML of nested maps of texts, every text in quotes.

    `dump_yaml` would take half a minute for ten thousand entities, and these have no lists, no
    numbers and no keys that need quotes.
    """
    for key, value in mapping.items():
        if isinstance(value, Mapping):
            yield f"{indent}{key}:\n"
            yield from _yaml_lines(value, indent + "  ")
        else:
            yield f"{indent}{key}: {_quoted(value)}\n"


def _quoted(text: str) -> str:
    """Return a text as a JSON string without invisible characters: YAML 1.1 and 1.2 agree on it."""
    quoted = json.dumps(text, ensure_ascii=False)
    return "".join(char if char.isprintable() else f"\\U{ord(char):08x}" for char in quoted)


def _shard(name: str) -> str:
    return hashlib.sha256(name.encode()).hexdigest()[:2]
