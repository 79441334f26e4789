"""
What an AppProject permits: repositories, destinations, kinds, and whether automated sync may begin.

The rules are Argo CD's (read from its source, 3.2, and tried on it): globs in which ``*`` stops at
a slash in repositories and nowhere else, ``!`` in front forbids, forbidding wins. A cluster-scoped
kind needs an entry in ``clusterResourceWhitelist``; for namespaced kinds an absent
``namespaceResourceWhitelist`` permits all, an empty one none. A source or destination that is not
permitted makes the Application's spec invalid; a kind or namespace fails the sync of what needs it,
and objects of it that are there are not seen, so never pruned.

Not looked at: roles, signature keys, orphaned resources, source namespaces,
``permitOnlyProjectScopedClusters`` (there is one cluster).

`is_held` judges sync windows as Argo CD does (docs, Sync Windows): a window concerns an Application
if its name, namespace or cluster matches, all of them with ``andOperator``; a deny window that is
open holds it back, and so does an allow window unless one is open. Schedules have five fields. An
operation that somebody requests is not held back here.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from fnmatch import fnmatchcase
from typing import Any
from zoneinfo import ZoneInfo

from ground.errors import InvalidInputError
from ground.objects.kube_objects import Kind, Manifest, ObjectKey, dig, metadata
from orderkit_standins.argocd.spec import IN_CLUSTER_NAME, IN_CLUSTER_URL, AppSpec, InvalidSpecError
from orderkit_standins.globs import compile_glob

_DENY = "!"


@dataclass(frozen=True, slots=True)
class Project:
    """An AppProject, read once. Lists of kinds are pairs of group and kind, with wildcards."""

    name: str
    sources: tuple[str, ...] = ("*",)
    destinations: tuple[Mapping[str, Any], ...] = ()
    cluster_kinds: tuple[tuple[str, str], ...] = ()
    cluster_denied: tuple[tuple[str, str], ...] = ()
    namespaced_kinds: tuple[tuple[str, str], ...] | None = None
    """None: all."""
    namespaced_denied: tuple[tuple[str, str], ...] = ()

    def refusal(self, kind: Kind, namespace: str | None) -> str:
        """
        Say why an object may not be delivered; empty if it may.

        Args:
            namespace: None if the kind is cluster-scoped.
        """
        if not self.permits_kind(kind, is_namespaced=namespace is not None):
            return f"resource {kind.group}:{kind.kind} is not permitted in project {self.name}"
        if namespace is not None and not self.permits_namespace(namespace):
            return f"namespace {namespace} is not permitted in project '{self.name}'"
        return ""

    def permits(self, key: ObjectKey) -> bool:
        """Say whether the project permits to see and delete an existing object."""
        return not self.refusal(key.kind, key.namespace or None)

    def permits_kind(self, kind: Kind, *, is_namespaced: bool) -> bool:
        """Say whether objects of a kind may be delivered."""
        if is_namespaced:
            permitted, denied = self.namespaced_kinds, self.namespaced_denied
        else:
            permitted, denied = self.cluster_kinds, self.cluster_denied
        return (permitted is None or _is_listed(kind, permitted)) and not _is_listed(kind, denied)

    def permits_namespace(self, namespace: str) -> bool:
        """Say whether this namespace of the one cluster is a permitted destination."""
        is_permitted = False
        for destination in self.destinations:
            name_matches, served = (
                _glob(destination, "name", IN_CLUSTER_NAME),
                _glob(destination, "server", IN_CLUSTER_URL),
            )
            namespace_matches = _glob(destination, "namespace", namespace)
            if (name_matches or served) and namespace_matches:
                is_permitted = True
            elif _forbids(
                destination,
                name_matches=name_matches,
                served=served,
                namespace_matches=namespace_matches,
            ):
                return False
        return is_permitted

    def permits_source(self, url: str) -> bool:
        """Say whether Applications may deliver from a repository."""
        source_url, is_permitted = _normal(url), False
        for pattern in self.sources:
            if pattern.startswith(_DENY):
                if matches(_normal(pattern[1:]), source_url, separator="/"):
                    return False
                is_permitted = True  # as in Argo CD: what is not forbidden is thereby permitted
            elif matches(_normal(pattern), source_url, separator="/"):
                is_permitted = True
        return is_permitted


def read_project(project: Manifest) -> Project:
    """Read an AppProject."""
    spec = dig(project, "spec", default={}) or {}
    return Project(
        name=str(metadata(project)["name"]),
        sources=tuple(map(str, spec.get("sourceRepos") or ())),
        destinations=tuple(spec.get("destinations") or ()),
        cluster_kinds=_kinds(spec.get("clusterResourceWhitelist") or ()),
        cluster_denied=_kinds(spec.get("clusterResourceBlacklist") or ()),
        namespaced_kinds=_whitelist(spec.get("namespaceResourceWhitelist")),
        namespaced_denied=_kinds(spec.get("namespaceResourceBlacklist") or ()),
    )


def check_project(spec: AppSpec, project: Manifest | None) -> Project:
    """
    Return what an Application's project permits, proved to permit the Application itself.

    Raises:
        InvalidSpecError: It does not exist, or does not permit the source or destination.
    """
    if project is None:
        raise InvalidSpecError(
            f"Application referencing project {spec.project} which does not exist"
        )
    permissions = read_project(project)
    url, namespace = spec.source.repo_url, spec.destination_namespace
    if not permissions.permits_source(url):
        raise InvalidSpecError(
            f"application repo {url} is not permitted in project '{permissions.name}'"
        )
    if not permissions.permits_namespace(namespace):
        raise InvalidSpecError(
            f"application destination server '{IN_CLUSTER_URL}' and namespace '{namespace}' do "
            f"not match any of the allowed destinations in project '{permissions.name}'"
        )
    return permissions


def _whitelist(entries: Sequence[Mapping[str, Any]] | None) -> tuple[tuple[str, str], ...] | None:
    return None if entries is None else _kinds(entries)


def _kinds(entries: Sequence[Mapping[str, Any]]) -> tuple[tuple[str, str], ...]:
    return tuple((str(entry.get("group", "")), str(entry.get("kind", ""))) for entry in entries)


def _is_listed(kind: Kind, rules: Sequence[tuple[str, str]]) -> bool:
    return any(
        fnmatchcase(kind.kind, name) and fnmatchcase(kind.group, group) for group, name in rules
    )


def _glob(rule: Mapping[str, Any], field: str, value: str) -> bool:
    pattern = str(rule.get(field) or "")
    if pattern.startswith(_DENY):
        return not matches(pattern[1:], value)
    return matches(pattern, value)


def _forbids(
    rule: Mapping[str, Any], *, name_matches: bool, served: bool, namespace_matches: bool
) -> bool:
    """Say whether a rule that does not match is one that forbids."""
    name, server, namespace = (
        str(rule.get(field) or "").startswith(_DENY) for field in ("name", "server", "namespace")
    )
    return (
        (name and not name_matches)
        or (server and not served and namespace_matches)
        or (namespace and not namespace_matches and served)
    )


def matches(pattern: str, value: str, *, separator: str = "") -> bool:
    """Say whether a value matches one of Argo CD's patterns."""
    if pattern == "*":
        return True
    try:
        return compile_glob(pattern, separator).fullmatch(value) is not None
    except InvalidInputError:
        return False  # Argo CD treats an invalid pattern as one that matches nothing


def _normal(url: str) -> str:
    """Write a repository's address as Argo CD compares it: lower case, without ``.git``."""
    return url.strip().lower().removesuffix(".git")


_DURATION = re.compile(r"(?:(\d+)h)?(?:(\d+)m)?(?:(\d+)s)?\Z")
_MINUTE = timedelta(minutes=1)
_NAMES = {name: str(n) for n, name in enumerate(("sun", "mon", "tue", "wed", "thu", "fri", "sat"))}


def is_held(project: Manifest, name: str, namespace: str, now: datetime) -> bool:
    """Say whether an Application must not be synced automatically now."""
    own = [
        window
        for window in dig(project, "spec", "syncWindows", default=()) or ()
        if _concerns(window, name, namespace)
    ]
    allows = [_is_open(window, now) for window in own if window.get("kind") == "allow"]
    denies = [_is_open(window, now) for window in own if window.get("kind") == "deny"]
    return any(denies) or bool(allows and not any(allows))


def _concerns(window: Mapping[str, Any], name: str, namespace: str) -> bool:
    values = {
        "applications": [name],
        "namespaces": [namespace],
        "clusters": [IN_CLUSTER_NAME, IN_CLUSTER_URL],
    }
    verdicts = [
        any(matches(str(pattern), value) for pattern in window[key] for value in values[key])
        for key in values
        if window.get(key)
    ]
    return bool(verdicts) and (all if window.get("andOperator") else any)(verdicts)


def _is_open(window: Mapping[str, Any], now: datetime) -> bool:
    match = _DURATION.match(str(window.get("duration") or ""))
    fields = str(window.get("schedule") or "").lower().split()
    if match is None or len(fields) != 5:  # noqa: PLR2004 - cron has five fields
        return False
    hours, minutes, seconds = (int(number or 0) for number in match.groups())
    length = timedelta(hours=hours, minutes=minutes, seconds=seconds)
    at = now.astimezone(ZoneInfo(str(window.get("timeZone") or "UTC")))
    at = at.replace(second=0, microsecond=0)
    while now - at < length:
        if _begins(fields, at):
            return True
        at -= _MINUTE
    return False


def _begins(fields: Sequence[str], at: datetime) -> bool:
    minute, hour, day, month, weekday = fields
    is_day, is_weekday = _has(day, at.day), _has(weekday, at.isoweekday() % 7)
    days = is_day and is_weekday if "*" in (day, weekday) else is_day or is_weekday
    return _has(minute, at.minute) and _has(hour, at.hour) and _has(month, at.month) and days


def _has(field: str, number: int) -> bool:
    for part in field.split(","):
        span, _, step = part.partition("/")
        first, _, last = span.partition("-")
        if first == "*":
            first, last = "0", "99"
        low, high = (int(_NAMES.get(text, text)) for text in (first, last or first))
        if low <= number <= high and (number - low) % int(step or 1) == 0:
            return True
    return False
