"""
Keep the values of Secrets out of the reasons that rows show, without asking for each change.

A station or provider may write a password into a condition. Reading an order's Secrets takes many
requests, so one thread does it, once for each new text of an order; until then the row has the
order's last checked texts, or says that the reason is being checked. Texts that Orderkit, Argo CD
or Crossplane wrote themselves need no check.
"""

from __future__ import annotations

import logging
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator
from dataclasses import replace

from orderkit.core.errors import OrderkitError
from orderkit.core.objects.kube_objects import Manifest, ObjectKey, dig
from orderkit.core.objects.secret_values import NO_SECRETS
from orderkit.core.order.order_summary import plain
from orderkit.core.order.order_view import OrderRow, OrderSources
from orderkit.core.order.part_states import MISSING, UNREAD
from orderkit.flows.order.foreign_words import CROSSPLANES_OWN
from orderkit.flows.platform import Platform, get_object

BEING_CHECKED = "the reason is being checked for values of Secrets"
_PAUSE_S = 5.0
"""Between two checks of one order: a text that changes all the time must not keep the thread."""
_BEGINNING = 40
"""Characters by which a foreign text is recognised in a reason that may have been cut."""

logger = logging.getLogger(__name__)
Texts = tuple[str, ...]


class ReasonMasks:
    """The checked texts of rows, and the thread that checks new ones."""

    def __init__(self, platform: Platform, on_checked: Callable[[str], None]) -> None:
        """
        Take who is called with an order's id once its texts are checked.

        Args:
            platform: Where the Secrets are.
            on_checked: Has the row made again.
        """
        self._platform, self._on_checked = platform, on_checked
        self._wake = threading.Condition()
        self._checked: dict[str, tuple[Texts, Texts]] = {}
        self._waiting: OrderedDict[str, tuple[ObjectKey, Texts]] = OrderedDict()
        self._not_before_s: dict[str, float] = {}
        self._is_closed = False
        self._thread = threading.Thread(target=self._run, name="live masks", daemon=True)

    def start(self) -> None:
        """Begin to check."""
        self._thread.start()

    def stop(self) -> None:
        """Ask the thread to end after the order that it checks."""
        with self._wake:
            self._is_closed = True
            self._wake.notify_all()

    def join(self, timeout_s: float) -> None:
        """Wait for the thread."""
        self._thread.join(timeout_s)

    def forget(self, order: str) -> None:
        """Drop what is known of an order that is gone."""
        with self._wake:
            self._checked.pop(order, None)
            self._waiting.pop(order, None)
            self._not_before_s.pop(order, None)

    def masked(self, row: OrderRow, sources: OrderSources, xr: ObjectKey | None) -> OrderRow:
        """Return the row without values of Secrets."""
        texts, foreign = _texts(row), [text[:_BEGINNING] for text in _foreign(sources)]
        unchecked = tuple(
            BEING_CHECKED if any(beginning in text for beginning in foreign) else text
            for text in texts
        )
        if xr is None or unchecked == texts:
            return row
        with self._wake:
            checked = self._checked.get(row.order)
            if checked is None or checked[0] != texts:
                self._waiting[row.order] = (xr, texts)
                self._wake.notify_all()
        return _with(row, checked[1] if checked else unchecked)

    def _run(self) -> None:
        while (following := self._next()) is not None:
            order, key, texts = following
            try:
                checked = self._check(key, texts)
            except OrderkitError as error:
                logger.warning("the reason of %s cannot be checked now: %s", order, error)
                self._repeat(order, key, texts)
                continue
            except Exception:
                logger.exception("a bug while checking the reason of %s", order)
                self._repeat(order, key, texts)
                continue
            with self._wake:
                self._checked[order] = (texts, checked)
            self._on_checked(order)

    def _next(self) -> tuple[str, ObjectKey, Texts] | None:
        """Wait for an order to check; None: closed."""
        clock = self._platform.clock
        with self._wake:
            while not self._is_closed:
                now_s = clock.monotonic_s()
                for order, (key, texts) in self._waiting.items():
                    if self._not_before_s.get(order, 0.0) <= now_s:
                        del self._waiting[order]
                        self._not_before_s[order] = now_s + _PAUSE_S
                        return order, key, texts
                self._wake.wait(_PAUSE_S / 5 if self._waiting else None)
            return None

    def _repeat(self, order: str, key: ObjectKey, texts: Texts) -> None:
        with self._wake:
            self._waiting.setdefault(order, (key, texts))

    def _check(self, key: ObjectKey, texts: Texts) -> Texts:
        xr: Manifest | None = get_object(self._platform, key)
        secrets = self._platform.secrets_of(self._platform, xr) if xr else NO_SECRETS
        return tuple(secrets.redact(text) for text in texts)


def _texts(row: OrderRow) -> Texts:
    failing = row.parts.failing
    return row.reason, row.remedy, failing.reason if failing else ""


def _with(row: OrderRow, texts: Texts) -> OrderRow:
    reason, remedy, failing_reason = texts
    failing = row.parts.failing
    if failing is not None:
        row = replace(
            row, parts=replace(row.parts, failing=replace(failing, reason=failing_reason))
        )
    return replace(row, reason=reason, remedy=remedy)


def _foreign(sources: OrderSources) -> Iterator[str]:
    """Yield the texts of an order's objects that a station or provider may have written."""
    for entry in dig(sources.xr, "status", "conditions") or ():
        message = entry.get("message") if isinstance(entry, dict) else None
        if message and not str(message).startswith(CROSSPLANES_OWN):
            yield from (plain(str(message)), plain(" ".join(str(message).split())))
    for part in sources.parts:
        if part.reason not in ("", MISSING, UNREAD) and not part.reason.startswith(CROSSPLANES_OWN):
            yield plain(part.reason)
