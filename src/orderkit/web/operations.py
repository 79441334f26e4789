"""
An operation of the service: its path, the right it needs, its schemas, its handler.

One table of them (``web.operation_table``) makes the routes, checks requests and answers the
OpenAPI document, so that the three cannot disagree.

`SharedReads` shares reads among those who ask at the same time, and `KeptAnswers` keeps what was
read of orders for a moment. One read of an order costs a dozen requests and a run of its pipeline.
Fifty readers who each make their own hold up each other, and those who write. So a reader gets the
outcome of a read that began after they asked: what they would have read themselves, or newer.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from ground.shapes import StrictShape, read_shape
from orderkit.core.platform.service_access import Right
from orderkit.flows.lease.sweeper import SWEEP_INTERVAL_S
from orderkit.web.callers import Caller, CallerAccess
from orderkit.web.event_stream import BOUNDS, OrderStreams, StreamBounds

if TYPE_CHECKING:
    from orderkit.core.order.damage import Damage
    from orderkit.flows.live.order_model import OrderModel
    from orderkit.flows.notify.notifying import Notifications, NotifyOptions
    from orderkit.flows.platform import Platform
    from orderkit.ports.requesters import SignIn
    from orderkit.web.auditing import AuditLog
    from orderkit.web.metrics import Metrics


AnswerT = TypeVar("AnswerT")
VersionsT = TypeVar("VersionsT", bound=Hashable)
KEPT_S = 1.0
"""How long an answer is kept while nothing says that the order changed."""
KEYS_MAX = 2_000
"""Things that are remembered; of others, only reads at the same moment are shared."""


@dataclass(slots=True)
class _Turns(Generic[AnswerT]):
    """The reads of one thing, which take turns."""

    turn: threading.Lock = field(default_factory=threading.Lock)
    counting: threading.Lock = field(default_factory=threading.Lock)
    begun: int = 0
    """Number of the newest read, which may not have ended."""
    ended: int = 0
    outcome: AnswerT | None = None
    error: Exception | None = None

    def run(self, read: Callable[[], AnswerT]) -> AnswerT:
        with self.counting:
            needed = self.begun + 1  # a read that runs already may have missed a write
        with self.turn:
            if self.ended < needed:
                self._read(read)
            if self.error is not None:
                raise self.error
            outcome: AnswerT = self.outcome  # type: ignore[assignment]  # set, as there is no error
            return outcome

    def _read(self, read: Callable[[], AnswerT]) -> None:
        with self.counting:
            self.begun += 1
            number = self.begun
        self.outcome = self.error = None
        try:
            self.outcome = read()
        except Exception as error:  # noqa: BLE001 - everyone who waits gets it
            self.error = error
        self.ended = number


class SharedReads:
    """Reads by key. Safe to use from several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._turns: OrderedDict[Hashable, _Turns[Any]] = OrderedDict()

    def read(self, key: Hashable, read: Callable[[], AnswerT]) -> AnswerT:
        """
        Return the outcome of a read that began after this call, own or another's.

        Raises:
            Exception: What that read raised.
        """
        with self._lock:
            turns: _Turns[AnswerT] = self._turns.setdefault(key, _Turns())
            self._turns.move_to_end(key)
            if len(self._turns) > KEYS_MAX:
                self._turns.popitem(last=False)
        return turns.run(read)


@dataclass(frozen=True, slots=True)
class _Kept(Generic[AnswerT]):
    versions: Hashable
    read_s: float
    answer: AnswerT


class KeptAnswers(Generic[AnswerT]):
    """Answers about single orders. Safe to use from several threads."""

    def __init__(self) -> None:
        self._reads = SharedReads()
        self._lock = threading.Lock()
        self._kept: OrderedDict[Hashable, _Kept[AnswerT]] = OrderedDict()

    def get(
        self,
        key: Hashable,
        versions: Callable[[], VersionsT],
        make: Callable[[VersionsT], AnswerT],
    ) -> AnswerT:
        """
        Return an answer made after this call, or one of a moment ago with the same versions.

        Args:
            key: The order, and the question.
            versions: Reads what changes whenever the order does.
            make: Makes the answer, right after the versions were read.

        Raises:
            OrderkitError: As `versions` and `make` say.
        """

        def read() -> AnswerT:
            read_s, now = time.monotonic(), versions()  # before the answer, which may be newer
            with self._lock:
                kept = self._kept.get(key)
            if kept and kept.versions == now and read_s - kept.read_s < KEPT_S:
                return kept.answer
            answer = make(now)
            with self._lock:
                self._kept[key] = _Kept(now, read_s, answer)
                self._kept.move_to_end(key)
                if len(self._kept) > KEYS_MAX:
                    self._kept.popitem(last=False)
            return answer

        return self._reads.read(key, read)


Schema = Mapping[str, Any]
T = TypeVar("T", bound=StrictShape)
ANSWER_S = 50.0
"""The portal waits 60 s."""


@dataclass(frozen=True, slots=True)
class ConsoleOptions:
    """How people sign in to the console of one service."""

    address: str
    """The service as a browser reaches it."""
    sign_in: SignIn | None = None
    """The OpenID provider; None: nobody signs in with one."""
    links: bool = False
    """One-time links sign in whoever opens them on this machine."""
    secure: bool = False
    """A browser reaches the service over TLS, whoever terminates it."""
    session_s: int = 3600
    docs: str = ""
    """Where the site of the documentation is served; empty: nowhere."""


@dataclass(frozen=True, slots=True)
class ServiceOptions:
    """How one service is set up."""

    access: CallerAccess
    audit: AuditLog | None = None
    requests_per_minute: int = 600
    trusted_proxies: tuple[str, ...] = ()
    """Addresses and networks whose ``X-Forwarded-For`` names the client."""
    answer_s: float = ANSWER_S
    """Time limit of slow operations, below the portal's own."""
    portal_url: str = ""
    """Address at which a browser reaches the portal's forms."""
    open_forms: bool = False
    streams: StreamBounds = BOUNDS
    sweep_interval_s: float = SWEEP_INTERVAL_S
    """How often leases are swept, by one of all replicas."""
    console: ConsoleOptions = ConsoleOptions("")
    notifications: NotifyOptions | None = None
    """Who is notified about orders; None: nobody."""


@dataclass(frozen=True, slots=True)
class Service:
    """What handlers work with."""

    platform: Platform
    options: ServiceOptions
    metrics: Metrics
    model: OrderModel
    streams: OrderStreams
    notifications: Notifications | None = None
    reads: SharedReads = field(default_factory=SharedReads)
    answers: KeptAnswers[Mapping[str, Any]] = field(default_factory=KeptAnswers)
    forge_looks: KeptAnswers[tuple[Damage, ...]] = field(default_factory=KeptAnswers)
    """What was done to orders' repositories: most of an order's requests, and rarely anything."""


@dataclass(frozen=True, slots=True)
class ServiceRequest:
    """
    One request, read and checked. `audit_fields` has the handler's fields for the audit log.

    `caller` is None only for operations without authentication.
    """

    caller: Caller | None
    body: Mapping[str, Any]
    path: Mapping[str, str]
    query: Mapping[str, str]
    authorization: str = field(default="", repr=False)
    key: str = ""
    """The Idempotency-Key."""
    last_event: str = ""
    """The Last-Event-ID."""
    raw: bytes = field(default=b"", repr=False)
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Body and headers as they came, names in small letters: of a webhook only."""
    audit_fields: dict[str, Any] = field(default_factory=dict)

    def read(self, shape: type[T]) -> T:
        """Return the body, which was checked, as the operation's shape."""
        return read_shape(shape, self.body)

    @property
    def who(self) -> Caller:
        """
        The caller of an operation that needs one.

        Raises:
            RuntimeError: The operation is open: a mistake in the table.
        """
        if self.caller is None:
            raise RuntimeError("this operation has no caller")
        return self.caller


@dataclass(frozen=True, slots=True)
class ServiceResponse:
    """
    The answer.

    `body` is JSON, as a value or as bytes, unless the operation has another media type; or it is a
    response of its own.
    """

    status: int
    body: Any
    headers: Mapping[str, str] = field(default_factory=dict)


Handler = Callable[[Service, ServiceRequest], ServiceResponse]


@dataclass(frozen=True, slots=True)
class ServiceOperation:
    """One method of one path."""

    id: str
    method: str
    path: str
    summary: str
    handler: Handler
    answers: Mapping[int, tuple[str, Schema | None]]
    """By status: a description and the schema of the body."""
    right: Right | None
    """The right that a caller needs; None: no authentication."""
    body: Schema | None = None
    query: Mapping[str, Schema] = field(default_factory=dict)
    slow: bool = False
    """May take long: runs in separate threads, and is answered within the time limit."""
    inline: bool = False
    """Answered at once, without a thread and without limits: for probes."""
    optional: bool = False
    """Authentication is optional; the handler decides."""
    person: bool = False
    """If a portal signs for its users, its secret alone is not enough."""
    keyed: bool = False
    """It honours an Idempotency-Key."""
    resumes: bool = False
    """It is a stream that honours a Last-Event-ID. Pages follow it: a session is a proof, too."""
    hook: bool = False
    """A delivery of the forge: its handler checks the signature of what came, as it came."""
    media: str = "application/json"
    page: bool = False
    """Of the console: a session proves the caller, bodies are forms, errors are pages."""
    link: bool = False
    """People follow it from the portal: what is refused is a page for them."""
