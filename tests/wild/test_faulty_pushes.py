"""A faulty push is explained alike by ``validate``, ``status`` and the commit's own status."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path

import pytest
from commands import Command
from faultypushes import PUSHES, Push
from pusher import Pusher
from roguery import place

from ground.names import CommitSha, RepoId, TeamName
from orderkit.cli.connecting import token
from orderkit.cli.main import run
from orderkit.flows.argocd.refreshing import nudge
from orderkit.flows.order.commit_status import CONTEXT
from orderkit.flows.order.order_report import OrderReport, status
from orderkit.flows.repeating import until
from orderkit.flows.team.teams import add_team
from orderkit.ports.forge import CommitStatus
from orderkit_standins.serve_platform import Running

TEAM = "wild-pushes"
WAIT_S = 20.0


@dataclass(frozen=True)
class Desk:
    """An order, a clone of its repository, and a copy of its files while they are well."""

    running: Running
    order: str
    pusher: Pusher
    before: Path
    good: str
    pack: Path

    def push(self, message: str) -> CommitSha:
        commit = CommitSha(self.pusher.commit(message, {}))
        self.pusher.push()
        nudge(self.running.platform.cluster, self.order, commit)
        return commit

    def restore(self) -> None:
        self.pusher.git("rm", "-rqf", "--ignore-unmatch", ".")
        self.pusher.git("checkout", self.good, "--", ".")

    def repair(self) -> CommitSha:
        self.restore()
        return self.push("repair")

    def told(self, commit: CommitSha) -> CommitStatus:
        """Wait for the commit's status, which the forge's webhook brings about."""
        platform, repo = self.running.platform, RepoId(TEAM, self.order)

        def look() -> CommitStatus | None:
            statuses = platform.forge.statuses(repo, commit)
            return next((entry for entry in statuses if entry.context == CONTEXT), None)

        found = until(
            platform.clock, look, lambda seen: seen is not None, timeout_s=WAIT_S, goal="status"
        )
        assert found is not None
        return found

    def settled(self, commit: CommitSha, phases: tuple[str, ...]) -> OrderReport:
        """Wait until Argo CD has taken a stand on a commit; return the order's report."""
        platform = self.running.platform
        return until(
            platform.clock,
            lambda: status(platform, self.order),
            lambda seen: seen.state.revision == commit and seen.state.phase in phases,
            timeout_s=WAIT_S,
            goal=f"one of {phases}",
            why_not=lambda seen: f"{seen.state}",
        )


@pytest.fixture(scope="module")
def desk(platform: Running, whole_pack: Path, tmp_path_factory: pytest.TempPathFactory) -> Desk:
    add_team(platform.platform, TeamName(TEAM), requester="user:default/test")
    entry = place(platform.platform, "garage", TEAM)
    file = platform.embedded.state.folder / "platform.yaml"
    assert run(["platform", "webhook", "--team", TEAM, "--platform", str(file)]) == 0
    folder = tmp_path_factory.mktemp("pushes")
    forge = platform.settings.forge
    url = f"{forge.url}/{entry.repository}.git"
    pusher = Pusher.cloned(folder, url, "orderkit", token(forge))
    before = folder / "before"
    shutil.copytree(pusher.clone, before, ignore=shutil.ignore_patterns(".git"))
    return Desk(platform, entry.order, pusher, before, pusher.git("rev-parse", "HEAD"), whole_pack)


@pytest.mark.parametrize("push", PUSHES, ids=lambda push: push.reason)
def test_a_push_is_explained_alike_everywhere(
    desk: Desk, orderkit: Command, capsys: pytest.CaptureFixture[str], push: Push
) -> None:
    clone = desk.pusher.clone
    desk.restore()
    push.change(clone)
    commit = desk.push(push.reason)
    capsys.readouterr()

    code = run(["validate", str(clone), "--old", str(desk.before), "--pack", str(desk.pack)])
    text = capsys.readouterr().out.replace(f"{clone}/", "")
    if push.delivered or push.passes_argocd:
        desk.settled(commit, ("Ready", "Attention"))
    report = status(desk.running.platform, desk.order)
    people = orderkit("status", desk.order).out
    told = desk.told(commit)
    changed = orderkit("change", desk.order, "stage=stage2") if push.refuses_changes else None
    dry_run = orderkit("change", desk.order, "stage=stage2", "--dry-run") if push.warns else None

    assert code == (1 if push.state == "failure" else 0), text
    for words in push.says:
        assert words in text
        assert words in people
    if push.says:
        place = push.place.removeprefix("manifests/") if push.place == "manifests" else push.place
        assert place in text.splitlines()[0]
        assert place in people
        assert push.remedy in text
        assert push.remedy in people
    if dry_run:
        assert dry_run.code == 0, dry_run.err
        assert push.says[0] in dry_run.out + dry_run.err
    if changed:
        assert changed.code in (1, 4), changed.err
        assert all(words in changed.err for words in (*push.says, push.place, push.remedy))
        assert desk.running.platform.forge.head(RepoId(TEAM, desk.order)) == commit
    if push.state == "failure" and not push.passes_argocd:
        assert push.place in report.state.reason
        assert push.remedy in report.state.advice
    if not (push.delivered or push.passes_argocd or push.is_pruned):
        assert report.delivered != commit
        assert f"delivered   {commit[:8]}" not in people
    assert told.state == push.state
    assert told.description.startswith(push.place or "valid")
    assert len(told.description) <= 140
    assert told.target_url.startswith(desk.running.settings.forge.url)

    repaired = desk.repair()
    assert desk.told(repaired).state == "success"
    assert desk.settled(repaired, ("Ready",)).delivered == repaired
