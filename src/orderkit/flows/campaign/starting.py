"""
Begin, pause, stop, resume, retry and revert campaigns: one commit each in the ledger.

Whoever does it acts for themselves: neither the campaign's file nor its record give rights.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ground.errors import InvalidInputError, RefusedError
from ground.names import blob_sha, check_requester
from ground.shapes import changed
from orderkit.core.campaign.computing import Computer
from orderkit.core.campaign.definition import Campaign, parse, path_of
from orderkit.core.campaign.record import CampaignRecord, WaveRecord, assigned, new_id
from orderkit.core.order.lease import time_text
from orderkit.flows.campaign.campaign_reads import (
    CampaignFiles,
    in_state,
    kit_of,
    read_campaign,
    select,
    write_record,
)
from orderkit.flows.campaign.files_kinds import check_kind
from orderkit.flows.campaign.planning import CampaignPlan, markdown
from orderkit.flows.campaign.wave_facts import unready_orders
from orderkit.flows.platform import Platform, ledger_snapshot
from orderkit.flows.repeating import in_rounds
from orderkit.ports.forge import FileChange, Operation, PullDraft, PullRequest
from orderkit.ports.requesters import Requester

_STANDING = ("ready", "made", "failed", "kept", "skipped")
"""Outcomes of orders in which a commit of the campaign may stand."""
_OVER = ("stopped", "done", "reverted")


@dataclass(frozen=True, slots=True)
class CampaignText:
    """A campaign's file that is not in the ledger yet, or not in this version."""

    campaign: Campaign
    data: bytes

    @classmethod
    def read(cls, data: bytes, *, name: str) -> CampaignText:
        """
        Read a file.

        Raises:
            InvalidInputError: It is refused.
        """
        return cls(parse(data, name=name), data)


def put(platform: Platform, text: CampaignText, requester: Requester) -> None:
    """
    Write a campaign's file into the ledger. Idempotent.

    Raises:
        RefusedError: A campaign of this name was started with another file.
    """
    check_requester(requester.ref)
    name, path = text.campaign.name, path_of(text.campaign.name)

    def attempt() -> None:
        blobs = ledger_snapshot(platform).blobs
        sha = blobs.get(path)
        if sha is not None and sha == blob_sha(text.data, sha):
            return
        record = read_campaign(platform, name).record if sha is not None else None
        if record and record.state not in ("stopped", "reverted"):
            raise RefusedError(
                f"campaign {name} is {record.state}, with another file",
                hint=f"give this one another name, or: orderkit campaign stop {name}",
            )
        change = FileChange(path, text.data, sha)
        operation = Operation(
            f"campaign-file-{name}-{blob_sha(text.data)[:12]}-after-{(sha or 'none')[:12]}",
            requester.ref,
            f"campaign {name}: {' '.join(text.campaign.reason.split())}"[:200],
            requester.proof,
        )
        platform.forge.write(platform.ledger, [change], operation)

    in_rounds(attempt)


def propose(
    platform: Platform, text: CampaignText, plan: CampaignPlan, requester: Requester
) -> PullRequest:
    """
    Open a pull request that puts a campaign into the ledger, with its plan. Idempotent.

    Raises:
        RefusedError: The ledger has this very file already.
    """
    check_requester(requester.ref)
    name, path = text.campaign.name, path_of(text.campaign.name)
    snapshot = ledger_snapshot(platform)
    sha = snapshot.blobs.get(path)
    if sha is not None and sha == blob_sha(text.data, sha):
        raise RefusedError(
            f"the ledger has this campaign {name} already",
            hint=f"orderkit campaign start {name}",
        )
    digest = blob_sha(text.data)[:12]
    branch = f"orderkit/campaign-{name}-{digest}"
    operation = Operation(
        f"propose-campaign-{name}-{digest}",
        requester.ref,
        f"campaign {name}: {' '.join(text.campaign.reason.split())}"[:200],
        requester.proof,
    )
    if platform.forge.head(platform.ledger, branch) is None:
        platform.forge.ensure_branch(platform.ledger, branch, snapshot.commit)
    change = FileChange(path, text.data, sha)
    platform.forge.write(platform.ledger, [change], operation, branch=branch)
    draft = PullDraft(f"Campaign {name}", markdown(plan), branch)
    return platform.forge.open_pull(platform.ledger, draft, operation)


def start(platform: Platform, name: str, requester: Requester) -> CampaignRecord:
    """
    Start a campaign: fix its orders and waves. Idempotent: what runs already goes on.

    Raises:
        NotFoundError: There is no such campaign, or it names what does not exist.
        InvalidInputError: A field or an expression is refused, or it matches no order.
        RefusedError: It is over, or paused.
    """
    check_requester(requester.ref)

    def attempt() -> CampaignRecord:
        files = read_campaign(platform, name)
        if files.record is not None:
            return _started(files.record)
        record = _new_record(platform, files, requester)
        write_record(platform, files, record, "starts", requester)
        return record

    return in_rounds(attempt)


def _started(record: CampaignRecord) -> CampaignRecord:
    if record.state == "paused":
        raise RefusedError(
            f"campaign {record.name} is paused: {record.why}",
            hint=f"orderkit campaign resume {record.name}",
        )
    if record.state in _OVER and record.state != "done":
        raise RefusedError(
            f"campaign {record.name} is {record.state}: {record.why}",
            hint=f"orderkit campaign retry {record.name}",
        )
    return record


def _new_record(platform: Platform, files: CampaignFiles, requester: Requester) -> CampaignRecord:
    campaign = files.campaign
    computer = Computer(kit_of(platform, campaign))
    computer.check(campaign)
    checked = check_kind(platform, campaign, computer.kit)
    selected = select(platform, campaign, computer)
    waves = assigned(campaign, list(selected.orders))
    if not waves:
        left_out = f"; of {len(selected.unknown)} nobody can tell" if selected.unknown else ""
        raise InvalidInputError(
            f"campaigns/{campaign.name}.yaml: spec.which", campaign.which.where or None,
            f"matches no order{left_out}",
            hint="'orderkit campaign plan' shows what it matches",
        )  # fmt: skip
    now = platform.clock.now()
    orders = [order for wave in waves for order in wave.orders]
    return CampaignRecord(
        name=campaign.name,
        id=new_id(campaign.name, files.definition, now),
        definition=files.definition,
        state="running",
        started=time_text(now),
        waves=waves,
        by=requester.ref,
        revision=checked.revision,
        unready=unready_orders(platform, computer, orders),
    )


def pause(platform: Platform, name: str, requester: Requester, why: str) -> CampaignRecord:
    """
    Pause a campaign: no further order is changed. Idempotent.

    Raises:
        RefusedError: It does not run.
    """
    return _turn(platform, name, requester, lambda _, record: _paused(record, requester, why))


def _paused(record: CampaignRecord, requester: Requester, why: str) -> CampaignRecord:
    if record.state == "paused":
        return record
    if record.state != "running":
        raise RefusedError(
            f"campaign {record.name} is {record.state} and cannot be paused",
            hint=f"orderkit campaign status {record.name}",
        )
    return in_state(record, "paused", why or "somebody paused it", requester)


def stop(platform: Platform, name: str, requester: Requester, why: str) -> CampaignRecord:
    """
    Stop a campaign for good; what it did stays. Idempotent.

    Raises:
        RefusedError: It is over.
    """

    def stopped(_: CampaignFiles, record: CampaignRecord) -> CampaignRecord:
        if record.state == "stopped":
            return record
        if record.state not in ("running", "paused"):
            raise RefusedError(
                f"campaign {name} is {record.state} and cannot be stopped",
                hint=f"orderkit campaign status {name}",
            )
        return in_state(record, "stopped", why or "somebody stopped it", requester)

    return _turn(platform, name, requester, stopped)


def resume(platform: Platform, name: str, requester: Requester) -> CampaignRecord:
    """
    Let a paused campaign go on, or continue one that nobody works on. Idempotent.

    Raises:
        RefusedError: It is over.
    """

    def resumed(_: CampaignFiles, record: CampaignRecord) -> CampaignRecord:
        if record.state == "paused":
            return in_state(record, "running", "", requester)
        return _started(record)

    return _turn(platform, name, requester, resumed)


def retry(
    platform: Platform, name: str, requester: Requester, *, text: CampaignText | None = None
) -> CampaignRecord:
    """
    Try again what failed, was taken back, or was not done when it stopped.

    With another file than before only if no commit of the campaign stands: the orders that have
    its old values would be passed over.

    Args:
        text: The file that the requester wants; None: the one that was started. So nobody slips
            other values under a retry by somebody else.

    Raises:
        RefusedError: It runs, nothing failed, or commits stand that the new file does not explain.
    """

    def again(files: CampaignFiles, record: CampaignRecord) -> CampaignRecord:
        outcomes = {o: out for wave in record.waves for o, out in wave.outcomes.items()}
        open_orders = [o for o in record.orders if o not in outcomes]
        failed = [o for o, out in outcomes.items() if out.result not in ("ready", "skipped")]
        if record.state not in _OVER or not (failed or open_orders):
            raise RefusedError(
                f"campaign {name} is {record.state}, and nothing in it can be tried again",
                hint=f"orderkit campaign status {name}",
            )
        # nobody slips other values under a retry by somebody else
        if files.is_edited and (text is None or blob_sha(text.data) != files.definition):
            raise RefusedError(
                f"campaigns/{name}.yaml was edited since the campaign was started",
                hint="name the file that you want: orderkit campaign retry FILE",
            )
        standing = [o for o, out in outcomes.items() if out.result in _STANDING and out.commit]
        # the orders that have the old values would be passed over
        if files.is_edited and standing:
            raise RefusedError(
                f"campaigns/{name}.yaml is another one now, and {standing[0]} and"
                f" {len(standing) - 1} more orders have what the old one did",
                hint=f"take that back first: orderkit campaign revert {name}",
            )
        waves = tuple(map(_reopened, record.waves))
        record = changed(
            record, waves=waves, attempt=record.attempt + 1, definition=files.definition
        )
        return in_state(record, "running", "", requester)

    return _turn(platform, name, requester, again)


def _reopened(wave: WaveRecord) -> WaveRecord:
    """Return a wave in which only what is Ready is settled."""
    ready = {o: outcome for o, outcome in wave.outcomes.items() if outcome.result == "ready"}
    is_whole = len(ready) == len(wave.orders)
    return changed(wave, outcomes=ready, closed=wave.closed if is_whole else "")


def revert(platform: Platform, name: str, requester: Requester) -> CampaignRecord:
    """
    Begin to take back all that a campaign did. Idempotent.

    Raises:
        RefusedError: It was never started.
    """

    def reverting(_: CampaignFiles, record: CampaignRecord) -> CampaignRecord:
        if record.state in ("reverting", "reverted"):
            return record
        return in_state(record, "reverting", "somebody takes it back", requester)

    return _turn(platform, name, requester, reverting)


def _turn(
    platform: Platform,
    name: str,
    requester: Requester,
    change: Callable[[CampaignFiles, CampaignRecord], CampaignRecord],
) -> CampaignRecord:
    """Bring a campaign into another state, as it is now."""
    check_requester(requester.ref)

    def attempt() -> CampaignRecord:
        files = read_campaign(platform, name)
        if files.record is None:
            raise RefusedError(
                f"campaign {name} was not started", hint=f"orderkit campaign start {name}"
            )
        record = change(files, files.record)
        if record is not files.record:
            write_record(platform, files, record, f"is {record.state}", requester)
        return record

    return in_rounds(attempt)
