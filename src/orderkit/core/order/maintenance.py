"""
Maintenance windows: when changes of a kit's orders may be delivered.

Argo CD holds what is merged until a window opens, by sync windows of the team's AppProject. Pure:
`sync_windows` writes them, `opens_at` reads the same windows for people. Argo CD joins windows: any
that is open lets an Application sync, and one that has a window does not sync outside of it (docs,
Sync Windows; observed on 3.6.1).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, time, timedelta
from typing import Any
from zoneinfo import ZoneInfo

from orderkit.core.kit.order_terms import DAYS, MaintenanceWindow

"""In the order of ``datetime.weekday``."""


def sync_windows(windows: Mapping[str, Sequence[MaintenanceWindow]]) -> list[dict[str, Any]]:
    """
    Return the sync windows of an AppProject.

    Args:
        windows: By kit. Argo CD matches Applications by name, so these are named ``<kit>-*``.
    """
    return [
        {
            "kind": "allow",
            "schedule": _schedule(window),
            "duration": _duration(window),
            "timeZone": window.zone,
            "applications": [f"{kit}-*"],
        }
        for kit, of_kit in sorted(windows.items())
        for window in of_kit
    ]


def _schedule(window: MaintenanceWindow) -> str:
    start = _time(window.start)
    days = ",".join(str((DAYS.index(day) + 1) % 7) for day in window.days)  # cron: Sunday is 0
    return f"{start.minute} {start.hour} * * {days}"


def _duration(window: MaintenanceWindow) -> str:
    minutes = int(length_of(window).total_seconds()) // 60
    return f"{minutes // 60}h{minutes % 60}m"


def length_of(window: MaintenanceWindow) -> timedelta:
    """Return how long a window is open; one that ends before it begins ends the next day."""
    start, end = (
        timedelta(hours=at.hour, minutes=at.minute)
        for at in (_time(window.start), _time(window.end))
    )
    return end - start if end > start else end - start + timedelta(days=1)


def opens_at(windows: Iterable[MaintenanceWindow], now: datetime) -> datetime | None:
    """Return when the next window opens, in its zone; None if one is open, or if there is none."""
    openings = []
    for window in windows:
        local = now.astimezone(ZoneInfo(window.zone))
        for offset in range(-1, 8):
            day = (local + timedelta(days=offset)).date()
            if DAYS[day.weekday()] not in window.days:
                continue
            opening = datetime.combine(day, _time(window.start), ZoneInfo(window.zone))
            if opening <= now < opening + length_of(window):
                return None
            if opening > now:
                openings.append(opening)
    return min(openings, default=None)


def _time(text: str) -> time:
    return time.fromisoformat(text)
