"""A garage whose stage 3 and whose mottos need somebody's agreement, and people who may give it."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from changingpack import changing_pack
from forgeusers import ForgeUser, new_user
from packcopies import published

from ground.errors import NotFoundError
from ground.names import TeamName
from orderkit.core.order.ledger import OrderEntry
from orderkit.flows.order import placing
from orderkit.flows.order.order_report import OrderReport, status
from orderkit.flows.platform import Platform, pack_snapshot, read_text
from orderkit.ports.forge import PullRequest, TeamRight
from orderkit.ports.requesters import Requester
from yamlfiles import yaml11

FINANCE = "finance"
RULES: list[dict[str, Any]] = [
    {
        "when": "new.stage == 'stage3' && (order.isNew || old.stage != 'stage3')",
        "by": [f"group:default/{FINANCE}"],
        "because": "stage 3 is expensive",
    },
    {
        "when": "order.isNew ? new.stage == 'stage2'"
        " : has(new.motto) && (!has(old.motto) || old.motto != new.motto)",
        "by": ["team", "platform"],
        "count": 2,
        "because": "everybody hears of it",
    },
]


def approval_pack(target: Path, *, bypass: str = "refuse") -> Path:
    """Write a pack whose garage asks for approval."""
    changing_pack(target)
    kit = target / "templates" / "garage" / "kit.yaml"
    document = yaml.safe_load(kit.read_text())
    document["spec"]["approval"] = {"bypass": bypass, "rules": RULES}
    kit.write_text(yaml.safe_dump(document, sort_keys=False))
    return target


@dataclass(frozen=True)
class Desk:
    """A platform with people: eve orders, frank is of finance, carol is of the team."""

    platform: Platform
    admin: ForgeUser
    eve: ForgeUser
    frank: ForgeUser
    carol: ForgeUser
    team: TeamName

    def order(self, *, by: ForgeUser | None = None, **values: str) -> OrderReport:
        """Order a garage and do not wait; return its report."""
        requester = f"user:default/{(by or self.eve).login}"
        values = {"team_name": self.team, "stage": "stage3", **values}
        request = placing.TaskRequest("garage", values, Requester(requester))
        return placing.order(self.platform, request, wait_s=None).report

    def proposal(self, entry: OrderEntry) -> PullRequest:
        """Return the newest pull request that proposes an order."""
        pulls = self.platform.forge.pulls(self.platform.ledger, state="all")
        return next(p for p in pulls if p.title.startswith(f"{entry.order}:"))

    def approve(self, pull: PullRequest, by: ForgeUser, **more: Any) -> None:
        path = f"/repos/{self.platform.ledger}/pulls/{pull.number}/reviews"
        by.api("POST", path, {"event": "APPROVED", **more})

    def phase(self, entry: OrderEntry) -> str:
        try:
            return status(self.platform, entry.order).state.phase
        except NotFoundError:
            return "Ended"

    def in_ledger(self, entry: OrderEntry) -> str:
        """Return the order's Application as the ledger has it; empty if it has none."""
        platform = self.platform
        return read_text(platform.forge, platform.ledger, entry.application_path, "main") or ""


def published_approval(
    platform: Platform, rules: Sequence[dict[str, Any]], *, bypass: str = "refuse"
) -> AbstractContextManager[None]:
    """Let the published garage ask for other agreements for a while."""
    return published_terms(platform, approval={"bypass": bypass, "rules": [*rules]})


def published_terms(platform: Platform, **spec: Any) -> AbstractContextManager[None]:
    """Let the published garage say something else in its kit.yaml for a while."""
    path = next(p for p in pack_snapshot(platform).blobs if p.match("garage/kit.yaml"))
    before = read_text(platform.forge, platform.pack_repo, path, "main")
    document = yaml11.load(before or "", name="kit", schema={})
    document["spec"].update(spec)
    return published(platform, path, yaml11.dump(document))


def person(user: ForgeUser) -> Requester:
    """Return somebody as the service knows them from a token."""
    return Requester(f"user:default/{user.login}", "a token")


def new_desk(platform: Platform, admin: ForgeUser) -> Desk:
    """Add a team of its own, and people: frank is a member of the organisation of finance."""
    from orderkit.flows.team.teams import TeamChange, add_team

    eve, frank, carol = (new_user(admin, name) for name in ("eve", "frank", "carol"))
    team = TeamName(f"crew{secrets.token_hex(3)}")
    change = TeamChange(members=(eve.login, carol.login))
    add_team(platform, team, requester="user:default/boss", change=change)
    if admin.call("GET", f"/orgs/{FINANCE}").status_code != 200:
        admin.api("POST", "/orgs", {"username": FINANCE})
    members = [*(m.login for m in platform.forge.members(FINANCE, "approvers")), frank.login]
    platform.forge.ensure_access(
        FINANCE, "approvers", right=TeamRight.READ, members=members, repositories=()
    )
    return Desk(platform, admin, eve, frank, carol, team)
