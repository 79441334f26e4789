"""
Make the statement of a period from Git alone: ledger, orders' repositories, and the pack's.

An order lives from the commit of the ledger that registered it to its tombstone. Its values are
those of its ``main`` at each time (first parents only: a branch is not delivered), composed and
priced by the pack as it was published then. A commit that has no readable XR changes nothing, as
Argo CD keeps what it delivered. The cluster is asked for one thing: what kits measure now.

The ledger and the pack are written by the platform alone, so their times count. Whoever pushes to
an order's repository chooses the time of the commit: such a change counts from the time it claims,
but not before the change before it, and is marked.

Bounds: `HISTORY_MAX` commits of each repository are looked at, and the XRs that are kept in memory
have a bound of their own. What lies before is reported as not known.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import PurePosixPath

from ground.errors import InvalidInputError, NotFoundError, OrderkitError
from ground.names import CommitSha, OrderId, RepoId, TeamName
from ground.objects.kube_objects import Manifest
from orderkit.core.inheriting_threads import InheritingThreads
from orderkit.core.kit.model import Kit
from orderkit.core.order import end_record, ledger
from orderkit.core.order.ledger import OrderEntry
from orderkit.core.order.order_cost import OrderCost
from orderkit.core.order.order_view import Fact
from orderkit.core.plan import AssemblyContext
from orderkit.core.plan.cost_statement import (
    HOURS,
    CostInterval,
    Measured,
    Span,
    Statement,
    joined,
    spans,
)
from orderkit.core.plan.price_table import PRICES, PriceTable, read_prices
from orderkit.flows.composing.composed_order import composed_cost
from orderkit.flows.composing.published_pack import is_needed, published_workshop
from orderkit.flows.order.commit_judging import CommitJudge
from orderkit.flows.order.cost_limit import git_xr
from orderkit.flows.order.ledger_records import was_taken_back
from orderkit.flows.order.order_report import report_of
from orderkit.flows.platform import (
    Platform,
    RepositorySnapshot,
    ledger_snapshot,
    pack_files,
    published_pack,
    read_text,
)
from orderkit.ports.forge import Commit

HISTORY_MAX = 2_000
"""Commits of one repository that a statement looks at."""
_PAGE = 100
_WHOLE = 1_000_000
"""Of one file of the ledger, which the platform alone writes."""
_KEPT = 2_000
_LONG_AGO = datetime(1970, 1, 1, tzinfo=UTC)


_Change = tuple[datetime, CommitSha]
"""Since when a commit holds."""


@dataclass(frozen=True, slots=True)
class StatementRequest:
    """What a statement is about. Times in UTC; empty texts: all teams, all kits."""

    since: datetime
    until: datetime
    team: str = ""
    kit: str = ""


@dataclass(frozen=True, slots=True)
class _Life:
    """An order from its registration to its end."""

    entry: OrderEntry
    kit: str
    begin: datetime
    end: datetime


@dataclass(frozen=True, slots=True)
class _Values:
    """The values of an order from one commit on; None: nothing tells them, for this reason."""

    commit: CommitSha | None
    claimed: bool = False
    why_not: str = ""


def make_statement(platform: Platform, request: StatementRequest) -> Statement:
    """
    Return what the orders of a team, a kit, or all, cost in a period that may still go on.

    Raises:
        InvalidInputError: The period ends before it begins, or begins in the future.
        NotFoundError: There is no such team or kit, or the platform was never bootstrapped.
        RemoteError: The forge.
    """
    now = platform.clock.now().replace(microsecond=0)
    begin, end = request.since, min(request.until, now)
    if begin >= end:
        hint = "it begins with --since and ends before --until; nothing is told of the future"
        raise InvalidInputError("since", begin.isoformat(), "is not before the end", hint=hint)
    snapshot = ledger_snapshot(platform)
    reader = _Reader(platform, begin, end, _kits(platform, request, snapshot))
    lives = reader.lives(snapshot, request)
    intervals = joined(reader.intervals(lives))
    living = [life for life in lives if life.entry.application_path in snapshot.blobs]
    return Statement(begin, end, intervals, tuple(_measured(platform, reader.kits, living)))


def _kits(
    platform: Platform, request: StatementRequest, snapshot: RepositorySnapshot
) -> dict[str, Kit]:
    kits = {kit.name: kit for kit in published_pack(platform).kits()}
    teams = {*ledger.teams(snapshot.blobs), *(p.parts[1] for p in _tombstones(snapshot.blobs))}
    if request.team and request.team not in teams:
        raise NotFoundError(f"no team '{request.team}' in the ledger", hint="orderkit team list")
    if request.kit and request.kit not in kits:
        raise NotFoundError(
            f"no kit '{request.kit}' in the published pack", hint=f"kits: {', '.join(sorted(kits))}"
        )
    return kits


def _tombstones(paths: Iterable[PurePosixPath]) -> Iterator[PurePosixPath]:
    for path in paths:
        if path.parts[0] == "data" and path.name.startswith("tombstone-"):
            yield path


@dataclass
class _Reader:
    """Reads histories of one period, each once."""

    platform: Platform
    begin: datetime
    end: datetime
    kits: dict[str, Kit]
    _xrs: dict[tuple[RepoId, CommitSha], Manifest | None] = field(default_factory=dict)

    # --- who had what

    def lives(self, snapshot: RepositorySnapshot, request: StatementRequest) -> list[_Life]:
        """Return the lives of orders that overlap the period."""
        stones: dict[OrderEntry, list[PurePosixPath]] = {}
        for path in sorted(_tombstones(snapshot.blobs)):
            entry = OrderEntry(TeamName(path.parts[1]), OrderId(path.parts[2]))
            stones.setdefault(entry, []).append(path)
        entries = dict.fromkeys((*ledger.entries(snapshot.blobs), *self._ended(stones)))
        chosen = [
            entry
            for entry in entries
            if request.team in ("", entry.team)
            and request.kit in ("", ledger.named_kit(entry.order, self.kits))
        ]

        def read(entry: OrderEntry) -> list[_Life]:
            is_alive = entry.application_path in snapshot.blobs
            return list(self._lives_of(entry, stones.get(entry, []), is_alive=is_alive))

        with InheritingThreads(thread_name_prefix="statement") as threads:
            return [life for lives in threads.map(read, chosen) for life in lives]

    def _ended(self, stones: dict[OrderEntry, list[PurePosixPath]]) -> Iterator[OrderEntry]:
        """Yield the orders that ended since the period began, by the ledger's newest commits."""
        ended: set[str] = set()
        for commit in self._history(self.platform.ledger, first_parents=False):
            operation = commit.operation
            if operation.startswith("end-") and "-tombstone-" in operation:
                ended.add(operation.removeprefix("end-").partition("-tombstone-")[0])
            if _time(commit) < self.begin:
                break
        yield from (entry for entry in stones if entry.order in ended)

    def _lives_of(
        self, entry: OrderEntry, stones: Sequence[PurePosixPath], *, is_alive: bool
    ) -> Iterator[_Life]:
        ends = [(record.kit, _parsed(record.ended_at)) for record in map(self._stone, stones)]
        registered = self._registered(entry)
        after = _LONG_AGO
        kit = ledger.named_kit(entry.order, self.kits)
        for of_kit, end in [*ends, *([(kit, self.end)] if is_alive else [])]:
            begin = min((time for time in registered if after <= time < end), default=None)
            after = end
            if begin is not None and begin < self.end and end > self.begin:
                yield _Life(entry, of_kit, max(begin, self.begin), min(end, self.end))

    def _stone(self, path: PurePosixPath) -> end_record.EndRecord:
        text = read_text(self.platform.forge, self.platform.ledger, path, "main") or ""
        return end_record.parse(text, name=str(path))

    def _registered(self, entry: OrderEntry) -> list[datetime]:
        """Return when the ledger entered the order; what was taken back at once does not count."""
        history = self._path_history(entry.application_path)
        times: list[datetime] = []
        prefix = f"register-{entry.order}-on-"
        for commit in reversed(history):
            if was_taken_back(commit, entry):
                times = times[:-1]
            elif commit.operation.startswith(prefix):
                times.append(_time(commit))
        return times

    # --- what it cost

    def intervals(self, lives: Sequence[_Life]) -> Iterator[CostInterval]:
        """Yield the costs of lives: the pack's versions one by one, so that one is in memory."""
        values: list[tuple[_Life, list[Span[_Values]]]] = []
        with InheritingThreads(thread_name_prefix="statement") as threads:
            values = list(zip(lives, threads.map(self._values, lives), strict=True))
        for pack in self._packs():
            pricing = _Pricing.at(self.platform, pack)
            for life, versions in values:
                for version in versions:
                    begin, end = max(version.begin, pack.begin), min(version.end, pack.end)
                    if begin < end:
                        yield CostInterval(
                            life.entry.team,
                            life.kit,
                            life.entry.order,
                            begin,
                            end,
                            self._cost(life, version.state, pricing),
                            pricing.hours,
                            version.state.claimed,
                        )

    def _packs(self) -> list[Span[CommitSha | None]]:
        """Return which commit of the pack was published when; those that compose alike are one."""
        repo, changes, files = self.platform.pack_repo, list[_Change](), object()
        commits = self._since(repo)
        for commit in reversed(commits):
            blobs = self.platform.forge.tree(repo, commit.id)
            needed = {path: sha for path, sha in blobs.items() if path == PRICES or is_needed(path)}
            if needed != files:
                files = needed
                changes.append((_time(commit), commit.id))
        return list(spans(_from(self.begin, changes, commits), self.begin, self.end))

    def _values(self, life: _Life) -> list[Span[_Values]]:
        """Return the values of an order during its life; without gaps."""
        repo = life.entry.repository
        head = self.platform.forge.head(repo)
        if head is None:
            why = f"{repo} does not exist any more: nothing tells its values"
            return [Span(life.begin, life.end, _Values(None, why_not=why))]
        commits = self._since(repo)
        now, latest, changes = self.platform.clock.now(), _LONG_AGO, list[_Change]()
        for commit in reversed(commits):
            if _time(commit) <= now:  # nobody can have pushed it later
                latest = max(latest, _time(commit))
            changes.append((latest, commit.id))
        judge, by_id = CommitJudge(self.platform, repo, head), {c.id: c for c in commits}
        numbers = {commit.id: number for number, commit in enumerate(commits)}

        def values(commit: CommitSha | None) -> _Values:
            if commit is None:
                return _Values(None, why_not=f"{repo} has more than {HISTORY_MAX} commits since")
            # a commit without a readable XR changes nothing: the one before it holds
            for earlier in commits[numbers[commit] :]:
                if self._xr(life, earlier.id) is not None:
                    return _Values(earlier.id, not judge.is_proved(by_id[earlier.id]))
            return _Values(None, why_not=f"{repo} has no commit with a readable XR")

        times = _from(life.begin, changes, commits)
        return [
            Span(span.begin, span.end, values(span.state))
            for span in spans(times, life.begin, life.end)
        ]

    def _cost(self, life: _Life, values: _Values, pricing: _Pricing) -> OrderCost:
        if values.commit is None:
            return OrderCost("", None, unknown=(values.why_not,))
        xr = self._xr(life, values.commit)
        if xr is None:
            raise AssertionError("unreachable: only commits with an XR are values")
        return pricing.cost((life.entry.repository, values.commit), xr)

    def _xr(self, life: _Life, commit: CommitSha) -> Manifest | None:
        """Return the XR of a commit; None: there is none that can be read."""
        key = (life.entry.repository, commit)
        if key in self._xrs:
            return self._xrs[key]
        xr: Manifest | None = None
        try:
            xr = git_xr(self.platform, life.entry, self.kits, commit)
        except OrderkitError as error:
            # no readable XR changes nothing: Argo CD keeps what it delivered
            if error.retryable:
                raise
        if len(self._xrs) < _KEPT:
            self._xrs[key] = xr
        return xr

    # --- histories

    def _since(self, repo: RepoId) -> list[Commit]:
        """Return the newest commits of ``main``, back to the one that held as the period began."""
        commits = []
        for commit in self._history(repo, first_parents=True):
            commits.append(commit)
            if _time(commit) <= self.begin and repo == self.platform.pack_repo:
                break  # the time of an order's commit may be anybody's claim
        return commits

    def _history(self, repo: RepoId, *, first_parents: bool) -> Iterator[Commit]:
        """Yield commits, newest first, page by page."""
        yielded, limit = 0, _PAGE
        following: CommitSha | None = None
        while True:
            commits = self.platform.forge.commits(repo, limit=limit)
            by_id = {commit.id: commit for commit in commits}
            if not first_parents:
                yield from commits[yielded:]
                yielded = len(commits)
            else:
                following = following or (commits[0].id if commits else None)
                while following in by_id and yielded < HISTORY_MAX:
                    commit = by_id[following]
                    yield commit
                    yielded += 1
                    following = commit.parents[0] if commit.parents else None
            is_done = first_parents and (following is None or yielded >= HISTORY_MAX)
            if is_done or len(commits) < limit:
                return
            limit *= 2

    def _path_history(self, path: PurePosixPath) -> Sequence[Commit]:
        return self.platform.forge.commits(self.platform.ledger, path=path, limit=_WHOLE)


@dataclass(frozen=True, slots=True)
class _Pricing:
    """A version of the pack, loaded; or why it cannot be."""

    workshop: AssemblyContext | None
    table: PriceTable | None
    why_not: str = ""
    costs: dict[tuple[RepoId, CommitSha], OrderCost] = field(default_factory=dict)

    @property
    def hours(self) -> int:
        return self.table.hours_per_month if self.table else HOURS

    @classmethod
    def at(cls, platform: Platform, pack: Span[CommitSha | None]) -> _Pricing:
        """Load the pack of a time; prices are judged by their age on its last day."""
        if pack.state is None:
            return cls(None, None, f"the pack has more than {HISTORY_MAX} commits since")
        try:
            data = pack_files(platform, pack.state, [PRICES]).get(PRICES)
            if data is None:
                return cls(None, None, "the pack had no price table then")
            name = f"{PRICES} at {pack.state[:8]}"
            table = read_prices(data, name=name, today=pack.end.date())
            return cls(published_workshop(platform, pack.state), table)
        except (InvalidInputError, NotFoundError) as error:
            return cls(None, None, f"the pack of then cannot be used: {error}")

    def cost(self, key: tuple[RepoId, CommitSha], xr: Manifest) -> OrderCost:
        """Return what an XR of a commit cost."""
        if self.workshop is None or self.table is None:
            return OrderCost("", None, unknown=(self.why_not,))
        if key not in self.costs:
            self.costs[key] = composed_cost(xr, self.workshop, self.table, None)
        return self.costs[key]


def _from(
    begin: datetime, changes: list[_Change], commits: Sequence[Commit]
) -> list[tuple[datetime, CommitSha | None]]:
    """
    Return changes that hold from the beginning on.

    What is first holds from there on, whatever its time, if no earlier commit was left out.
    """
    if not changes or changes[0][0] <= begin:
        return [*changes]
    is_whole = len(commits) < HISTORY_MAX
    return [(begin, changes[0][1]), *changes[1:]] if is_whole else [(begin, None), *changes]


def _measured(
    platform: Platform, kits: dict[str, Kit], lives: Sequence[_Life]
) -> Iterator[Measured]:
    """Yield what kits measure of orders that live, as the cluster has it now."""
    measuring = {kit.name for kit in kits.values() if any(fact.is_spend for fact in kit.facts)}
    chosen = [life for life in lives if life.kit in measuring]

    def facts(life: _Life) -> tuple[Fact, ...]:
        return report_of(platform, life.entry, ending=False).row().facts

    with InheritingThreads(thread_name_prefix="statement") as threads:
        for life, shown in zip(chosen, threads.map(facts, chosen), strict=True):
            for fact in shown:
                if fact.is_spend:
                    value = fact.value or "not measured"
                    entry = life.entry
                    yield Measured(entry.team, life.kit, entry.order, fact.title, value)


def _time(commit: Commit) -> datetime:
    return _parsed(commit.when)


def _parsed(text: str) -> datetime:
    """Read a time of Git; what is not one is long ago."""
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        return _LONG_AGO
    time = time if time.tzinfo else time.replace(tzinfo=UTC)
    return max(time.astimezone(UTC).replace(microsecond=0), _LONG_AGO)
