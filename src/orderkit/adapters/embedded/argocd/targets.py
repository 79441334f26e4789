"""
The targets of an Application: the manifests of its folder at one commit.

A commit never changes, so what was read from it is kept (a bounded number of folders). One
bad file fails the whole folder, as in Argo CD, and the message names it.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from dataclasses import dataclass
from functools import lru_cache

from orderkit.adapters.embedded.argocd.refs import RepositorySources, SourceError
from orderkit.adapters.embedded.argocd.spec import ApplicationSource
from orderkit.core.names import CommitSha
from orderkit.core.objects.kube_objects import Manifest, annotations_of, metadata
from orderkit.core.yaml.manifests import ManifestError, looks_like_manifest, parse_manifests

HOOK = "argocd.argoproj.io/hook"

_KEPT_FOLDERS = 1024
_OTHER_TOOLS = {
    "kustomization.yaml": "Kustomize",
    "kustomization.yml": "Kustomize",
    "Chart.yaml": "Helm",
}

_KEPT_FILES = 4096
_Place = tuple[str, CommitSha, str, bool]


@dataclass(frozen=True, slots=True)
class Targets:
    """The manifests of one commit. Shared between readers: copy before changing one."""

    commit: CommitSha
    manifests: tuple[Manifest, ...]


class TargetLoader:
    """Reads folders through `RepositorySources` and remembers them. Thread-safe."""

    def __init__(self, sources: RepositorySources) -> None:
        self._sources = sources
        self._kept: OrderedDict[_Place, Targets] = OrderedDict()
        self._parse = lru_cache(_KEPT_FILES)(_parse)  # a new commit changes few files of a folder
        self._lock = threading.Lock()

    def load(self, source: ApplicationSource, revision: str) -> Targets:
        """
        Return the manifests of a folder at a branch, tag or commit.

        Raises:
            SourceError: They cannot be read; the message is Argo CD's.
        """
        try:
            commit = self._sources.resolve(source.repo_url, revision)
            source_key = (source.repo_url, commit, source.path, source.recurse)
            with self._lock:
                kept = self._kept.get(source_key)
            return kept or self._keep(source_key, self._read(source_key))
        except SourceError as error:
            text = str(error)
            code = "" if text.startswith("rpc error") else "rpc error: code = Unknown desc = "
            raise SourceError(
                f"failed to generate manifest for source 1 of 1: {code}{text}"
            ) from error

    def forget(self, repo_url: str) -> None:
        """Read a repository again even where the commit is known (a hard refresh)."""
        with self._lock:
            for source_key in [
                source_key for source_key in self._kept if source_key[0] == repo_url
            ]:
                del self._kept[source_key]

    def _keep(self, source_key: _Place, targets: Targets) -> Targets:
        with self._lock:
            self._kept[source_key] = targets
            while len(self._kept) > _KEPT_FOLDERS:
                self._kept.popitem(last=False)
        return targets

    def _read(self, source_key: _Place) -> Targets:
        repo_url, commit, path, recurse = source_key
        files = self._sources.read(repo_url, commit, path, recurse=recurse)
        manifests: list[Manifest] = []
        for name, data in sorted(files.items()):
            if name in _OTHER_TOOLS:
                raise SourceError(f"{path}: {name}: {_OTHER_TOOLS[name]} is not supported here")
            manifests += self._parse(name, data)
        for manifest in manifests:
            _check(manifest)
        return Targets(commit, tuple(manifests))


def _parse(name: str, data: bytes) -> tuple[Manifest, ...]:
    try:
        return parse_manifests(name, data)
    except ManifestError as error:
        if not name.endswith(".json") and not looks_like_manifest(data):
            return ()
        line = f"line {error.line}: " if error.line else ""
        raise SourceError(
            f'rpc error: code = FailedPrecondition desc = Failed to unmarshal "{name}": failed to '
            f"unmarshal manifest: error converting YAML to JSON: yaml: {line}{error.reason}"
        ) from error


def _check(manifest: Manifest) -> None:
    """Refuse manifests that would be delivered wrongly."""
    name = metadata(manifest).get("name")
    if not isinstance(name, str) or not name:
        raise SourceError(f"{manifest['kind']} without metadata.name")
    hook = annotations_of(manifest).get(HOOK)
    if hook and hook != "Skip":
        raise SourceError(f"{manifest['kind']} {name}: hooks ({hook}) are not supported here")
