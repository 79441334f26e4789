"""Orders of `changingpack`'s garage, a hand that edits them in Git, and changes asked for."""

from __future__ import annotations

import itertools
import secrets
from dataclasses import dataclass, replace
from pathlib import PurePosixPath
from typing import Any

from forgehands import allow_squash_merges

from ground.names import CommitSha, OrderId, RepoId, TeamName, blob_sha
from orderkit.core.order import ledger, order_file
from orderkit.core.order.change import FieldEdit
from orderkit.flows.change import Changed, ChangeRequest, change
from orderkit.flows.change.reviewing import merge_unreviewed
from orderkit.flows.order.registering import Registration, register
from orderkit.flows.platform import Platform, ledger_snapshot
from orderkit.flows.team.teams import add_team
from orderkit.ports.forge import Commit, FileChange, MergeStyle, Operation
from orderkit.ports.requesters import Requester
from yamlfiles.manifests import parse_manifests

XR = PurePosixPath("manifests", "xgarage.yaml")
_numbers = itertools.count(1)
EVE = Requester("user:default/eve")


def ask(bay: Bay, *edits: FieldEdit, **more: Any) -> Changed:
    """Change an order as the flow's callers do."""
    platform = more.pop("platform", bay.platform)
    wanted = {"requester": EVE, **more}
    return change(platform, ChangeRequest(order=bay.order, edits=edits, **wanted))


def set_(path: str, value: object) -> FieldEdit:
    return FieldEdit(path, "set", value)


@dataclass(frozen=True)
class Bay:
    """An order, and a hand that edits its repository past every flow."""

    platform: Platform
    name: str
    team: str = ""
    """Empty: `TEAM`, of which the forge tells the service nothing."""

    @property
    def order(self) -> OrderId:
        return OrderId(f"garage-{self.name}")

    @property
    def repo(self) -> RepoId:
        return RepoId(self.team or TEAM, self.order)

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

    def put_if(self, path: PurePosixPath, seen: str, new: str) -> CommitSha:
        """Commit a file by hand if it still is what was seen; raises ConflictError if not."""
        change = FileChange(path, new.encode(), blob_sha(seen.encode()))
        by_hand = Operation(f"hand-{next(_numbers)}", "user:default/hand", "by hand")
        return self.platform.forge.write(self.repo, [change], by_hand).commit

    def edit(self, old: str, new: str, *, branch: str = "main") -> CommitSha:
        """Replace a piece of the XR's text by hand."""
        text = self.text(ref=branch)
        assert old in text
        return self.put({XR: text.replace(old, new)}, branch=branch)


def merge(
    bay: Bay, number: int, style: MergeStyle = MergeStyle.MERGE, *, deadline_s: float = 30.0
) -> None:
    """Merge a pull request as the platform does, without asking who approved it."""
    if style is MergeStyle.SQUASH:
        allow_squash(bay)
    pull = bay.platform.forge.pull(bay.repo, number)
    assert pull is not None
    merging = Operation(f"merge-{number}", "user:default/boss", f"Merge #{number}")
    merge_unreviewed(bay.platform, bay.repo, pull, merging, style=style, deadline_s=deadline_s)


def allow_squash(bay: Bay) -> None:
    """Let the forge squash pull requests, as in orders of earlier releases."""
    allow_squash_merges(bay.platform.forge, bay.repo)


TEAM = TeamName(f"bays-{secrets.token_hex(3)}")
_RECORD = """apiVersion: orderkit.dev/v1alpha1
kind: Order
metadata:
  name: {order}
spec:
  kit: garage
  team: {team}
  requester: user:default/eve
  ordered: {{}}
"""
_XR = """# This file is the order.
apiVersion: blog.opsbogus.dev/v1alpha1
kind: XGarage
metadata:
  name: "{order}"
spec:
  teamName: "{name}"
  stage: "stage1"
"""


def new_bay(platform: Platform, team: str = "") -> Bay:
    """Return a registered order at stage1, without the detour through a template."""
    bay = new_repository(platform, f"bay-{next(_numbers):03d}", team)
    register(
        _told(platform, team),
        Registration(bay.order, "garage", TeamName(bay.repo.owner), "user:default/eve"),
    )
    return bay


def _ensure_team(platform: Platform, team: TeamName) -> None:
    """Add a team once: adding it again looks at each of its orders."""
    if ledger.team_path(team) not in ledger_snapshot(platform).blobs:
        add_team(platform, team, requester="user:default/test")


def _told(platform: Platform, team: str) -> Platform:
    """Return a platform that gives no webhook to the team of which the service is told nothing."""
    return platform if team else replace(platform, webhook=None)


def new_repository(platform: Platform, name: str, team: str = "") -> Bay:
    """Return an order's repository that somebody made by hand; nothing is registered."""
    bay = Bay(platform, name, team)
    _ensure_team(_told(platform, team), TeamName(bay.repo.owner))
    platform.forge.ensure_repo(bay.repo, description="")
    files = {order_file.PATH: _RECORD, XR: _XR}
    changes = [
        FileChange(
            path, text.format(order=bay.order, name=bay.name, team=bay.repo.owner).encode(), None
        )
        for path, text in files.items()
    ]
    why = Operation(f"order-{bay.order}", "user:default/eve", f"Order {bay.order}")
    platform.forge.write(bay.repo, changes, why)
    return bay
