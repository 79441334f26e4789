"""Maintenance windows: when they open, and how Argo CD is told."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from orderkit.core.kit.order_terms import MaintenanceWindow
from orderkit.core.order.ledger_applications import opens_at, sync_windows
from orderkit_standins.argocd.projects import is_held

NIGHT = MaintenanceWindow(("fri", "sat"), "22:00", "04:30", "Europe/Berlin")
"""In November, Berlin is an hour ahead of UTC."""
PROJECT = {"spec": {"syncWindows": sync_windows({"garage": (NIGHT,)})}}


def at(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


@pytest.mark.parametrize(
    ("reason", "now", "opens"),
    [
        ("an afternoon before", "2026-11-20T15:00", "2026-11-20T21:00"),
        ("a minute before", "2026-11-20T20:59", "2026-11-20T21:00"),
        ("as it opens", "2026-11-20T21:00", None),
        ("after midnight", "2026-11-21T02:00", None),
        ("its last minute", "2026-11-21T03:29", None),
        ("as it closes", "2026-11-21T03:30", "2026-11-21T21:00"),
        ("Monday", "2026-11-23T02:00", "2026-11-27T21:00"),
    ],
)
def test_people_and_argo_cd_agree_when_it_opens(reason: str, now: str, opens: str | None) -> None:
    opening = opens_at([NIGHT], at(now))

    assert (opening.astimezone(UTC) if opening else None) == (at(opens) if opens else None), reason
    assert is_held(PROJECT, "garage-ae86", "team-ae86", at(now)) is (opens is not None)


def test_argo_cd_is_told_which_orders_wait() -> None:
    assert sync_windows({"garage": (NIGHT,)}) == [
        {
            "kind": "allow",
            "schedule": "0 22 * * 5,6",
            "duration": "6h30m",
            "timeZone": "Europe/Berlin",
            "applications": ["garage-*"],
        }
    ]
    assert not is_held(PROJECT, "locker-ae86", "team-ae86", at("2026-11-23T02:00"))


@pytest.mark.parametrize(
    ("reason", "window", "held"),
    [
        ("deny wins over allow", {"kind": "deny", "applications": ["*"]}, True),
        ("of another namespace", {"kind": "deny", "namespaces": ["other"]}, False),
        ("either matches", {"kind": "deny", "namespaces": ["other"], "applications": ["*"]}, True),
        (
            "both have to match",
            {
                "kind": "deny",
                "namespaces": ["other"],
                "applications": ["*"],
                "andOperator": True,
            },
            False,
        ),
    ],
)
def test_windows_are_joined_as_argo_cd_joins_them(
    reason: str, window: dict[str, object], *, held: bool
) -> None:
    open_now = {"schedule": "* * * * *", "duration": "1h"}
    allow = {"kind": "allow", "applications": ["garage-*"], **open_now}
    project = {"spec": {"syncWindows": [allow, {**window, **open_now}]}}

    assert is_held(project, "garage-ae86", "team-ae86", at("2026-11-23T02:00")) is held, reason


def test_without_windows_nothing_waits() -> None:
    assert opens_at([], at("2026-11-23T02:00")) is None
    assert not is_held({"spec": {}}, "garage-ae86", "team-ae86", at("2026-11-23T02:00"))
