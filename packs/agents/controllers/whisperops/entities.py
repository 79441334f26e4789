"""
What the portal reads of the registry: files of a catalog repository, made from living records.

One ``Resource`` with ``spec.type: dataset`` per record, in files by the first two digits of a
digest of its name: a change rewrites one small file, and ten thousand datasets are 256 files that
the portal reads and not ten thousand. A ``Location`` beside them names the files, and is what is
registered in the portal.

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

from orderkit.core.objects.kube_objects import Manifest, dig, metadata
from orderkit.core.yaml import yaml11
from whisperops.records import SOURCE, human

ROOT_FILE = "catalog-info.yaml"
FOLDER = "entities"
GCS_PATH = "whisperops.io/gcs-path"
SIZE_BYTES = "whisperops.io/size-bytes"
READY = "whisperops.io/ready"
"""Annotations of an entity, and the label by which a form can leave out what is not ready."""
_HEADER = (
    "# Kept by dataset-watcher from the XDatasets of the cluster. What is edited here is lost.\n"
)


@dataclass(frozen=True, slots=True, order=True)
class Dataset:
    """What of a record the portal shows."""

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
    """Return the entity of a dataset; its name is the record's."""
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
    """Makes the files of one source, and remembers the text of what did not change."""

    def __init__(self, source: str, owner: str) -> None:
        self._source, self._owner = source, owner
        self._texts: dict[Dataset, str] = {}

    def files(self, datasets: Iterable[Dataset]) -> Mapping[PurePosixPath, bytes]:
        """Return every file of the source by its path in the repository."""
        wanted = sorted(datasets)
        self._texts = {dataset: self._text(dataset) for dataset in wanted}
        shards: dict[str, list[str]] = defaultdict(list)
        for dataset in wanted:
            shards[_shard(dataset.name)].append(self._texts[dataset])
        folder = PurePosixPath(self._source)
        found = {
            folder / FOLDER / f"{shard}.yaml": (_HEADER + "".join(texts)).encode()
            for shard, texts in shards.items()
        }
        return {folder / ROOT_FILE: self._location(sorted(shards)), **found}

    def _text(self, dataset: Dataset) -> str:
        known = self._texts.get(dataset)
        if known is not None:
            return known
        found = entity(dataset, source=self._source, owner=self._owner)
        return "---\n" + "".join(_block(found, ""))

    def _location(self, shards: list[str]) -> bytes:
        location = {
            "apiVersion": "backstage.io/v1alpha1",
            "kind": "Location",
            "metadata": {"name": self._source, "description": "Datasets that agents can analyse"},
            "spec": {"type": "url", "targets": [f"./{FOLDER}/{shard}.yaml" for shard in shards]},
        }
        return (_HEADER + yaml11.dump(location)).encode()


def is_kept(path: PurePosixPath, source: str) -> bool:
    """Say whether a file of the repository is one that this source writes, and may delete."""
    folder = PurePosixPath(source)
    return path == folder / ROOT_FILE or path.parent == folder / FOLDER


def _block(value: Mapping[str, Any], indent: str) -> Iterator[str]:
    """
    Yield the lines of nested maps of texts, every text in quotes.

    `yamltext` would take half a minute for ten thousand entities, and this has no lists, no
    numbers and no key that needs quotes.
    """
    for key, each in value.items():
        if isinstance(each, Mapping):
            yield f"{indent}{key}:\n"
            yield from _block(each, indent + "  ")
        else:
            yield f"{indent}{key}: {_quoted(each)}\n"


def _quoted(text: str) -> str:
    """Return a text as JSON writes it, which YAML 1.1 and 1.2 read alike: nothing invisible."""
    found = json.dumps(text, ensure_ascii=False)
    return "".join(char if char.isprintable() else f"\\U{ord(char):08x}" for char in found)


def _shard(name: str) -> str:
    return hashlib.sha256(name.encode()).hexdigest()[:2]
