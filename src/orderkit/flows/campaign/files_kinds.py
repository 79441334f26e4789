"""The kinds of campaigns that change files: what does a kind's work, and what it needs first."""

from __future__ import annotations

from dataclasses import dataclass

from orderkit.core.campaign.definition import Campaign
from orderkit.core.kit.model import Kit
from orderkit.flows.campaign.files_work import Drafter
from orderkit.flows.campaign.revision_work import RevisionDrafter, choose_revision
from orderkit.flows.campaign.run_work import RunDrafter
from orderkit.flows.campaign.template_work import TemplateDrafter
from orderkit.flows.campaign.version_work import VersionDrafter, check_version
from orderkit.flows.platform import Platform


@dataclass(frozen=True, slots=True)
class KindCheck:
    """What is found when a campaign is planned or started."""

    notes: tuple[str, ...] = ()
    revision: str = ""
    """What orders are pinned to."""


def check_kind(platform: Platform, campaign: Campaign, kit: Kit) -> KindCheck:
    """
    Check what a kind of campaign needs beyond its file.

    Raises:
        InvalidInputError, NotFoundError, RefusedError: Something is missing.
        RemoteError: The cluster does not answer.
    """
    what = campaign.what
    if what.version is not None:
        return KindCheck(check_version(platform, kit, what.version.to))
    if what.revision is not None:
        chosen = choose_revision(platform, kit, what.revision)
        return KindCheck(chosen.notes, chosen.name)
    return KindCheck()


def drafter_of(platform: Platform, campaign: Campaign, kit: Kit, revision: str) -> Drafter:
    """
    Return what says what becomes of an order's files.

    Args:
        revision: What orders are pinned to, as the campaign's start or plan found it.
    """
    what = campaign.what
    if what.version is not None:
        return VersionDrafter(platform, kit)
    if what.revision is not None:
        return RevisionDrafter(platform, kit, revision)
    if what.run is not None:
        return RunDrafter(platform, what.run)
    return TemplateDrafter(platform, kit, what.template)
