"""
Look for what no watch tells of orders, and which values of Secrets to keep out of rows.

`RowLooks` looks at orders one after the other, at a bounded rate, in one thread for each kind of
look: rows need no request. It makes so many requests a second, however many orders there are: those
not looked at yet come first, then those whose last look is longest ago.

`RowHeads` looks whether the protected ``main`` of orders is ahead of what is delivered. Argo CD
delivers the commit in the ledger and knows of no other one. The forge's webhook brings a look at
once; without it, the turn of an order comes by itself. `RowCauses` looks closer at parts of orders
that assemble: at their events and Pods, which nobody follows.

`RowMasks` keeps the values of Secrets out of rows, without asking the cluster for each change. A
station or provider may write a password into a condition or a status. Reading an order's Secrets
takes many requests, so one thread does it, once for each new row that shows a text which may hold
one; until then the row is shown without these texts. A row shows none if it is the same without
them: numbers, names, and values of the XR's own spec, which Git has, are no secrets.
"""

from __future__ import annotations

import logging
import re
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Generic, TypeVar

from ground.argocd.delivery_obstacles import Obstacle
from ground.errors import OrderkitError
from ground.names import CommitSha
from ground.objects.kube_objects import Manifest, ObjectKey, metadata
from ground.shapes import changed
from orderkit.core.order.ledger import OrderEntry
from orderkit.core.order.order_summary import state_of
from orderkit.core.order.order_view import OrderRow, OrderSources, PartState
from orderkit.core.order.part_failures import MISSING, UNREAD, UNSYNCED
from orderkit.core.secret_values import NO_SECRETS, SecretTexts, leaves
from orderkit.flows.argocd.commit_pinning import undelivered
from orderkit.flows.composing.on_demand import order_secrets
from orderkit.flows.order.closer_look import CROSSPLANES_OWN, closer_state, is_worth_a_look
from orderkit.flows.platform import Platform, get_object
from orderkit.flows.repeating import WorkerThread

_REQUEST_S = 0.2
"""What a request costs in time: no more are made in a large fleet."""
logger = logging.getLogger(__name__)

Target = TypeVar("Target")
Found = TypeVar("Found")


@dataclass(slots=True)
class _Looked(Generic[Target, Found]):
    target: Target
    next_s: float
    found: Found | None = None


class RowLooks(WorkerThread, Generic[Target, Found]):
    """What was found out about orders, and the thread that finds it out. Thread-safe."""

    EVERY_S: float
    """How long after a look the next one at the same order comes at the earliest."""

    def __init__(self, name: str, platform: Platform, on_found: Callable[[str], None]) -> None:
        """
        Take who is called with an order's id once a look found something else than the one before.

        Args:
            name: The thread's.
            platform: Where the orders are.
            on_found: Has the row made again.
        """
        super().__init__(name)
        self._platform, self._on_found = platform, on_found
        self._orders: dict[str, _Looked[Target, Found]] = {}
        self._free_s = 0.0
        """When the next order may be looked at."""

    def forget(self, order: str) -> None:
        """Look no more at an order."""
        with self._wake:
            self._orders.pop(order, None)

    def look_again(self, order: str, *, in_s: float = 0.0) -> None:
        """Look at an order soon, if it is looked at."""
        with self._wake:
            if order in self._orders:
                self._orders[order].next_s = self._platform.clock.monotonic_s() + in_s
                self._wake.notify_all()

    def _last(self, order: str, target: Target) -> Found | None:
        """Return what the last look found; have the order looked at from now on."""
        with self._wake:
            looked = self._orders.setdefault(order, _Looked(target, 0.0))
            if looked.target != target:
                looked.target, looked.next_s = target, self._platform.clock.monotonic_s()
            self._wake.notify_all()
            return looked.found

    def _look(self, order: str, target: Target) -> Found:
        """Look at an order."""
        raise NotImplementedError

    def _requests(self, target: Target) -> int:  # noqa: ARG002 - subclasses look at both
        """Return about how many requests a look makes."""
        return 1

    def _run(self) -> None:
        while (due := self._next()) is not None:
            order, target = due
            try:
                found = self._look(order, target)
            except OrderkitError as error:
                logger.warning("%s cannot be looked at now: %s", order, error)
                continue
            except Exception:
                logger.exception("a bug while looking at %s", order)
                continue
            with self._wake:
                looked = self._orders.get(order)
                is_new = looked is not None and looked.found != found
                if looked is not None:
                    looked.found = found
            if is_new:
                self._on_found(order)

    def _next(self) -> tuple[str, Target] | None:
        """Wait for an order to look at; None: closed."""
        with self._wake:
            while not self._is_closed:
                now_s = self._platform.clock.monotonic_s()
                order = min(self._orders, key=lambda each: self._orders[each].next_s, default=None)
                if order is None:
                    self._wake.wait()
                    continue
                looked = self._orders[order]
                wait_s = max(looked.next_s, self._free_s) - now_s
                if wait_s <= 0:
                    looked.next_s = now_s + self.EVERY_S
                    self._free_s = now_s + self._requests(looked.target) * _REQUEST_S
                    return order, looked.target
                self._wake.wait(max(0.01, wait_s))
            return None


_SURE_AFTER_S = 2.0
"""Orderkit writes ``main`` first and the ledger then: between them, nothing is wrong."""

_Pinned = tuple[OrderEntry, CommitSha]


class RowHeads(RowLooks[_Pinned, tuple[CommitSha, Obstacle | None]]):
    """Why what is on a protected ``main`` is not delivered."""

    EVERY_S = 60.0

    def __init__(self, platform: Platform, on_found: Callable[[str], None]) -> None:
        """Take who is called with an order's id once its main is ahead, or not any more."""
        super().__init__("live heads", platform, on_found)
        self._suspected: dict[str, Obstacle] = {}

    def of(self, entry: OrderEntry, pinned: CommitSha | None) -> Obstacle | None:
        """
        Return why an order's main is not delivered; None: it is, or nobody knows yet.

        Args:
            entry: The order.
            pinned: The commit that its Application names; None: it follows the branch.
        """
        if pinned is None:
            self.forget(entry.order)
            return None
        commit, why = self._last(entry.order, (entry, pinned)) or (pinned, None)
        return why if commit == pinned else None

    def _look(self, order: str, target: _Pinned) -> tuple[CommitSha, Obstacle | None]:
        entry, pinned = target
        head = self._platform.forge.head(entry.repository)
        why = None if head == pinned else undelivered(self._platform, entry, head)
        if why is None:
            self._suspected.pop(order, None)
        elif self._suspected.get(order) != why:
            self._suspected[order] = why
            self.look_again(order, in_s=_SURE_AFTER_S)
            return pinned, None
        return pinned, why


_AT_MOST = 20
"""Parts of one order."""


class RowCauses(RowLooks[tuple[ObjectKey, ...], Mapping[ObjectKey, PartState]]):
    """Why parts fail that do not say it themselves. An order is looked at while it assembles."""

    EVERY_S = 10.0

    def __init__(self, platform: Platform, on_found: Callable[[str], None]) -> None:
        """Take who is called with an order's id once a part fails, or does not any more."""
        super().__init__("live causes", platform, on_found)

    def of(self, order: str, parts: Sequence[PartState]) -> tuple[PartState, ...]:
        """Return the parts of an order that assembles, with what was found out about them."""
        keys = tuple(part.key for part in parts if is_worth_a_look(part))[:_AT_MOST]
        if not keys:
            self.forget(order)
            return tuple(parts)
        found = self._last(order, keys) or {}
        return tuple(found.get(part.key, part) for part in parts)

    def added_to(self, order: str, key: ObjectKey | None, sources: OrderSources) -> OrderSources:
        """Return sources with what events and Pods say about parts of an order that assembles."""
        state = state_of(sources)
        is_unsynced = state.phase == "Failing" and state.reason.startswith(UNSYNCED)
        if key is None or not (is_unsynced or state.phase == "Assembling"):
            self.forget(order)
            return sources
        root = (PartState(key, "False", "-", state.reason),) if is_unsynced else ()
        looked = self.of(order, (*root, *sources.parts))
        own = looked[0] if is_unsynced and looked[0].fails_from else None
        return replace(sources, parts=looked[len(root) :], own=own)

    def _look(self, order: str, target: tuple[ObjectKey, ...]) -> Mapping[ObjectKey, PartState]:  # noqa: ARG002 - of RowLooks
        found: dict[ObjectKey, PartState] = {}
        for key in target:
            manifest = get_object(self._platform.cluster, key)
            state = closer_state(self._platform.cluster, manifest) if manifest else None
            if state and state.fails_from:
                found[key] = state
        return found

    def _requests(self, target: tuple[ObjectKey, ...]) -> int:
        return len(target)


BEING_CHECKED = "the reason is being checked for values of Secrets"
_PAUSE_S = 5.0
"""Between two checks of one order: a text that changes all the time must not keep the thread."""
_PLAIN = re.compile(r"[-+0-9.:TZ]{1,40}")
"""Numbers and times."""
_REASONS = frozenset(
    {"Available", "Creating", "Deleting", "Unavailable"}
    | {"ReconcileSuccess", "ReconcileError", "ReconcilePaused", "WatchCircuitOpen"}
)
"""Reasons of conditions that Crossplane writes itself."""

Make = Callable[[OrderSources, SecretTexts], OrderRow]
"""Makes the row of sources, without the values of these Secrets."""


class RowMasks(WorkerThread):
    """The checked rows, and the thread that reads Secrets for new ones."""

    def __init__(self, platform: Platform, on_checked: Callable[[str], None]) -> None:
        """
        Take who is called with an order's id once its Secrets were read.

        Args:
            platform: Where the Secrets are.
            on_checked: Has the row made again.
        """
        super().__init__("live masks")
        self._platform, self._on_checked = platform, on_checked
        self._checked: dict[str, tuple[OrderRow, OrderRow]] = {}
        """By order: a row as it was made, and as it is shown."""
        self._texts: dict[str, tuple[OrderRow, SecretTexts]] = {}
        """By order: Secrets that were read after this row was made; until it is made again."""
        self._waiting: OrderedDict[str, tuple[ObjectKey, OrderRow]] = OrderedDict()
        self._not_before_s: dict[str, float] = {}

    def forget(self, order: str) -> None:
        """Drop what is known of an order that is gone."""
        with self._wake:
            for known in (self._checked, self._texts, self._waiting, self._not_before_s):
                known.pop(order, None)

    def masked(self, sources: OrderSources, xr: ObjectKey | None, make: Make) -> OrderRow:
        """Return the row of an order without values of Secrets."""
        row = make(sources, NO_SECRETS)
        if xr is None or sources.xr is None:
            return row
        public = make(_public(sources, sources.xr), NO_SECRETS)
        if public == row:
            return row
        order = row.order
        with self._wake:
            made, shown = self._checked.get(order, (None, None))
            if made == row and shown is not None:
                return shown
            row_read_for, texts = self._texts.pop(order, (None, NO_SECRETS))
            if row_read_for != row:  # a Secret that is newer than those may be in it
                self._waiting[order] = (xr, row)
                self._wake.notify_all()
                return _withheld(row, public)
        shown = make(sources, texts)
        with self._wake:
            self._checked[order] = (row, shown)
        return shown

    def _run(self) -> None:
        while (waiting := self._next()) is not None:
            order, key, row = waiting
            try:
                texts = self._read(key)
            except OrderkitError as error:
                logger.warning("the Secrets of %s cannot be read now: %s", order, error)
            except Exception:
                logger.exception("a bug while reading the Secrets of %s", order)
            else:
                with self._wake:
                    self._texts[order] = (row, texts)
                self._on_checked(order)
                continue
            with self._wake:
                self._waiting.setdefault(order, (key, row))  # unless a newer row waits already

    def _next(self) -> tuple[str, ObjectKey, OrderRow] | None:
        """Wait for an order to check; None: closed."""
        clock = self._platform.clock
        with self._wake:
            while not self._is_closed:
                now_s = clock.monotonic_s()
                for order, (key, row) in self._waiting.items():
                    if self._not_before_s.get(order, 0.0) <= now_s:
                        del self._waiting[order]
                        self._not_before_s[order] = now_s + _PAUSE_S
                        return order, key, row
                self._wake.wait(_PAUSE_S / 5 if self._waiting else None)
            return None

    def _read(self, key: ObjectKey) -> SecretTexts:
        xr = get_object(self._platform.cluster, key)
        return order_secrets(self._platform, xr) if xr else NO_SECRETS


def _withheld(row: OrderRow, public: OrderRow) -> OrderRow:
    """Return a row with its phase and numbers, but without the texts that are to be checked."""
    failing = row.parts.failing
    if failing is not None:
        failing = changed(failing, reason=BEING_CHECKED)
    return changed(
        public,
        phase=row.phase,
        since=row.since,
        reason=(public.reason or BEING_CHECKED) if row.reason else "",
        parts=changed(row.parts, failing=failing),
    )


def _public(sources: OrderSources, xr: Manifest) -> OrderSources:
    """Return sources without the texts in which a Secret's value may be."""
    meta = metadata(xr)
    words = {str(meta.get("name")), str(meta.get("namespace") or ""), *leaves(xr.get("spec"))}
    words |= {word for part in sources.parts for word in (part.key.name, part.key.namespace)}
    status = xr.get("status")
    kept = _without_texts(status, words) if isinstance(status, dict) else {}
    if isinstance(status, dict) and isinstance(status.get("conditions"), list):
        entries = [entry for entry in status["conditions"] if isinstance(entry, dict)]
        kept["conditions"] = [_public_condition(entry) for entry in entries]
    parts = tuple(map(_public_part, sources.parts))
    return replace(sources, xr={**xr, "status": kept}, parts=parts)


def _without_texts(value: Any, words: set[str]) -> Any:
    if isinstance(value, dict):
        return {name: _without_texts(entry, words) for name, entry in value.items()}
    if isinstance(value, list):
        return [_without_texts(entry, words) for entry in value]
    is_foreign = isinstance(value, str) and value not in words and not _PLAIN.fullmatch(value)
    return None if is_foreign else value


def _public_condition(entry: dict[str, Any]) -> dict[str, Any]:
    kept = {k: v for k, v in entry.items() if k not in ("message", "reason")}
    if entry.get("reason") in _REASONS:
        kept["reason"] = entry["reason"]
    if str(entry.get("message") or "").startswith(CROSSPLANES_OWN):
        kept["message"] = entry["message"]
    return kept


def _public_part(part: PartState) -> PartState:
    is_ours = part.reason in ("", MISSING, UNREAD) or part.reason.startswith(CROSSPLANES_OWN)
    return part if is_ours else replace(part, reason="")
