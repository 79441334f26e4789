"""
Tell what happened to all orders, newest first: who did what, why, in which commit.

The ledger has orders, approvals, leases and ends of all orders in one history. What changed in an
order is in the order's own repository, and asking each repository would cost a request for each
order. But a commit is older than its delivery. So orders are read from the latest delivery down,
and reading stops where no other order can have an entry of the page. The number of requests depends
on the page, not on the number of orders.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import ClassVar

from ground.argocd.delivery_obstacles import ORDER_LABEL
from ground.errors import InvalidInputError, NotFoundError, OrderkitError
from ground.names import CommitSha, OrderId, RepoId, TeamName
from ground.objects.kube_objects import APPLICATION, ARGOCD_NAMESPACE, Manifest, dig, labels_of
from ground.objects.kube_objects import metadata as metadata_of
from ground.shapes import Answer, Known
from orderkit.core.durations import LONGEST, PATTERN, parse_duration
from orderkit.core.inheriting_threads import AT_ONCE, InheritingThreads
from orderkit.core.order import ledger
from orderkit.core.order.end_record import STEPS
from orderkit.core.order.ledger import OrderEntry
from orderkit.core.order.order_summary import plain
from orderkit.core.order.order_view import is_person
from orderkit.flows.order.commit_judging import CommitJudge
from orderkit.flows.platform import Platform, ledger_snapshot
from orderkit.ports.forge import CHANGE_TRAILER, REASON_TRAILER, REQUEST_TRAILER, Commit
from orderkit.ports.signatures import signature_of

LEASE = "lease-"
"""How operations begin that write down when an order's lease ends."""
LIMIT, LIMIT_MAX = 30, 100
"""Entries of a page."""
_LEDGER_PAGE, _OF_ORDER, _MOST = 100, 50, 500
"""Commits that are read of the ledger and of one order at first, and at most for one page."""
_ORDERS_MAX = 500
"""Orders that are read for one page, however far down it is."""
_SUBJECT = re.compile(r"([a-z0-9][-a-z0-9]{0,62}): (.+)")
_STEP = "|".join(STEPS[1:])
_BOOKKEEPING = re.compile(rf"(deliver|lease-sweep)-.+|end-.+-({_STEP}|application)-.*")
"""Operations of the ledger that follow from another entry."""
_CURSOR = re.compile(r"([0-9]{1,12})\.([-\w./~]{0,255})\.([0-9a-f]{40,64})\.([0-9a-f]{40,64})")
_Place = tuple[int, str, int, str]
"""Second, repository (none: the ledger), rank in its log below zero, commit. The newest is last."""
_UNSHOWN, _NO_COMMIT, _BOTTOM = "~", "f" * 40, (0, "", 0, "")
"""A repository that is above all others of a second, no commit, and what is below everything."""


class ActivityEntry(Answer, frozen=True, kw_only=True):
    """One thing that happened to an order."""

    component: ClassVar[str] = "ActivityEntry"
    when: str
    """RFC 3339 in UTC. Of a commit by hand: as git says, at the latest its delivery."""
    order: str
    team: str
    kit: Known
    who: str
    """The requester if the commit proves one, else git's author."""
    by_hand: bool
    """Nothing proves that Orderkit wrote the commit."""
    merge: bool
    """Whether it joins two histories. No merge is signed, not even one by ``orderkit merge``."""
    what: str
    why: Known
    change: Known
    """The name of the change in the kit."""
    commit: str
    repository: str
    """Its address for a browser."""


class Activity(Answer, frozen=True):
    """What happened, newest first."""

    component: ClassVar[str] = "Activity"
    entries: tuple[ActivityEntry, ...]
    cursor: Known
    """Where the next page begins; null: nothing older is known."""


@dataclass(frozen=True, slots=True)
class ActivityQuery:
    """What somebody wants to see. Empty fields select everything."""

    team: str = ""
    person: str = ""
    """A catalog reference, or its end."""
    kit: str = ""
    since: str = ""
    """A time, or how long ago: ``7d``."""
    limit: int = LIMIT
    cursor: str = ""
    teams: Collection[str] | None = None
    """The teams whose orders the caller may see; None: all."""


@dataclass(frozen=True, slots=True)
class Delivery:
    """When the newest commit of an order was delivered, or tried to be."""

    entry: OrderEntry
    kit: str
    at_s: float
    """Seconds since 1970."""
    revision: str
    """The commit that was delivered last."""

    @classmethod
    def of(cls, application: Manifest) -> Delivery | None:
        """Read an Application; None if it is no order's."""
        labels = labels_of(application)
        team, order = labels.get(ledger.TEAM_LABEL), metadata_of(application).get("name")
        if ORDER_LABEL not in labels or not team or not order:
            return None
        history = dig(application, "status", "history", default=[])
        last = history[-1] if isinstance(history, list) and history else {}
        times = (
            last.get("deployedAt") if isinstance(last, dict) else "",
            dig(application, "status", "operationState", "startedAt"),
            metadata_of(application).get("creationTimestamp"),
        )
        at_s = max(map(_seconds, times))
        revision = last.get("revision") if isinstance(last, dict) else ""
        entry = OrderEntry(TeamName(team), OrderId(str(order)))
        return cls(entry, ledger.kit_of(application), at_s, str(revision or ""))


def activity(
    platform: Platform, query: ActivityQuery, deliveries: Iterable[Delivery] | None = None
) -> Activity:
    """
    Return a page of what happened.

    Args:
        deliveries: Of all orders, if they are known already; None: the cluster is asked.

    Raises:
        InvalidInputError: `since` is no time, or the cursor is none of ours.
        NotFoundError: There is no such team.
    """
    if deliveries is None:
        listed = platform.cluster.list(APPLICATION, namespace=ARGOCD_NAMESPACE).items
        deliveries = [delivery for item in listed if (delivery := Delivery.of(item))]
    return _Page(platform, query, deliveries).read()


def is_lease_note(commit: Commit) -> bool:
    """Say whether a proved commit only writes down when an order's lease ends."""
    # `orderkit change --operation` may be called like a note; only changes have one of these
    is_change = not commit.trailers.keys().isdisjoint((CHANGE_TRAILER, REQUEST_TRAILER))
    return commit.operation.startswith(LEASE) and not is_change


@dataclass(frozen=True, slots=True)
class _Event:
    """A commit, of which order, and when; nothing is proved yet."""

    when_s: float
    commit: Commit
    repository: RepoId
    order: str
    team: str
    kit: str
    place: _Place


@dataclass
class _Page:
    """Reads one page; counts how far down it is complete."""

    platform: Platform
    query: ActivityQuery
    deliveries: Iterable[Delivery]
    events: list[_Event] = field(default_factory=list)
    commits: Mapping[str, float] = field(default_factory=dict)
    """What was read of the ledger: when each commit was made, the newest first."""

    def read(self) -> Activity:
        query = self.query
        snapshot = ledger_snapshot(self.platform)
        self.teams = _teams_by_order(snapshot.blobs)
        if query.team and query.team not in set(ledger.teams(snapshot.blobs)):
            raise NotFoundError(f"no team '{query.team}'", hint="see 'orderkit team list'")
        self.since_s = since_of(query.since, self.platform.clock.now())
        self.before, begin = _position(query.cursor)
        waiting = sorted(filter(self._is_asked, self.deliveries), key=lambda d: d.at_s)
        self.kits = {str(delivery.entry.order): delivery.kit for delivery in waiting}
        floor = self._read_ledger(begin or snapshot.commit)
        newer = sum(delivery.at_s >= self.before[0] for delivery in waiting)
        most = min(newer + query.limit, _ORDERS_MAX)  # those may have entries of any page
        with InheritingThreads() as threads:
            while waiting and most > 0 and not self._is_full(_highest(waiting), floor):
                batch = [waiting.pop() for _ in range(min(AT_ONCE, len(waiting)))]
                most -= len(batch)
                for events, read_to in threads.map(self._of_order, batch):
                    self.events += events
                    floor = max(floor, read_to)
        return self._answer(max(floor, _highest(waiting)))

    def _is_asked(self, delivery: Delivery) -> bool:
        query, entry = self.query, delivery.entry
        return (
            self._may_see(entry.team)
            and query.team in ("", entry.team)
            and query.kit in ("", delivery.kit)
            and delivery.at_s >= self.since_s
        )

    def _may_see(self, team: str) -> bool:
        return self.query.teams is None or team in self.query.teams

    def _is_full(self, following: _Place, floor: _Place) -> bool:
        """Say whether the page has all its entries, whatever else is read."""
        lowest = max(following, floor)
        complete = sum(event.place >= lowest for event in self.events)
        return complete >= self.query.limit or floor > following

    def _read_ledger(self, begin: str) -> _Place:
        """Read events of the ledger from a commit down; return how far they are complete."""
        limit, repo = _LEDGER_PAGE, self.platform.ledger
        while True:
            commits = self.platform.forge.commits(repo, ref=begin, limit=limit)
            self._find_shown("", commits)
            events = [event for each in enumerate(commits) if (event := self._of_ledger(*each))]
            floor = _lowest("", commits, limit)
            done = len(events) >= self.query.limit or limit >= _MOST
            if done or floor[0] <= self.since_s:
                self.events += events
                self.commits = {commit.id: _time_of(commit) for commit in commits}
                return floor
            limit = _MOST

    def _find_shown(self, log: str, commits: Sequence[Commit]) -> None:
        """Note where the page before ended, if that was in this log, which may be longer now."""
        second, of, _, shown = self.before
        for rank, commit in enumerate(commits):
            if (log, commit.id) == (of, shown):
                self.before = (second, log, -rank, shown)

    def _of_ledger(self, rank: int, commit: Commit) -> _Event | None:
        subject = _SUBJECT.match(commit.summary)
        if subject is None or commit.is_merge or _BOOKKEEPING.fullmatch(commit.operation):
            return None
        order = subject[1]
        team = self.teams.get(order, "")
        kit = self.kits.get(order) or ledger.named_kit(order, set(self.kits.values()))
        at_s, repo = _time_of(commit), self.platform.ledger
        place = (int(at_s), "", -rank, commit.id)
        event = _Event(at_s, commit, repo, order, team, kit, place)
        return event if team and self._selects(event) else None

    def _of_order(self, delivery: Delivery) -> tuple[list[_Event], _Place]:
        """Return the events of an order, and the place down to which they are complete."""
        repo, limit = delivery.entry.repository, _OF_ORDER
        log = str(repo)
        try:
            commits = self.platform.forge.commits(repo, limit=limit)
            if _lowest(log, commits, limit)[0] >= self.before[0]:
                limit = _MOST
                commits = self.platform.forge.commits(repo, limit=limit)
        except OrderkitError as error:
            if error.retryable:
                raise
            return [], _BOTTOM  # it was moved or is gone: 'orderkit status' says so
        events = []
        self._find_shown(log, commits)
        for rank, commit in enumerate(commits):
            # a commit is older than its delivery, whatever time its author typed
            when_s = min(_time_of(commit), delivery.at_s)
            if commit.id == delivery.revision and signature_of(commit.message) is None:
                when_s = delivery.at_s  # git's time is whatever the author typed
            entry = delivery.entry
            place = (int(when_s), log, -rank, commit.id)
            event = _Event(when_s, commit, repo, entry.order, entry.team, delivery.kit, place)
            if self._selects(event):
                events.append(event)
        floor = _lowest(log, commits, limit)
        return events, floor if floor < self.before else _BOTTOM

    def _selects(self, event: _Event) -> bool:
        """Say whether an event belongs to the page if it is what it claims to be."""
        query = self.query
        return (
            event.when_s >= self.since_s
            and event.place < self.before
            and self._may_see(event.team)
            and query.team in ("", event.team)
            and query.kit in ("", event.kit)
            and (not query.person or self._claims(event, query.person))
        )

    @staticmethod
    def _claims(event: _Event, person: str) -> bool:
        return is_person(event.commit.requester, person) or person in event.commit.author

    def _answer(self, floor: _Place) -> Activity:
        events = sorted(self.events, key=lambda event: event.place, reverse=True)
        complete = [event for event in events if event.place >= floor]
        looked_at = complete[: 2 * self.query.limit]
        entries: list[ActivityEntry] = []
        last: _Event | None = None
        for event, is_proved in zip(looked_at, self._proved(looked_at), strict=True):
            if len(entries) == self.query.limit:
                break
            last = event
            if entry := self._entry(event, is_proved=is_proved):
                entries.append(entry)
        is_last = floor[0] <= self.since_s and (last is None or last is events[-1])
        end = last.place if last else floor
        return Activity(tuple(entries), "" if is_last or end >= self.before else self._cursor(end))

    def _cursor(self, end: _Place) -> str:
        second, log, _, commit = end
        older = (commit for commit, at_s in self.commits.items() if at_s <= second + 1)
        begin = next(older, [*self.commits][-1]) if log else commit
        return f"{second}.{log}.{commit}.{begin}"

    def _proved(self, events: Sequence[_Event]) -> list[bool]:
        """Say of each event whether its commit's trailers can be trusted."""
        by_repo: dict[RepoId, list[_Event]] = {}
        for event in events:
            by_repo.setdefault(event.repository, []).append(event)
        with InheritingThreads() as threads:
            proved: set[str] = set().union(*threads.map(self._proved_of, by_repo.values()))
        return [event.commit.id in proved for event in events]

    def _proved_of(self, events: Sequence[_Event]) -> set[str]:
        repo = events[0].repository
        if repo == self.platform.ledger:  # only the platform's own people may write it
            return {event.commit.id for event in events if event.commit.operation}
        judge = CommitJudge(self.platform, repo, self._newest(events))
        return {event.commit.id for event in events if judge.is_proved(event.commit)}

    def _newest(self, events: Sequence[_Event]) -> CommitSha:
        head = self.platform.forge.head(events[0].repository)
        return head or events[0].commit.id

    def _entry(self, event: _Event, *, is_proved: bool) -> ActivityEntry | None:
        """Return what is shown of an event; None if another entry says it already."""
        commit = event.commit
        is_own = event.repository != self.platform.ledger
        if is_own and is_proved and (not commit.parents or is_lease_note(commit)):
            return None
        trailers: Mapping[str, str] = commit.trailers if is_proved else {}
        who = commit.requester if is_proved else commit.author
        if self.query.person and not (
            is_person(who, self.query.person) if is_proved else self.query.person in who
        ):
            return None
        subject = _SUBJECT.match(commit.summary) if is_proved else None
        return ActivityEntry(
            when=_text(event.when_s),
            order=event.order,
            team=event.team,
            kit=event.kit,
            who=plain(who),
            by_hand=not is_proved,
            merge=commit.is_merge,
            what=plain(subject[2] if subject else commit.summary),
            why=plain(trailers.get(REASON_TRAILER, "")),
            change=plain(trailers.get(CHANGE_TRAILER, "")),
            commit=commit.id,
            repository=f"{self.platform.forge.base_url}/{event.repository}",
        )


def since_of(text: str, now: datetime) -> float:
    """
    Return a time in seconds since 1970; 0 without a text.

    Raises:
        InvalidInputError: It is neither a time nor a duration.
    """
    if not text:
        return 0.0
    if re.fullmatch(PATTERN, text):
        return (now - min(parse_duration(text, field="since"), LONGEST)).timestamp()
    at_s = _seconds(text)
    if not at_s:
        hint = "for example 7d, 2026-10-01 or 2026-10-01T12:00:00Z"
        raise InvalidInputError("since", text, "is neither a time nor a duration", hint=hint)
    return at_s


def _lowest(log: str, commits: Sequence[Commit], limit: int) -> _Place:
    """Return the place of the last commit that was read of a log, or the bottom if that is all."""
    if len(commits) < limit:
        return _BOTTOM
    return int(_time_of(commits[-1])), log, 1 - len(commits), commits[-1].id


def _highest(waiting: Sequence[Delivery]) -> _Place:
    """Return a place below which are all entries of orders that were not read yet."""
    return (int(waiting[-1].at_s), _UNSHOWN, 0, _NO_COMMIT) if waiting else _BOTTOM


def _position(cursor: str) -> tuple[_Place, str]:
    """Return before which place a page begins, and at which commit the ledger is read."""
    if not cursor:
        # later than every second
        return (1 << 62, "", 1, ""), ""
    match = _CURSOR.fullmatch(cursor)
    if match is None:
        hint = "ask for the first page again, without a cursor"
        raise InvalidInputError("cursor", cursor[:40], "is none of ours", hint=hint)
    return (int(match[1]), match[2], 1, match[3]), match[4]


def _teams_by_order(paths: Iterable[object]) -> dict[str, str]:
    """Return the team of each order, also of ended ones; "" if two teams had the same id."""
    teams: dict[str, str] = {}
    for path in paths:
        match str(path).split("/"):
            case ["apps", team, name] if name.endswith(".yaml"):
                order = name.removesuffix(".yaml")
            case ["data", team, order, _]:
                pass
            case _:
                continue
        teams[order] = team if teams.get(order, team) == team else ""
    return teams


def _time_of(commit: Commit) -> float:
    """Return when Orderkit signed a commit, else what git says of its author."""
    signature = signature_of(commit.message)
    return float(signature.at) if signature else _seconds(commit.when)


def _seconds(time: object) -> float:
    try:
        at = datetime.fromisoformat(str(time or ""))
    except ValueError:
        return 0.0
    return max((at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp(), 0.0)


def _text(at_s: float) -> str:
    return f"{datetime.fromtimestamp(int(at_s), UTC):%Y-%m-%dT%H:%M:%SZ}"
