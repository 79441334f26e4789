"""
Carry a campaign out, one step at a time, until it is over or waits for people.

Each step reads the campaign's record, looks at the orders, and does what ``core.campaign.deciding``
says. Every write is idempotent and compared with what was read, so a process may be killed between
any two, and several may run the same campaign.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial

from ground.errors import (
    ConflictError,
    IncompleteError,
    OrderkitError,
    RefusedError,
    RemoteError,
    TooFastError,
)
from ground.shapes import changed
from orderkit.core.campaign.computing import Computer
from orderkit.core.campaign.deciding import (
    SETTLED,
    Decision,
    OrderFact,
    OrderPhase,
    WaveTimes,
    decide,
    judged,
    needs_approval,
)
from orderkit.core.campaign.definition import BATCH, Campaign, turn
from orderkit.core.campaign.record import (
    LATE,
    WORKING,
    CampaignRecord,
    OrderOutcome,
    State,
    WaveRecord,
    late,
)
from orderkit.core.inheriting_threads import InheritingThreads
from orderkit.core.order import ledger
from orderkit.core.order.lease import time_text
from orderkit.core.order.ledger import OrderEntry
from orderkit.core.order.ledger_applications import opens_at
from orderkit.flows.campaign.campaign_reads import (
    CampaignFiles,
    in_state,
    kit_of,
    read_campaign,
    reread,
    select,
    shared_reads,
    write_record,
)
from orderkit.flows.campaign.files_kinds import drafter_of
from orderkit.flows.campaign.files_work import FilesWork
from orderkit.flows.campaign.order_work import (
    Assignment,
    FieldWork,
    Work,
    Worked,
    take_back_on,
    work_on,
)
from orderkit.flows.campaign.wave_facts import ClusterLook, WaveFacts
from orderkit.flows.platform import Platform
from orderkit.ports.requesters import Requester
from orderkit.ports.urgency import background

_AT_ONCE = 4
_PAUSE_S, _PAUSE_LONGEST_S = 0.2, 2.0
_HELD_LONGEST_S = 20.0
"""How long the forge's limit is waited for before it is looked whether somebody paused."""
_TRIES = 5
"""How often in a row an order may meet a forge that fails, before the process gives up."""


@dataclass(frozen=True, slots=True)
class Progress:
    """How a campaign is, for whoever watches."""

    record: CampaignRecord
    wave: int | None
    facts: Sequence[OrderFact]
    why: str
    """What it waits for, or what it does."""


OnProgress = Callable[[Progress], object]


def run(
    platform: Platform,
    name: str,
    requester: Requester,
    *,
    timeout_s: float,
    is_new: bool = False,
    on_progress: OnProgress = lambda _: None,
) -> CampaignRecord:
    """
    Work on a campaign until it is over, is paused or stopped. Idempotent, resumable.

    Args:
        is_new: It was started just now: nothing is done yet that is worth looking for.

    Raises:
        NotFoundError: There is no such campaign.
        RefusedError: Its file is not the one that was started.
        IncompleteError: It takes longer, or only people can go on: pull requests are open.
        RemoteError: Forge or cluster fail again and again.
    """
    return Run(platform, name, requester, timeout_s, on_progress, has_looked=is_new).run()


def work_of(
    platform: Platform, campaign: Campaign, computer: Computer, record: CampaignRecord
) -> Work:
    """Return what does a campaign's kind of work."""
    if campaign.what.fields is not None:
        return FieldWork(platform, computer, campaign.what.fields)
    return FilesWork(
        platform, computer.kit, drafter_of(platform, campaign, computer.kit, record.revision)
    )


@dataclass
class Run:
    """One process's work on a campaign."""

    platform: Platform
    name: str
    requester: Requester
    timeout_s: float
    on_progress: OnProgress
    has_looked: bool = False
    """Whether it is known what others did in the wave that goes on."""
    _files: CampaignFiles | None = None
    _computer: Computer | None = None
    _work: Work | None = None
    _facts: WaveFacts | None = None
    _begun_s: list[float] = field(default_factory=list)
    _good_since: datetime | None = None
    _failures: int = 0
    _outages: int = 0
    _held_until_s: float = float("-inf")
    """Until when the forge takes nothing more from us."""
    _backs: dict[str, Worked] = field(default_factory=dict)

    def run(self) -> CampaignRecord:
        """See `run`."""
        clock = self.platform.clock
        deadline, pause_s = clock.monotonic_s() + self.timeout_s, _PAUSE_S
        while True:
            has_worked = False
            try:
                files = self._files = self._read()
                record = _started(files)
                if record.state not in WORKING or self.is_over(record):
                    return record
                has_worked = self._step(files, record)
                self._outages = 0
            except ConflictError:
                pass  # somebody else wrote the record: read it again
            except TooFastError as error:
                self._hold(error)
            except RemoteError as error:
                self._outages += 1
                if not error.retryable or self._outages >= _TRIES:
                    raise
            pause_s = _PAUSE_S if has_worked else min(pause_s * 1.3, _PAUSE_LONGEST_S)
            if clock.monotonic_s() > deadline:
                raise IncompleteError(
                    f"campaign {self.name} is not over after {self.timeout_s:g} s",
                    hint=f"orderkit campaign resume {self.name}",
                )
            if not has_worked:
                clock.sleep(pause_s)

    def is_over(self, record: CampaignRecord) -> bool:  # noqa: ARG002 - for who does a part of it
        """Say whether this process has nothing more to do, though the campaign goes on."""
        return False

    def _read(self) -> CampaignFiles:
        if self._files is None:
            return read_campaign(self.platform, self.name)
        return reread(self.platform, self._files)

    # --- one step

    def _step(self, files: CampaignFiles, record: CampaignRecord) -> bool:
        """Do one step; return whether something changed."""
        clock = self.platform.clock
        if (held_s := self._held_until_s - clock.monotonic_s()) > 0:
            clock.sleep(min(held_s, _HELD_LONGEST_S))
            return False
        if files.is_edited:
            raise RefusedError(
                f"campaigns/{self.name}.yaml was edited since the campaign was started",
                hint=f"put the old file back; or: orderkit campaign stop {self.name}, then revert"
                " it, and then retry it with the new file",
            )
        computer = self._computer = self._computer or Computer(
            kit_of(self.platform, files.campaign)
        )
        self._work = self._work or work_of(self.platform, files.campaign, computer, record)
        self._facts = self._facts or WaveFacts(self.platform, computer, files.campaign)
        entries = living_entries(files)
        number = record.current
        if record.state != "running":
            return self._back(files, record, entries)
        if number is None:
            self._write(files, in_state(record, "done", "", self.requester), "is done")
            return True
        return self._wave(files, record, number, entries)

    def _wave(
        self,
        files: CampaignFiles,
        record: CampaignRecord,
        number: int,
        entries: Mapping[str, OrderEntry],
    ) -> bool:
        campaign, wave, known = files.campaign, record.waves[number], self._facts
        assert known is not None  # noqa: S101 - made by `_step`
        if not self.has_looked:
            known.look_back(record, wave, entries)
            self.has_looked = True
        facts = judged(campaign, with_outcomes(wave, known.facts(record, wave, entries)))
        times = self._times(campaign, record, number, facts)
        decision = decide(campaign, number, facts, times)
        self.on_progress(Progress(record, number, facts, decision.why))
        match decision.action:
            case "apply":
                return self._apply(files, record, number, decision.orders, entries)
            case "close":
                self._close(files, record, number, facts)
            case "stop" | "takeBack":
                state: State = "stopped" if decision.action == "stop" else "takingBack"
                # outcomes and state in one write: a retry goes by these outcomes
                noted = record.with_wave(number, _noted(wave, facts))
                why = f"{decision.why}"[:400]
                self._write(files, in_state(noted, state, why, self.requester), f"stops: {why}")
            case _:
                self._wait(decision, facts)
                return False
        return True

    def _wait(self, decision: Decision, facts: Sequence[OrderFact]) -> None:
        """
        Wait, unless only people can go on.

        Raises:
            IncompleteError: Only pull requests are open.
        """
        phases = {fact.phase for fact in facts}
        if OrderPhase.PROPOSED in phases and not phases & {OrderPhase.TODO, OrderPhase.MADE}:
            first = decision.orders[0]
            raise IncompleteError(
                f"campaign {self.name}: {decision.why}, such as that of {first}",
                hint=f"have them merged ('orderkit merge {first} NUMBER');"
                f" then: orderkit campaign resume {self.name}",
            )

    def _times(
        self, campaign: Campaign, record: CampaignRecord, number: int, facts: Sequence[OrderFact]
    ) -> WaveTimes:
        now = self.platform.clock.now()
        is_good = all(f.phase in (*SETTLED, OrderPhase.FAILED) for f in facts)
        self._good_since = (self._good_since or now) if is_good else None
        before = record.waves[number - 1].closed if number else ""
        return WaveTimes(
            now,
            self._good_since,
            datetime.fromisoformat(before) if before else None,
            opens_at(campaign.windows, now),
        )

    # --- changing orders

    def _apply(
        self,
        files: CampaignFiles,
        record: CampaignRecord,
        number: int,
        orders: Sequence[str],
        entries: Mapping[str, OrderEntry],
    ) -> bool:
        """Change some orders; return whether any was begun."""
        clock = self.platform.clock
        turn_now = turn(files.campaign.pace, self._begun_s, clock.monotonic_s())
        if turn_now.count == 0:
            clock.sleep(min(turn_now.wait_s, _PAUSE_LONGEST_S))
            return False
        batch = orders[: min(turn_now.count, BATCH)]
        self._begun_s = [*self._begun_s, *(clock.monotonic_s() for _ in batch)][-10_000:]
        to = Assignment(files.ledger, files.campaign, record, number, self.requester)
        assert self._computer is not None  # noqa: S101 - made by `_step`
        look = ClusterLook.at(self.platform, self._computer, batch)
        platform, work = self._shared(files, look)

        def act(order: str) -> Worked:
            return work_on(platform, work, entries[order], to, look.xr(order))

        self._each(batch, act, lambda order, worked: self._know(entries[order], worked))
        return True

    def _know(self, entry: OrderEntry, worked: Worked) -> None:
        if self._facts is not None:
            self._facts.know(entry, worked)

    def _each(
        self,
        orders: Sequence[str],
        act: Callable[[str], Worked],
        know: Callable[[str, Worked], None],
    ) -> None:
        """
        Do something for several orders at once; what failed for now is left for the next step.

        Raises:
            OrderkitError: It failed too often in a row.
        """

        def attempt(order: str) -> Worked | OrderkitError:
            try:
                with background():
                    return act(order)
            except OrderkitError as error:
                # not raised: the others of the batch go on, and the next step tries this one again
                return error

        problem: OrderkitError | None = None
        with InheritingThreads(_AT_ONCE, thread_name_prefix="campaign") as pool:
            for order, outcome in zip(orders, pool.map(attempt, orders), strict=True):
                if isinstance(outcome, TooFastError):
                    self._hold(outcome)
                elif isinstance(outcome, OrderkitError):
                    problem = outcome
                else:
                    know(order, outcome)
        self._failures = self._failures + 1 if problem else 0
        if problem:
            if self._failures >= _TRIES:
                raise problem
            self.platform.clock.sleep(_PAUSE_S * self._failures)

    def _hold(self, error: TooFastError) -> None:
        """Do nothing for as long as the forge says."""
        until_s = self.platform.clock.monotonic_s() + error.seconds
        self._held_until_s = max(self._held_until_s, until_s)

    def _close(
        self,
        files: CampaignFiles,
        record: CampaignRecord,
        number: int,
        facts: Sequence[OrderFact],
    ) -> None:
        """End a wave: one commit with what became of each order."""
        now = time_text(self.platform.clock.now())
        wave = changed(_noted(record.waves[number], facts), closed=now)
        record = record.with_wave(number, wave)
        state, why = record.state, ""
        if record.current is None:
            if added := self._late(files.campaign, record):
                waves = (*record.waves, WaveRecord(LATE, tuple(added)))
                record = changed(record, waves=waves)
            else:
                state = "done"
        if state == "running" and needs_approval(files.campaign, number + 1):
            following = record.waves[number + 1].name
            state, why = "paused", f"wave {following} begins when somebody resumes the campaign"
        counts = ", ".join(f"{n} {result}" for result, n in counted(wave).items()) or "no orders"
        summary = f"wave {wave.name} is over: {counts}"
        self._write(files, in_state(record, state, why, self.requester), summary)
        self._good_since = None

    def _late(self, campaign: Campaign, record: CampaignRecord) -> list[str]:
        if not campaign.which.is_open or self._computer is None:
            return []
        matching = select(self.platform, campaign, self._computer).orders
        return late(campaign, list(matching), record.waves)

    # --- taking back

    def _back(
        self, files: CampaignFiles, record: CampaignRecord, entries: Mapping[str, OrderEntry]
    ) -> bool:
        """Take back the wave, or the whole campaign; newest first."""
        current = record.current
        numbers = [current] if record.state == "takingBack" and current is not None else None
        numbers = numbers or list(range(len(record.waves)))
        todo = [
            (number, order)
            for number in reversed(numbers)
            for order in reversed(record.waves[number].orders)
            if order not in self._backs and order in entries
        ]
        for number in dict.fromkeys(number for number, _ in todo):
            orders = [order for n, order in todo if n == number][:BATCH]
            to = Assignment(files.ledger, files.campaign, record, number, self.requester)
            act = partial(self._take_back_on, to, entries)
            self._each(orders, act, self._backs.__setitem__)
            counts = f"{len(todo) - len(orders)} orders are left"
            self.on_progress(Progress(record, number, (), f"takes back: {counts}"))
            return True
        for number in numbers:
            record = record.with_wave(number, self._backed(record.waves[number]))
        state: State = "stopped" if record.state == "takingBack" else "reverted"
        taken = sum(worked.phase is OrderPhase.BACK for worked in self._backs.values())
        record = in_state(record, state, record.why, self.requester)
        self._write(files, record, f"{taken} orders are taken back")
        return True

    def _take_back_on(
        self, to: Assignment, entries: Mapping[str, OrderEntry], order: str
    ) -> Worked:
        assert self._work is not None  # noqa: S101 - made by `_step`
        return take_back_on(self.platform, self._work, entries[order], to)

    def _shared(self, files: CampaignFiles, look: ClusterLook) -> tuple[Platform, Work]:
        """Return platform and work for a batch, which reads each thing once."""
        assert self._work is not None  # noqa: S101 - made by `_step`
        known = {
            (self.platform.ledger, file.path): file for file in look.followers(files.ledger.blobs)
        }
        platform = replace(self.platform, forge=shared_reads(self.platform.forge, known))
        return platform, self._work.on(platform)

    def _backed(self, wave: WaveRecord) -> WaveRecord:
        """Return a wave with what became of the orders that were taken back."""
        outcomes = dict(wave.outcomes)
        for order in wave.orders:
            worked, before = self._backs.get(order), outcomes.get(order)
            if worked and worked.phase is not OrderPhase.SKIPPED:
                failed = f"had failed: {before.why}" if before and before.result == "failed" else ""
                why = worked.why or failed
                outcomes[order] = OrderOutcome(worked.phase, str(worked.commit or ""), why[:400])
        return changed(wave, outcomes=outcomes)

    def _write(self, files: CampaignFiles, record: CampaignRecord, summary: str) -> None:
        write_record(self.platform, files, record, summary, self.requester)


def _started(files: CampaignFiles) -> CampaignRecord:
    """
    Return the record of a campaign.

    Raises:
        RefusedError: It was not started.
    """
    if files.record is None:
        name = files.campaign.name
        hint = f"orderkit campaign start {name}"
        raise RefusedError(f"campaign {name} was not started", hint=hint)
    return files.record


def living_entries(files: CampaignFiles) -> dict[str, OrderEntry]:
    """Return the orders of the ledger that have neither ended nor begun to end."""
    blobs = files.ledger.blobs
    return {e.order: e for e in ledger.entries(blobs) if e.end_path not in blobs}


def with_outcomes(wave: WaveRecord, facts: Sequence[OrderFact]) -> list[OrderFact]:
    """Return the facts with what the record has settled already, before it was tried again."""
    settled = {str(phase): phase for phase in (OrderPhase.READY, OrderPhase.SKIPPED)}
    return [
        OrderFact(fact.order, settled[outcome.result], outcome.why, outcome.commit)
        if (outcome := wave.outcomes.get(fact.order)) and outcome.result in settled
        else fact
        for fact in facts
    ]


def _noted(wave: WaveRecord, facts: Sequence[OrderFact]) -> WaveRecord:
    """Return a wave with what became of its orders, as far as something did."""
    outcomes = {
        fact.order: OrderOutcome(fact.phase, fact.commit, fact.why[:400])
        for fact in facts
        if fact.phase is not OrderPhase.TODO
    }
    return changed(wave, outcomes=outcomes)


def counted(wave: WaveRecord) -> dict[str, int]:
    """Return how many orders of a wave came to what."""
    results = [outcome.result for outcome in wave.outcomes.values()]
    return {result: results.count(result) for result in sorted(set(results))}
