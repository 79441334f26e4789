"""
The table of faulty pushes on a real Gitea, a real Argo CD and a real API server.

What Argo CD delivers all the same is decided here. Several orders take one push each at a time.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import labplatform
import pytest
import roguery
from faultypushes import PUSHES, Push, pushed_pack
from labplatform import LabPlatform, bootstrapped
from portalsides import eventually
from pusher import Pusher

from ground.names import CommitSha
from ground.objects.kube_objects import dig
from ground.visible_text import visible
from kubeschema.validate.findings import remedy, sentence
from orderkit.core.order.ledger import OrderEntry
from orderkit.flows.argocd.refreshing import application_key, nudge
from orderkit.flows.order.commit_status import CONTEXT, keep_checked
from orderkit.flows.order.order_objects import order_events
from orderkit.flows.order.order_report import OrderReport
from orderkit.flows.platform import Platform

pytestmark = pytest.mark.timeout(900)  # the lab comes up within the first test's time
TEAMS = tuple(f"wild-{number}" for number in range(7))
TRIED = tuple(push for push in PUSHES if "Force=true" not in str(push.says))
"""What Argo CD does of Force, and what holds it back, is in ``test_security_hooks``."""
ROUNDS = [TRIED[start : start + len(TEAMS)] for start in range(0, len(TRIED), len(TEAMS))]


@dataclass(frozen=True)
class Place:
    """An order of one team, and a clone of its repository."""

    platform: Platform
    entry: OrderEntry
    pusher: Pusher
    good: str

    def push(self, message: str) -> CommitSha:
        commit = CommitSha(self.pusher.commit(message, {}))
        self.pusher.push()
        nudge(self.platform.cluster, self.entry.order, commit)
        return commit

    def restore(self) -> None:
        self.pusher.git("rm", "-rqf", "--ignore-unmatch", ".")
        self.pusher.git("checkout", self.good, "--", ".")


@pytest.fixture(scope="module")
def places(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[Place]]:
    folder = tmp_path_factory.mktemp("wild-pushes")
    (folder / "lab").mkdir()
    with contextlib.ExitStack() as undo:
        pack = pushed_pack(folder / "pack")
        lab = undo.enter_context(labplatform.serving(folder / "lab", teams=TEAMS, pack=pack))
        platform = undo.enter_context(bootstrapped(lab, pack))
        with ThreadPoolExecutor(4) as threads:
            entries = list(threads.map(lambda team: roguery.place(platform, "garage", team), TEAMS))
        yield [_cloned(platform, lab, folder, entry) for entry in entries]


def _cloned(platform: Platform, lab: LabPlatform, folder: Path, entry: OrderEntry) -> Place:
    home = folder / entry.team
    home.mkdir()
    url = f"{lab.gitea.url}/{entry.repository}.git"
    pusher = Pusher.cloned(home, url, lab.gitea.user, lab.gitea.token)
    return Place(platform, entry, pusher, pusher.git("rev-parse", "HEAD"))


@pytest.mark.parametrize("pushes", ROUNDS, ids=lambda pushes: f"from {pushes[0].reason}")
def test_pushes_are_explained_by_their_files_and_forgiven(
    places: list[Place], pushes: tuple[Push, ...]
) -> None:
    tried = []
    for place, push in zip(places, pushes, strict=False):
        place.restore()
        push.change(place.pusher.clone)
        tried.append((place, push, place.push(push.reason)))
    with ThreadPoolExecutor(len(tried)) as threads:
        reports = list(threads.map(lambda each: _settled(*each), tried))
    for (place, push, commit), report in zip(tried, reports, strict=True):
        _check(place, push, commit, report)

    for place, _, _ in tried:
        place.restore()
    repaired = [(place, place.push("repair")) for place, _, _ in tried]
    for place, commit in repaired:
        report = roguery.wait_for(
            place.platform,
            place.entry,
            functools.partial(_is_ready_at, commit),
            "Ready again",
        )
        assert keep_checked(place.platform, place.entry.repository).state == "success", report


def _is_warned_of(place: Place) -> bool:
    events = order_events(place.platform, place.entry.order, limit=500)
    return any(event.type == "Warning" for event in events)


def _is_ready_at(commit: CommitSha, report: OrderReport) -> bool:
    return report.state.ready and report.delivered == commit


def _settled(place: Place, push: Push, commit: CommitSha) -> OrderReport:
    is_delivered = push.delivered or push.passes_argocd
    phases = ("Ready", "Attention") if is_delivered else ("Failing",)
    return roguery.wait_for(
        place.platform,
        place.entry,
        lambda seen: seen.state.phase in phases and seen.state.head == commit,
        f"{push.reason}: one of {phases}",
    )


def _check(place: Place, push: Push, commit: CommitSha, report: OrderReport) -> None:
    check = keep_checked(place.platform, place.entry.repository)
    statuses = place.platform.forge.statuses(place.entry.repository, commit)
    (status,) = (entry for entry in statuses if entry.context == CONTEXT)
    assert report.check is not None
    assert (check.commit, check.findings) == (commit, report.check.findings), push.reason
    assert (check.state, status.state) == (push.state, push.state), push.reason
    assert status.description.startswith(push.place or "valid"), push.reason
    if not check.findings:
        return
    first = check.findings[0]
    assert visible(sentence(first)).startswith(f"{push.place}:"), push.reason
    assert all(words in visible(sentence(first)) for words in push.says), sentence(first)
    assert push.remedy in remedy(first), push.reason
    if report.state.phase == "Failing":
        assert report.state.reason.startswith(push.place), report.state
    if report.state.phase == "Failing" and not push.is_pruned:
        assert report.delivered != commit, push.reason
        # Argo CD starts no operation where that would delete everything, and so warns of nothing
        live = place.platform.cluster.get(application_key(place.entry.order)) or {}
        if dig(live, "status", "operationState", "phase") in {"Failed", "Error"}:
            eventually(functools.partial(_is_warned_of, place))
