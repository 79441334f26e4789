"""
The targets of an Application: the manifests of its folder at one commit, and which are hooks.

A commit never changes, so what was read from it is kept (a bounded number of folders). One
bad file fails the whole folder, as in Argo CD, and the message names it.

Hooks are read as Argo CD 3.6 reads them. A hook of a sync runs with an operation, which it does not
start: ``sync`` makes its object again. One of a deletion puts finalizers on the Application, and is
asked of the AppProject like any other object. Not here: that a hook completes or fails by its
health, its finalizer, delete policies, waves and names that the server makes up.
"""

from __future__ import annotations

import re
import threading
from codecs import BOM_UTF16_BE, BOM_UTF16_LE
from collections import OrderedDict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache

from ground.argocd.sync_rules import FINALIZERS, HELM_HOOK, HOOK
from ground.errors import InvalidInputError
from ground.names import CommitSha
from ground.objects.kube_objects import Manifest, annotations_of, metadata
from orderkit_standins.argocd.source_repositories import (
    JSONNET,
    MANIFEST_SUFFIXES,
    RepositorySources,
    SourceError,
)
from orderkit_standins.argocd.spec import ApplicationSource
from orderkit_standins.globs import compile_glob
from yamlfiles import yaml12
from yamlfiles.manifests import ManifestError, ManifestLimits, looks_like_manifest, parse_manifests

_PHASES = frozenset({"PreSync", "Sync", "PostSync", "SyncFail"})
_HELM_PHASES = {
    "pre-install": "PreSync",
    "pre-upgrade": "PreSync",
    "post-install": "PostSync",
    "post-upgrade": "PostSync",
}
_SKIP = "Skip"
_OF_DELETION = {"PreDelete": "pre-delete", "PostDelete": "post-delete"}


def is_skipped(manifest: Manifest) -> bool:
    """Say whether Argo CD knows an object without ever comparing or applying it."""
    return _known(manifest) == [_SKIP]


def is_hook(manifest: Manifest) -> bool:
    """Say whether an object is no target of a comparison; it may be of no phase either."""
    annotations = annotations_of(manifest)
    if HOOK in annotations:
        return not is_skipped(manifest)
    return annotations.get(HELM_HOOK, "crd-install") != "crd-install"


def phases_of(manifest: Manifest) -> frozenset[str]:
    """Return the phases of a sync in which a hook runs."""
    known = _known(manifest) if is_hook(manifest) else []
    return frozenset(known) & _PHASES


def deletion_types(manifest: Manifest) -> frozenset[str]:
    """Return the types of hook of a deletion that an object is."""
    return frozenset(
        type_
        for type_, helm_type in _OF_DELETION.items()
        if type_ in _words(manifest, HOOK) or helm_type in _words(manifest, HELM_HOOK)
    )


def finalizers_for(types: Iterable[str]) -> list[str]:
    """Return what Argo CD puts on an Application that has hooks of these types."""
    return [name for type_ in sorted(types) for name in _both(FINALIZERS[type_])]


def finalizers_of_hooks() -> frozenset[str]:
    """Return everything that Argo CD puts on an Application because of hooks."""
    return frozenset(finalizers_for(FINALIZERS))


def _both(finalizer: str) -> tuple[str, str]:
    return finalizer, f"{finalizer}/cleanup"


def _known(manifest: Manifest) -> list[str]:
    """Return the known types, Helm's only where Argo CD's own annotation has none."""
    own = [word for word in _words(manifest, HOOK) if word in _PHASES or word == _SKIP]
    words = _words(manifest, HELM_HOOK)
    return own or [_HELM_PHASES[word] for word in words if word in _HELM_PHASES]


def _words(manifest: Manifest, annotation: str) -> list[str]:
    text = str(annotations_of(manifest).get(annotation, ""))
    return [word.strip() for word in text.split(",")]


_KEPT_FOLDERS = 1024
_TOOLS = (
    (re.compile(r"kustomization\.ya?ml|Kustomization"), "Kustomize"),
    (re.compile(r"[^/]*Chart\.yaml"), "Helm"),
)
"""Files in a folder by which Argo CD chooses a tool if the source names none."""
_SOURCE_TYPES = {
    "kustomize": "Kustomize",
    "helm": "Helm",
    "directory": "Directory",
    "plugin": "Plugin",
}
_OVERRIDES = re.compile(r"\.argocd-source(-.*)?\.yaml")
"""Files in a folder that Argo CD merges into the source before it chooses."""

_KEPT_FILES = 4096
# the last of equal keys counts, as in Argo CD
_LIMITS = ManifestLimits(unique_keys=False)
_SourceKey = tuple[ApplicationSource, CommitSha]


@dataclass(frozen=True, slots=True)
class Targets:
    """The manifests of one commit. Shared between readers: copy before changing one."""

    commit: CommitSha
    manifests: tuple[Manifest, ...]


class TargetLoader:
    """Reads folders through `RepositorySources` and remembers them. Thread-safe."""

    def __init__(self, sources: RepositorySources) -> None:
        self._sources = sources
        self._kept: OrderedDict[_SourceKey, Targets] = OrderedDict()
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
            source_key = (source, commit)
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
                source_key for source_key in self._kept if source_key[0].repo_url == repo_url
            ]:
                del self._kept[source_key]

    def _keep(self, source_key: _SourceKey, targets: Targets) -> Targets:
        with self._lock:
            self._kept[source_key] = targets
            while len(self._kept) > _KEPT_FOLDERS:
                self._kept.popitem(last=False)
        return targets

    def _read(self, source_key: _SourceKey) -> Targets:
        source, commit = source_key
        files = self._sources.read(source.repo_url, commit, source.path, recurse=source.recurse)
        _refuse_other_tools(source, files)
        manifests: list[Manifest] = []
        for name, data in sorted(files.items()):
            if not _is_included(source, name):
                continue
            if name.endswith(JSONNET):
                raise SourceError(f"{source.path}: {name}: Jsonnet is not supported here")
            if name.endswith(MANIFEST_SUFFIXES):
                manifests += self._parse(name, data)
        for manifest in manifests:
            _check(manifest)
        return Targets(commit, tuple(manifests))


def _refuse_other_tools(source: ApplicationSource, files: Mapping[str, bytes]) -> None:
    """Refuse files that make Argo CD run something else than plain manifests."""
    for name, data in sorted(files.items()):
        if _OVERRIDES.fullmatch(name):
            raise SourceError(_override_refusal(source, name, data))
        for file, tool in _TOOLS:
            if file.fullmatch(name) and not source.names_its_tool:
                raise SourceError(f"{source.path}: {name}: {tool} is not supported here")


def _override_refusal(source: ApplicationSource, name: str, data: bytes) -> str:
    try:
        override = yaml12.load(data, name=name)
    except InvalidInputError as error:
        return str(error)
    fields = override if isinstance(override, Mapping) else {}
    keys = {key for key, value in fields.items() if value is not None}
    if source.names_its_tool:
        keys.add("directory")
    types = [type_ for key, type_ in _SOURCE_TYPES.items() if key in keys]
    if len(types) > 1:
        return (
            "error getting app source type: multiple application sources defined: "
            f"{','.join(types)}"
        )
    return f"{source.path}: {name}: overrides of a source are not supported here"


def _is_included(source: ApplicationSource, name: str) -> bool:
    excluded = source.exclude and _matches(source.exclude, name)
    return not excluded and (not source.include or _matches(source.include, name))


def _matches(pattern: str, name: str) -> bool:
    """Match a path as Argo CD does: ``*`` matches slashes too, a broken pattern nothing."""
    try:
        return compile_glob(pattern).fullmatch(name) is not None
    except InvalidInputError:
        return False


def _parse(name: str, data: bytes) -> tuple[Manifest, ...]:
    """Read a file as Argo CD does."""
    encoding = "utf-16" if data.startswith((BOM_UTF16_BE, BOM_UTF16_LE)) else "utf-8-sig"
    # bytes that are not UTF-8 are replaced
    data = data.decode(encoding, errors="replace").encode()
    try:
        return parse_manifests(name, data, limits=_LIMITS)
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
