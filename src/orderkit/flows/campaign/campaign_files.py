"""Read and write the files of campaigns in the ledger."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ground.errors import NotFoundError
from ground.names import BlobSha
from ground.shapes import changed
from ground.suggestions import did_you_mean
from orderkit.core.campaign.definition import Campaign, names_in, parse, path_of
from orderkit.core.campaign.record import CampaignRecord, State, parse_record, record_path
from orderkit.flows.platform import Platform, RepositorySnapshot, ledger_snapshot
from orderkit.ports.forge import FileChange, Operation
from orderkit.ports.requesters import Requester


@dataclass(frozen=True, slots=True)
class CampaignFiles:
    """A campaign as the ledger has it at one commit."""

    ledger: RepositorySnapshot
    campaign: Campaign
    definition: BlobSha
    record: CampaignRecord | None
    record_sha: BlobSha | None

    @property
    def is_edited(self) -> bool:
        """Whether the file is not the one that was started."""
        return self.record is not None and self.record.definition != self.definition


def read_campaign(
    platform: Platform, name: str, snapshot: RepositorySnapshot | None = None
) -> CampaignFiles:
    """
    Read a campaign and its record.

    Raises:
        NotFoundError: The ledger has no such campaign.
        InvalidInputError: One of its files is refused.
    """
    ledger = snapshot or ledger_snapshot(platform)
    path, at = path_of(name), ledger.commit
    file = platform.forge.read(platform.ledger, path, at) if path in ledger.blobs else None
    if file is None:
        names = names_in(iter(ledger.blobs))
        known = f"campaigns: {', '.join(names) or 'none'}; a proposed one counts once it is merged"
        hint = did_you_mean(name, names, known)
        raise NotFoundError(f"no campaign '{name}' in {platform.ledger}", hint=hint)
    campaign = parse(file.data, name=str(path))
    found = None
    if record_path(name) in ledger.blobs:
        found = platform.forge.read(platform.ledger, record_path(name), at)
    record = parse_record(found.data, name=name) if found else None
    return CampaignFiles(ledger, campaign, file.sha, record, found.sha if found else None)


def reread(platform: Platform, files: CampaignFiles) -> CampaignFiles:
    """
    Return a campaign's files as they are now: one request if nobody wrote to the ledger since.

    Raises:
        OrderkitError: What `read_campaign` raises.
    """
    if platform.forge.head(platform.ledger) == files.ledger.commit:
        return files
    return read_campaign(platform, files.campaign.name)


def write_record(
    platform: Platform,
    files: CampaignFiles,
    record: CampaignRecord,
    summary: str,
    requester: Requester,
    *,
    more: Sequence[FileChange] = (),
) -> None:
    """
    Write a campaign's record if it still is the one that was read.

    Raises:
        ConflictError: Somebody wrote it meanwhile: read again and decide again.
    """
    data = record.to_text().encode()
    change = FileChange(record_path(record.name), data, files.record_sha)
    after = (files.record_sha or files.definition)[:12]
    operation = Operation(
        f"campaign-{record.id}-{record.state}-after-{after}",
        requester.ref,
        f"campaign {record.name}: {summary}"[:200],
        requester.proof,
    )
    platform.forge.write(platform.ledger, [change, *more], operation)


def in_state(record: CampaignRecord, state: State, why: str, by: Requester) -> CampaignRecord:
    """Return a record in another state."""
    return changed(record, state=state, why=why, by=by.ref)
