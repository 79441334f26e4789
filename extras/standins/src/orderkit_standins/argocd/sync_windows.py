"""
Sync windows of an AppProject: whether automated sync may begin now.

As in Argo CD (docs, Sync Windows): a window concerns an Application if its name, namespace or
cluster matches, all of them with ``andOperator``; a deny window that is open holds it back, and so
does an allow window unless one is open. Schedules have five fields. An operation that somebody
requests is not held back here.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

from ground.objects.kube_objects import Manifest, dig
from orderkit_standins.argocd.projects import matches
from orderkit_standins.argocd.spec import IN_CLUSTER_NAME, IN_CLUSTER_URL

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
