"""
The teams that platform.yaml names may order; what the ledger has of others is up to date.

The service hears of pull requests of all.
"""

from __future__ import annotations

from dataclasses import dataclass

from ground.errors import AccessError
from orderkit.core.order import ledger
from orderkit.flows.install.bootstrapping.steps import BootstrapContext, Look, Say, StepVerdict
from orderkit.flows.platform import snapshot
from orderkit.flows.team.pinning import pin_teams, unpinned_teams
from orderkit.flows.team.teams import add_team
from orderkit.flows.team.webhooks import ensure_team_webhook, unhooked_teams

_WEBHOOK_ADVICE = "pull requests made by hand get no plan until 'orderkit platform webhook' is run"


@dataclass(frozen=True, slots=True)
class TeamStep:
    """One team: its organisation, its part of the ledger, its AppProject."""

    site: BootstrapContext
    team: str

    @property
    def name(self) -> str:
        return f"team {self.team}"

    def look(self) -> Look:
        ledger_files = snapshot(self.site.platform, self.site.platform.ledger)
        teams = set(ledger.teams(ledger_files.blobs)) if ledger_files else set()
        if self.team in teams and self.site.platform.forge.has_org(self.team):
            return Look(StepVerdict.DONE, "may order")
        return Look(StepVerdict.CREATE, "organisation, AppProject, its part of the ledger")

    def ensure(self, say: Say) -> Look:  # noqa: ARG002 - its Application is not waited for
        before = self.look()
        added = add_team(self.site.platform, self.team, requester=self.site.wanted.requester)
        verdict = before.verdict
        if verdict is StepVerdict.DONE and added.created:
            verdict = StepVerdict.CHANGE  # what it may order follows the kits
        return Look(verdict, "may order")


@dataclass(frozen=True, slots=True)
class WebhookStep:
    """The service hears of pull requests and pushes of every team."""

    site: BootstrapContext
    name: str = "webhooks"

    def look(self) -> Look:
        platform = self.site.platform
        if platform.webhook is None:
            why = "platform.yaml has no spec.service, or its secret cannot be read"
            return Look(StepVerdict.SKIP, why, _WEBHOOK_ADVICE)
        try:
            teams = unhooked_teams(platform)
        except AccessError as error:
            return Look(StepVerdict.SKIP, str(error), _WEBHOOK_ADVICE)
        if teams:
            return Look(StepVerdict.CREATE, f"{', '.join(teams)} to {platform.webhook.url}")
        return Look(
            StepVerdict.DONE, f"pull requests and pushes are reported to {platform.webhook.url}"
        )

    def ensure(self, say: Say) -> Look:  # noqa: ARG002 - there is nothing to wait for
        before = self.look()
        if before.verdict is StepVerdict.CREATE:
            for team in unhooked_teams(self.site.platform):
                ensure_team_webhook(self.site.platform, team)
        return before


@dataclass(frozen=True, slots=True)
class PinStep:
    """No push chooses an Application's tool or a protected order's commit, or deletes an order."""

    site: BootstrapContext
    name: str = "sources"

    def look(self) -> Look:
        teams = unpinned_teams(self.site.platform)
        if not teams:
            return Look(
                StepVerdict.DONE,
                "every Application delivers plain manifests, and commits where a kit wants reviews;"
                " none deletes an order",
            )
        return Look(StepVerdict.CHANGE, f"Applications of {', '.join(teams)}")

    def ensure(self, say: Say) -> Look:  # noqa: ARG002 - Argo CD follows the ledger by itself
        before = self.look()
        pin_teams(self.site.platform, requester=self.site.wanted.requester)
        return before
