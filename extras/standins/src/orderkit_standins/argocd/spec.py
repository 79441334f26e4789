"""
An Application's spec, read once into values with Argo CD's defaults.

What the stand-in cannot deliver (Helm, Kustomize, several sources ...) is refused here with an
InvalidSpecError, never ignored. ``projects`` checks it against its AppProject.

``spec.ignoreDifferences`` names fields that comparisons ignore. Supported are JSON pointers, per
group and kind (with wildcards), name and namespace. An ignored field never counts as a difference,
but a sync still writes it, unless ``RespectIgnoreDifferences=true``. jq expressions and field
managers are refused.

`tracking_id` is Argo CD's tracking annotation as it is written at every apply;
``ground.argocd.delivery_obstacles.tracker`` reads it.
"""

from __future__ import annotations

import copy
import posixpath
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

from ground.errors import InvalidInputError, OrderkitError
from ground.objects.kube_objects import (
    APPLICATION,
    ARGOCD_NAMESPACE,
    Manifest,
    ObjectKey,
    annotations_of,
    dig,
    metadata,
)

_UNSUPPORTED = ("jqPathExpressions", "managedFieldsManagers")
_ABSENT = object()
Pointer = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class IgnoreRule:
    """One entry: which objects, which fields of them. Empty name and namespace mean any."""

    group: str
    kind: str
    name: str
    namespace: str
    pointers: tuple[Pointer, ...]

    def concerns(self, key: ObjectKey) -> bool:
        """Say whether an object is meant."""
        return (
            fnmatchcase(key.kind.group, self.group)
            and fnmatchcase(key.kind.kind, self.kind)
            and self.name in ("", key.name)
            and self.namespace in ("", key.namespace)
        )


def read_rules(entries: Iterable[Mapping[str, Any]]) -> tuple[IgnoreRule, ...]:
    """
    Read ``ignoreDifferences``.

    Raises:
        InvalidInputError: An entry uses an unsupported option.
    """
    return tuple(map(_rule, entries))


def as_it_is(
    target: Manifest, live: Manifest, rules: Iterable[IgnoreRule], key: ObjectKey
) -> Manifest:
    """
    Return the target with the ignored fields as they are in the live object.

    A copy if rules concern the object, else `target` itself.
    """
    pointers = [pointer for rule in rules if rule.concerns(key) for pointer in rule.pointers]
    if not pointers:
        return target
    respected = copy.deepcopy(target)
    for pointer in pointers:
        _set_field(respected, pointer, _live_value(live, pointer))
    return respected


def _rule(entry: Mapping[str, Any]) -> IgnoreRule:
    for field in _UNSUPPORTED:
        if entry.get(field):
            raise InvalidInputError(
                f"spec.ignoreDifferences[].{field}", entry[field], "is not supported here"
            )
    return IgnoreRule(
        group=str(entry.get("group") or ""),
        kind=str(entry.get("kind") or ""),
        name=str(entry.get("name") or ""),
        namespace=str(entry.get("namespace") or ""),
        pointers=tuple(map(_pointer, entry.get("jsonPointers") or ())),
    )


def _pointer(text: object) -> Pointer:
    """Split a JSON pointer (RFC 6901)."""
    _, *steps = str(text).split("/")
    return tuple(step.replace("~1", "/").replace("~0", "~") for step in steps)


def _steps(value: Any, pointer: Pointer) -> Iterator[Any]:
    """Yield what each step of a pointer leads to; `_ABSENT` from where it leads nowhere."""
    for step in pointer:
        if isinstance(value, dict):
            value = value.get(step, _ABSENT)
        elif isinstance(value, list) and _is_index(step, value):
            value = value[int(step)]
        else:
            value = _ABSENT
        yield value


def _is_index(step: str, items: list[Any]) -> bool:
    return step.isdecimal() and int(step) < len(items)


def _live_value(live: Manifest, pointer: Pointer) -> Any:
    return list(_steps(live, pointer))[-1] if pointer else _ABSENT


def _set_field(manifest: Manifest, pointer: Pointer, value: Any) -> None:
    """Set the field, or remove it where the object has none; without its parent do nothing."""
    *before, last = pointer or ("",)
    parent = list(_steps(manifest, tuple(before)))[-1] if before else manifest
    if isinstance(parent, dict):
        parent.pop(last, None)
        if value is not _ABSENT:
            parent[last] = copy.deepcopy(value)
    elif value is not _ABSENT and isinstance(parent, list) and _is_index(last, parent):
        parent[int(last)] = copy.deepcopy(value)


IN_CLUSTER_URL = "https://kubernetes.default.svc"
IN_CLUSTER_NAME = "in-cluster"
DEFAULT_AUTO_RETRIES = 5
"""Argo CD's limit of an automated sync without `retry`."""

GENERATE_PATHS = "argocd.argoproj.io/manifest-generate-paths"
_UNSUPPORTED_SOURCE = ("chart", "helm", "kustomize", "plugin", "ref")
_DURATION = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h)")
_UNIT_S = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}


class InvalidSpecError(OrderkitError):
    """The Application itself is wrong; its message becomes the condition InvalidSpecError."""


@dataclass(frozen=True, slots=True)
class ApplicationSource:
    """The folder an Application delivers."""

    repo_url: str
    revision: str
    path: str
    recurse: bool
    include: str = ""
    exclude: str = ""
    """Globs over paths inside the folder; empty: all, and none."""

    @property
    def names_its_tool(self) -> bool:
        """Whether it says that these are plain manifests; else files in the folder decide."""
        return bool(self.recurse or self.include or self.exclude)


@dataclass(frozen=True, slots=True)
class Automated:
    """The options of automated sync."""

    prune: bool
    self_heal: bool
    allow_empty: bool


@dataclass(frozen=True, slots=True)
class Retry:
    """How a failed operation is repeated. `limit` below zero: without end."""

    limit: int = 0
    duration_s: float = 5.0
    factor: float = 2.0
    max_s: float = 180.0
    refresh: bool = False

    def delay_s(self, failures: int) -> float:
        """Return the wait after this many failures in a row (1 is the first)."""
        return min(self.max_s, self.duration_s * self.factor ** min(failures - 1, 60))


@dataclass(frozen=True, slots=True)
class AppSpec:
    """The spec of an Application."""

    project: str
    source: ApplicationSource
    destination_namespace: str
    automated: Automated | None
    options: frozenset[str]
    history_limit: int
    ignored: tuple[IgnoreRule, ...] = ()


def read_spec(app: Manifest) -> AppSpec:
    """
    Read the spec of an Application.

    Raises:
        InvalidSpecError: A part is missing, malformed or not supported by the stand-in.
    """
    spec = dig(app, "spec", default={})
    _check_destination(dig(spec, "destination", default={}))
    if dig(spec, "sources"):
        raise InvalidSpecError("spec.sources: several sources are not supported here")
    policy = dig(spec, "syncPolicy", default={}) or {}
    return AppSpec(
        project=dig(spec, "project") or "default",
        source=read_source(dig(spec, "source", default={})),
        destination_namespace=str(dig(spec, "destination", "namespace", default="") or ""),
        automated=_automated(policy),
        options=frozenset(map(str, dig(policy, "syncOptions", default=()) or ())),
        history_limit=int(dig(spec, "revisionHistoryLimit", default=10)),
        ignored=_ignored(spec),
    )


def _ignored(spec: Mapping[str, Any]) -> tuple[IgnoreRule, ...]:
    try:
        return read_rules(spec.get("ignoreDifferences") or ())
    except InvalidInputError as error:
        raise InvalidSpecError(str(error)) from error


def read_source(source: Mapping[str, Any]) -> ApplicationSource:
    """
    Read one source.

    Raises:
        InvalidSpecError: It names no folder of a repository, or needs a tool we do not have.
    """
    for field in _UNSUPPORTED_SOURCE:
        if source.get(field):
            raise InvalidSpecError(f"spec.source.{field} is not supported here")
    if dig(source, "directory", "jsonnet"):
        raise InvalidSpecError("spec.source.directory.jsonnet is not supported here")
    repo_url, path = source.get("repoURL"), source.get("path")
    if not repo_url or not path:
        raise InvalidSpecError(
            "spec.source.repoURL and either spec.source.path or spec.source.chart are required"
        )
    return ApplicationSource(
        repo_url=str(repo_url),
        revision=str(source.get("targetRevision") or "HEAD"),
        path=str(path),
        recurse=bool(dig(source, "directory", "recurse", default=False)),
        include=str(dig(source, "directory", "include", default="")),
        exclude=str(dig(source, "directory", "exclude", default="")),
    )


def read_retry(retry: Mapping[str, Any] | None) -> Retry:
    """
    Read a retry strategy; absent means no retries, with Argo CD's delays.

    Raises:
        InvalidSpecError: A duration is malformed.
    """
    if retry is None:
        return Retry(limit=0)
    backoff = dig(retry, "backoff", default={}) or {}
    usual = Retry()
    return Retry(
        limit=int(retry.get("limit") or 0),
        duration_s=_seconds(backoff.get("duration"), default=usual.duration_s),
        factor=float(backoff.get("factor") or usual.factor),
        max_s=_seconds(backoff.get("maxDuration"), default=usual.max_s),
        refresh=bool(retry.get("refresh")),
    )


def is_deleting(manifest: Manifest) -> bool:
    """Say whether an object waits for its finalizers."""
    return bool(metadata(manifest).get("deletionTimestamp"))


def _check_destination(destination: Mapping[str, Any]) -> None:
    server, name = destination.get("server"), destination.get("name")
    if server and name:
        raise InvalidSpecError(
            f"application destination can't have both name and server defined: {name} {server}"
        )
    if name and name != IN_CLUSTER_NAME:
        raise InvalidSpecError(f"there are no clusters with this name: {name}")
    if server and server.rstrip("/") != IN_CLUSTER_URL:
        raise InvalidSpecError(
            f'error getting cluster by server "{server}": rpc error: code = NotFound desc = '
            f'cluster "{server}" not found'
        )
    if not server and not name:
        raise InvalidSpecError("Destination server missing from app spec")


def _automated(policy: Mapping[str, Any]) -> Automated | None:
    automated = policy.get("automated")
    if automated is None or automated.get("enabled") is False:
        return None
    return Automated(
        prune=bool(automated.get("prune")),
        self_heal=bool(automated.get("selfHeal")),
        allow_empty=bool(automated.get("allowEmpty")),
    )


def _seconds(text: object, *, default: float) -> float:
    if text in (None, ""):
        return default
    parts = _DURATION.findall(str(text))
    if "".join(number + unit for number, unit in parts) == str(text):
        return sum(float(number) * _UNIT_S[unit] for number, unit in parts)
    if str(text).isdigit():
        return float(str(text))
    raise InvalidSpecError(f"{text!r} is not a duration such as 5s or 3m")


def scope(app: Manifest, path: str) -> tuple[str, ...]:
    """
    Return the folders, each with a final slash, in which a change may concern an Application.

    From the annotation ``manifest-generate-paths``: entries separated by ``;``, from the
    repository's root with a leading slash, else from the Application's own path. Empty: all.
    """
    annotation = annotations_of(app).get(GENERATE_PATHS, "")
    entries = [entry.strip() for entry in annotation.split(";") if entry.strip()]
    folders = (
        entry.lstrip("/") if entry.startswith("/") else posixpath.join(path, entry)
        for entry in entries
    )
    return tuple(f"{posixpath.normpath(folder)}/" for folder in folders)


def application_key(name: str) -> ObjectKey:
    """Return the key of an Application; all live in Argo CD's own namespace."""
    return ObjectKey(APPLICATION, name, ARGOCD_NAMESPACE)


def tracking_id(app: str, key: ObjectKey, destination: str) -> str:
    """Return the annotation's value. A cluster-scoped object gets the app's destination."""
    kind = key.kind
    return f"{app}:{kind.group}/{kind.kind}:{key.namespace or destination}/{key.name}"


def is_owned(live: Manifest) -> bool:
    """Say whether another object owns it; such objects are never pruned by Argo CD."""
    return bool(metadata(live).get("ownerReferences"))
