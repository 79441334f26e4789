"""Show campaigns: from the ledger, and of the present wave from the orders' repositories."""

from __future__ import annotations

from functools import partial

from orderkit.core.campaign.computing import Computer
from orderkit.core.campaign.deciding import OrderFact
from orderkit.core.campaign.definition import names_in
from orderkit.core.campaign.record import CampaignView, view_of
from orderkit.core.inheriting_threads import InheritingThreads
from orderkit.flows.campaign.campaign_reads import CampaignFiles, kit_of, read_campaign
from orderkit.flows.campaign.running import living_entries, with_outcomes
from orderkit.flows.campaign.wave_facts import WaveFacts
from orderkit.flows.platform import Platform, ledger_snapshot

LOOKED_AT_MAX = 100
"""Up to so many orders of a wave are looked at; of a larger one the record counts."""


def campaigns(platform: Platform) -> list[CampaignView]:
    """
    Return all campaigns of the ledger, by name, as their records say.

    Raises:
        InvalidInputError: A file is refused.
    """
    snapshot = ledger_snapshot(platform)
    read = partial(read_campaign, platform, snapshot=snapshot)
    with InheritingThreads(thread_name_prefix="campaigns") as pool:
        found = list(pool.map(read, names_in(iter(snapshot.blobs))))
    return [view_of(files.campaign, files.record) for files in found]


def campaign_view(platform: Platform, name: str) -> CampaignView:
    """
    Return one campaign, with how the orders of its present wave are.

    Raises:
        NotFoundError: There is none of that name.
        RemoteError: The forge or the cluster does not answer.
    """
    files = read_campaign(platform, name)
    return view_of(files.campaign, files.record, _facts(platform, files))


def _facts(platform: Platform, files: CampaignFiles) -> list[OrderFact]:
    record = files.record
    number = record.current if record else None
    if record is None or number is None or record.state not in ("running", "paused"):
        return []
    wave = record.waves[number]
    if len(wave.orders) > LOOKED_AT_MAX:
        return []
    entries = living_entries(files)
    computer = Computer(kit_of(platform, files.campaign))
    known = WaveFacts(platform, computer, files.campaign)
    known.look_back(record, wave, entries, with_made=True)
    return with_outcomes(wave, known.facts(record, wave, entries))
