"""
The last steps: the portal lists the pack's templates, and teams may order.

`PortalStep` registers one catalog location for each template. If a plugin of the portal reads
orders from the service, locations of earlier orders are removed. Where no portal can be asked that
is said, and nothing fails: the platform works without one. On CNOE's reference implementation the
templates are entered into the repository that its Backstage reads its templates from
(``idpbuilder_steps``).

The teams that platform.yaml names may order (`TeamStep`); what the ledger has of others is up to
date. The service hears of pull requests of all (`WebhookStep`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

from ground.errors import AccessError
from ground.names import MAIN, Files
from ground.objects.kube_objects import dig
from orderkit.core.kit.pack import read_pack
from orderkit.core.order import ledger
from orderkit.core.portal.profile import is_form_of_change
from orderkit.flows.install.bootstrapping.steps import BootstrapContext, Look, Say, StepVerdict
from orderkit.flows.platform import snapshot
from orderkit.flows.team.connections import ensure_team_webhook, unhooked_teams
from orderkit.flows.team.pinning import pin_teams, unpinned_teams
from orderkit.flows.team.teams import add_team
from yamlfiles import yaml12


def template_paths(files: Files) -> Sequence[PurePosixPath]:
    """
    Return the files of the pack that a portal shall register: of kits, of changes, of ends.

    Raises:
        InvalidInputError: The pack is broken.
    """
    kits = [PurePosixPath("templates", k, "template.yaml") for k in read_pack(files).kit_names]
    forms = [path for path in sorted(files) if is_form_of_change(path)]
    return [path for path in (*kits, *forms) if path in files and _is_template(files[path], path)]


def _is_template(data: bytes, path: PurePosixPath) -> bool:
    return bool(dig(yaml12.load(data, name=str(path)), "kind") == "Template")


def template_urls(site: BootstrapContext) -> Sequence[str]:
    """Return where a portal reads them, as its locations name them."""
    forge = site.platform.forge
    base = forge.capabilities.pages.folder(f"{forge.base_url}/{site.platform.pack_repo}", MAIN)
    return [f"{base}{path}" for path in template_paths(site.files)]


@dataclass(frozen=True, slots=True)
class PortalStep:
    """Every template is registered in the portal's catalog."""

    site: BootstrapContext
    name: str = "portal"

    def look(self) -> Look:
        if self.site.wanted.portal_problem:
            return Look(
                StepVerdict.SKIP,
                f"templates are not registered: {self.site.wanted.portal_problem}",
                "repeat this command once there is a portal: it registers them",
            )
        missing, superseded = self._missing(), self._superseded()
        if missing:
            return Look(StepVerdict.CREATE, f"{len(missing)} locations, first {missing[0]}")
        if superseded:
            note = f"{len(superseded)} locations of orders, which the portal's plugin reads"
            return Look(StepVerdict.CHANGE, f"{note}; removes {superseded[0]}")
        return Look(StepVerdict.DONE, f"{len(template_urls(self.site))} templates are registered")

    def ensure(self, say: Say) -> Look:  # noqa: ARG002 - there is nothing to wait for
        before = self.look()
        if before.verdict in (StepVerdict.CREATE, StepVerdict.CHANGE):
            for url in self._missing():
                self.site.platform.catalog.register(url)
            for url in self._superseded():
                self.site.platform.catalog.unregister(url)
        return before

    def _missing(self) -> Sequence[str]:
        registered = {location.target for location in self.site.platform.catalog.locations()}
        return [url for url in template_urls(self.site) if url not in registered]

    def _superseded(self) -> Sequence[str]:
        platform = self.site.platform
        ledger_files = snapshot(platform.forge, platform.ledger)
        if not platform.portal_reads_orders or ledger_files is None:
            return []
        orders = [entry.repository for entry in ledger.entries(ledger_files.blobs)]
        prefixes = tuple(f"{platform.forge.base_url}/{repository}/" for repository in orders)
        targets = [location.target for location in platform.catalog.locations()]
        return [target for target in targets if target.startswith(prefixes)]


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
        ledger_files = snapshot(self.site.platform.forge, self.site.platform.ledger)
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
