"""
``campaigns/<name>/record.json`` of the ledger: what was decided about a campaign, not what is done.

Written when a campaign starts, when a wave is over, and when somebody pauses, stops, resumes or
reverts it. What is done to an order is read from the order's repository. It is JSON, because with
ten thousand orders reading it as YAML takes seconds. Pure.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from datetime import datetime
from pathlib import PurePosixPath
from typing import Literal

import msgspec

from ground.errors import InvalidInputError
from ground.names import BlobSha
from ground.shapes import Shape, changed, plain, read_shape
from orderkit.core.campaign.definition import FOLDER
from yamlfiles.documents import record, refuse_newer

State = Literal["running", "paused", "stopped", "takingBack", "done", "reverting", "reverted"]
KIND = "CampaignRecord"
WORKING: tuple[State, ...] = ("running", "takingBack", "reverting")
"""States in which whoever runs the campaign has something to do."""


class OrderOutcome(Shape, frozen=True):
    """What became of one order."""

    result: str
    """``ready``, ``skipped``, ``failed``, ``waiting`` (for a merge), ``takenBack``, ``kept``."""
    commit: str = ""
    why: str = ""


class WaveRecord(Shape, frozen=True):
    """One wave: which orders are in it, and what became of them."""

    name: str
    orders: tuple[str, ...]
    closed: str = ""
    """When it was over, RFC 3339; empty: not yet."""
    outcomes: Mapping[str, OrderOutcome] = {}


class CampaignRecord(Shape, frozen=True):
    """A campaign that was started."""

    name: str
    id: str
    """What commits of orders carry; another one if a campaign of the name is started anew."""
    definition: str
    """Blob id of the file that was started. Another file is another campaign."""
    state: State
    started: str
    waves: tuple[WaveRecord, ...]
    why: str = ""
    """Why it is in that state."""
    by: str = ""
    """Who brought it there; a note that gives no rights."""
    attempt: int = 1
    """How often failed orders were tried."""
    revision: str = ""
    """What a campaign of the kind ``revision`` pins orders to, as it was when it started."""
    unready: Mapping[str, str] = {}
    """Orders that were not Ready before it, and why: they are not its failures."""

    @property
    def current(self) -> int | None:
        """The number of the first wave that is not over; None: all are over."""
        return next((n for n, wave in enumerate(self.waves) if not wave.closed), None)

    @property
    def orders(self) -> Iterator[str]:
        """All orders."""
        return (order for wave in self.waves for order in wave.orders)

    def with_wave(self, number: int, wave: WaveRecord) -> CampaignRecord:
        """Return the record with another wave at a number."""
        waves = (*self.waves[:number], wave, *self.waves[number + 1 :])
        return changed(self, waves=waves)

    def to_text(self) -> str:
        """Write the file."""
        spec = plain(self)
        name = spec.pop("name")
        return json.dumps(record(KIND, name, spec), indent=1) + "\n"


def record_path(name: str) -> PurePosixPath:
    """Return the path of a campaign's record in the ledger."""
    return FOLDER / name / "record.json"


def parse_record(data: bytes, *, name: str) -> CampaignRecord:
    """
    Read the file.

    Raises:
        InvalidInputError: It is unreadable or incomplete.
        RefusedError: A newer Orderkit wrote it.
    """
    try:
        document = json.loads(data)
        refuse_newer(document["apiVersion"], str(record_path(name)))
        values = {**document["spec"], "name": document["metadata"]["name"]}
        return read_shape(CampaignRecord, values)
    except (ValueError, KeyError, TypeError, msgspec.ValidationError) as error:
        raise InvalidInputError(
            str(record_path(name)),
            None,
            f"is missing or unreadable: {error}",
            hint="restore it from the ledger's history; orders' commits are not affected",
        ) from error


def new_id(name: str, definition: BlobSha, started: datetime) -> str:
    """Return the id of a campaign that starts now."""
    text = f"{definition} {started.isoformat()}"
    return f"{name}-{hashlib.sha256(text.encode()).hexdigest()[:8]}"


def step_text(wave: int, attempt: int, *, back: bool = False) -> str:
    """Return what the trailer of a commit says: ``1.1``, or ``back-1.1``."""
    return f"{'back-' if back else ''}{wave + 1}.{attempt}"


def is_back(step: str) -> bool:
    """Say whether a commit's trailer is that of taking back."""
    return step.startswith("back-")


def attempt_of(step: str) -> int:
    """Return the attempt that a commit's trailer names; 0 if it names none."""
    number = step.rpartition(".")[2]
    return int(number) if number.isdecimal() else 0
