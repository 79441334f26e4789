"""
Keep the values of Secrets out of rows, without asking the cluster for each change.

A station or provider may write a password into a condition or a status. Reading an order's Secrets
takes many requests, so one thread does it, once for each new row that shows a text which may hold
one; until then the row is shown without these texts. A row shows none if it is the same without
them: numbers, names, and values of the XR's own spec, which Git has, are no secrets.
"""

from __future__ import annotations

import logging
import re
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from ground.errors import OrderkitError
from ground.objects.kube_objects import Manifest, ObjectKey, metadata
from ground.shapes import changed
from orderkit.core.order.order_view import OrderRow, OrderSources, PartState
from orderkit.core.order.part_failures import MISSING, UNREAD
from orderkit.core.secret_values import NO_SECRETS, SecretTexts, leaves
from orderkit.flows.composing.on_demand import order_secrets
from orderkit.flows.order.state_without_secrets import CROSSPLANES_OWN
from orderkit.flows.platform import Platform, get_object
from orderkit.flows.worker_thread import WorkerThread

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

logger = logging.getLogger(__name__)
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
                self._waiting.setdefault(order, (key, row))

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
        xr = get_object(self._platform, key)
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
