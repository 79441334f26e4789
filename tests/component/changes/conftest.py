"""A platform whose garage has fields to change, orders on it, and a hand that edits Git."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

import pytest
from changingpack import changing_pack
from commands import Command, Done

from orderkit.adapters.embedded.platform import Ports
from orderkit.cli.main import run
from orderkit.cli.running import Running, RunRequest, running
from orderkit.core.manifests import parse_manifests
from orderkit.core.names import CommitSha, OrderId, RepoId
from orderkit.flows import ordering
from orderkit.flows.platform import Platform
from orderkit.flows.teams import add_team
from orderkit.ports.forge import Commit, FileChange, Operation

XR = PurePosixPath("manifests", "xgarage.yaml")
_numbers = itertools.count(1)


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    folder = tmp_path_factory.mktemp("changes")
    request = RunRequest(folder / "state", changing_pack(folder / "pack"), Ports(0, 0, 0, 0), ())
    with running(request, on_step=lambda *_: None) as found:
        yield found


@pytest.fixture
def platform(site: Running) -> Platform:
    return site.platform


@pytest.fixture
def orderkit(site: Running, capsys: pytest.CaptureFixture[str]) -> Command:
    """Run ``orderkit ARGUMENTS`` against the platform."""
    settings = site.embedded.state.folder / "platform.yaml"

    def command(*arguments: str) -> Done:
        capsys.readouterr()
        code = run([*arguments, "--platform", str(settings)])
        captured = capsys.readouterr()
        return Done(code, captured.out, captured.err)

    return command


@dataclass(frozen=True)
class Bay:
    """An order, and a hand that edits its repository past every flow."""

    platform: Platform
    team: str

    @property
    def order(self) -> OrderId:
        return OrderId(f"garage-{self.team}")

    @property
    def repo(self) -> RepoId:
        return RepoId(self.team, self.order)

    @property
    def head(self) -> CommitSha:
        found = self.platform.forge.head(self.repo)
        assert found is not None
        return found

    def text(self, path: PurePosixPath = XR, ref: str = "main") -> str:
        found = self.platform.forge.read(self.repo, path, ref)
        assert found is not None
        return found.text

    def spec(self, ref: str = "main") -> dict[str, Any]:
        """Return the spec as Kubernetes reads it."""
        (xr,) = parse_manifests(str(XR), self.text(ref=ref).encode())
        found: dict[str, Any] = xr["spec"]
        return found

    def commits(self) -> list[Commit]:
        return list(self.platform.forge.commits(self.repo, limit=200))

    def put(self, files: dict[PurePosixPath, str | None], *, branch: str = "main") -> CommitSha:
        """Commit files by hand; None removes one."""
        head = self.platform.forge.head(self.repo, branch)
        assert head is not None
        there = self.platform.forge.tree(self.repo, head)
        changes = [
            FileChange(path, None if text is None else text.encode(), there.get(path))
            for path, text in files.items()
        ]
        by_hand = Operation(f"hand-{next(_numbers)}", "user:default/hand", "by hand")
        return self.platform.forge.write(self.repo, changes, by_hand, branch=branch).commit

    def edit(self, old: str, new: str, *, branch: str = "main") -> CommitSha:
        """Replace a piece of the XR's text by hand."""
        text = self.text(ref=branch)
        assert old in text
        return self.put({XR: text.replace(old, new)}, branch=branch)


def new_bay(platform: Platform) -> Bay:
    """Return a registered order at stage1, of a team that nobody else uses."""
    team = f"bay-{next(_numbers):03d}"
    add_team(platform, team, requester="user:default/test")
    wanted = ordering.OrderRequest(
        "garage", {"team_name": team, "stage": "stage1"}, "user:default/eve", wait=False
    )
    ordering.order(platform, wanted, on_step=lambda *_: None)
    return Bay(platform, team)


@pytest.fixture
def bay(platform: Platform) -> Bay:
    """An order of its own."""
    return new_bay(platform)


@pytest.fixture(scope="session")
def quiet_bay(site: Running) -> Bay:
    """An order that many tests look at and none may change."""
    return new_bay(site.platform)
