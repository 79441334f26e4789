"""
An operation of the service: its path, the right it needs, its schemas, its handler.

One table of them (``web.operation_table``) makes the routes, checks requests and answers the
OpenAPI document, so that the three cannot disagree.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

from ground.shapes import StrictShape, read_shape
from orderkit.core.platform.service_access import Right
from orderkit.flows.lease.sweeper import SWEEP_INTERVAL_S
from orderkit.web.callers import Caller, CallerAccess
from orderkit.web.event_stream import BOUNDS, OrderStreams, StreamBounds
from orderkit.web.shared_reads import OrderAnswers, SharedReads

if TYPE_CHECKING:
    from orderkit.flows.live.order_model import OrderModel
    from orderkit.flows.notify.notifying import Notifications, NotifyOptions
    from orderkit.flows.platform import Platform
    from orderkit.ports.sign_in import SignIn
    from orderkit.web.auditing import AuditLog
    from orderkit.web.metrics import Metrics

Schema = Mapping[str, Any]
T = TypeVar("T", bound=StrictShape)
ANSWER_S = 50.0


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
    console: ConsoleOptions | None = None
    """How people sign in to the console; None: there is none."""
    notifications: NotifyOptions | None = None
    """Who is notified about orders; None: nobody."""


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
class Service:
    """What handlers work with."""

    platform: Platform
    options: ServiceOptions
    metrics: Metrics
    model: OrderModel
    streams: OrderStreams
    notifications: Notifications | None = None
    reads: SharedReads = field(default_factory=SharedReads)
    answers: OrderAnswers = field(default_factory=OrderAnswers)


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
