"""
One live model of all orders: rows that watches of the cluster and reads of the ledger keep current.

Followers (one thread for each kind) put what they read into `ClusterObjects`, which says whose row
may have changed. One thread reads ledger and pack again when something hints that they moved, and
now and then without a hint. One thread makes rows, only those whose sources changed, and adds what
differs to the `ChangeLog`. Nothing is asked of cluster or forge for a row. Each process has one.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace

from ground.errors import InProgressError, NotFoundError, OrderkitError
from ground.names import RepoId
from ground.objects.kube_objects import (
    APPLICATION,
    ARGOCD_NAMESPACE,
    Kind,
    Manifest,
    ObjectKey,
    dig,
    labels_of,
    metadata,
)
from orderkit.core.kit.model import Kit
from orderkit.core.order import ledger
from orderkit.core.order.damage import CommitCheck, labelled_entry
from orderkit.core.order.order_summary import state_of, summarize, with_parts
from orderkit.core.order.order_view import OrderRow, OrderSources
from orderkit.core.order.part_failures import UNREAD
from orderkit.core.secret_values import SecretTexts
from orderkit.flows.approval.settling import settle_all
from orderkit.flows.live.cluster_objects import ClusterObjects
from orderkit.flows.live.following import KindFollower, Receiver
from orderkit.flows.live.forge_records import (
    ForgeRecords,
    WaitingChanges,
    with_ledger,
    with_owners,
    with_pack,
)
from orderkit.flows.live.live_row import (
    ChangeLog,
    DueRows,
    LiveRow,
    ModelState,
    ReadyTimes,
    RowCosts,
)
from orderkit.flows.live.row_looks import RowCauses, RowHeads, RowMasks
from orderkit.flows.order.activity import Delivery
from orderkit.flows.order.order_report import own_xr
from orderkit.flows.platform import Platform

KINDS_MAX = 200
"""Kinds that are followed; whoever pushes an XR may name others."""
REREAD_S = 60.0
"""How often ledger and pack are read without a hint."""
COMPLETE_S = 10.0
"""How long an answer waits for the model to be complete, right after a start."""
_REREAD_PAUSE_S, _RETRY_S = 0.2, 1.0
"""After a read, and after one that failed."""
_BATCH = 500
_GATHER_S = 0.02
"""How long a change waits for others: many rows then need one wake-up of each reader."""
_FIRST_LOOK_S = 0.05
"""How often the first rows look whether everything was read."""
_JOIN_S = 10.0

logger = logging.getLogger(__name__)


class OrderModel:
    """The rows of all orders. Safe to use from several threads."""

    def __init__(self, platform: Platform) -> None:
        """Contact nothing yet."""
        self.log = ChangeLog()
        self._platform = platform
        self._lock = threading.RLock()
        self._wake = threading.Condition(self._lock)
        self._changed: set[str] = set()
        self._notes: Counter[str] = Counter()
        self._objects = ClusterObjects(self._note)
        self._masks = RowMasks(platform, self._note)
        self._costs = RowCosts(platform, self._note)
        self._causes = RowCauses(platform, self._note)
        self._heads = RowHeads(platform, self._note)
        self._checks: dict[str, CommitCheck] = {}
        self._records = ForgeRecords()
        self._forge_heard_s, self._forge_error = time.monotonic(), "not read yet"
        self._waiting_changes = WaitingChanges(platform)
        self._settle_at_s, self._changes_at_s = time.monotonic() + REREAD_S, time.monotonic()
        self._rows: dict[str, LiveRow] = {}
        self._sorted: tuple[LiveRow, ...] | None = None
        self._followers: dict[Kind, KindFollower] = {}
        self._followed: dict[Kind, bool] = {}
        """By kind: whether it is followed as a kit's."""
        self._kit_kinds: frozenset[Kind] = frozenset()
        self._revisions: dict[str, object] = {}
        self._due = DueRows()
        self._ready_times = ReadyTimes()
        self._hint, self._complete, self._stop = (threading.Event() for _ in range(3))
        self._applications = KindFollower(
            platform.cluster,
            APPLICATION,
            Receiver(self._put_application, self._remove_application, self._application_keys),
            namespace=ARGOCD_NAMESPACE,
            on_state=self._note_all,
        )
        self._threads = [
            threading.Thread(target=self._keep_reading, name="live ledger", daemon=True),
            threading.Thread(target=self._keep_rows, name="live rows", daemon=True),
        ]

    # -- for those who ask

    def rows(self) -> tuple[LiveRow, ...]:
        """Return all rows, by team and id."""
        with self._lock:
            if self._sorted is None:
                rows = self._rows.values()
                self._sorted = tuple(sorted(rows, key=lambda r: (r.row.team, r.row.order)))
            return self._sorted

    def row(self, order: str) -> LiveRow | None:
        """Return the row of an order; None if the ledger has no such order."""
        with self._lock:
            return self._rows.get(order)

    def version(self, order: str) -> int:
        """Return a number that grows whenever something of an order changed in the cluster."""
        with self._lock:
            return self._notes[order]

    def deliveries(self) -> list[Delivery]:
        """Return when each order was delivered last."""
        return self._objects.deliveries()

    def wait_complete(self, timeout_s: float = COMPLETE_S) -> None:
        """
        Return once everything was read.

        Raises:
            InProgressError: It was not, in time.
        """
        if not self._complete.wait(timeout_s):
            raise InProgressError(
                f"the list of orders is not complete yet: {self._missing()}",
                hint="ask again soon; /readyz says when it is complete",
            )

    def state(self) -> ModelState:
        """Return how far the model can be relied on."""
        with self._lock:
            followers = (self._applications, *self._followers.values())
            forge_age_s = time.monotonic() - self._forge_heard_s if self._forge_error else 0.0
            return ModelState(
                is_complete=self._complete.is_set(),
                age_s=max(forge_age_s, *(follower.age_s for follower in followers)),
                orders=len(self._rows),
                restarts=sum(follower.restarts for follower in followers),
                waits_for=self._missing(),
                left_out={str(f.kind): f.refusal for f in followers if f.refusal},
                ledger_commit=self._records.ledger_commit or "",
                rows_due=len(self._changed),
                to_ready=self._ready_times.durations(),
                campaigns=self._records.campaign_figures,
            )

    def reread(self) -> None:
        """Read ledger and pack soon: somebody says that they changed."""
        self._hint.set()

    def look_at(self, repo: RepoId) -> None:
        """Look soon whether main of an order is delivered: somebody pushed to its repository."""
        if order := self._order_of(repo):
            self._heads.look_again(order)

    def note_check(self, repo: RepoId, check: CommitCheck) -> None:
        """Take what is wrong with the files that somebody pushed to an order's main."""
        if order := self._order_of(repo):
            self._checks[order] = check
            self._note(order)

    def _order_of(self, repo: RepoId) -> str:
        """Return the order of a repository; empty if it is none's."""
        entry, _ = (self._records.orders or {}).get(repo.name, (None, False))
        return entry.order if entry is not None and entry.repository == repo else ""

    def reread_changes(self) -> None:
        """Look soon which changes wait for approval: the forge reports a pull request."""
        self._changes_at_s = time.monotonic()
        self._hint.set()

    # -- life

    def start(self) -> None:
        """Begin to read, in threads."""
        self._applications.start()
        self._masks.start()
        self._causes.start()
        self._heads.start()
        for thread in self._threads:
            thread.start()

    def close(self) -> None:
        """End all threads and wait for them."""
        self._stop.set()
        self._hint.set()
        with self._wake:
            self._wake.notify_all()
        self._masks.stop()
        self._causes.stop()
        self._heads.stop()
        self._costs.stop()
        for thread in self._threads:
            thread.join(_JOIN_S)
        followers = (self._applications, *self._followers.values())
        for follower in followers:
            follower.stop()
        for follower in followers:
            follower.join(_JOIN_S)
        self._masks.join(_JOIN_S)
        self._causes.join(_JOIN_S)
        self._heads.join(_JOIN_S)

    # -- what followers say

    def _put_application(self, application: Manifest) -> None:
        name = str(metadata(application)["name"])
        if not self._objects.put_application(application):
            return
        is_orders = ledger.ORDER_LABEL in labels_of(application)
        orders = self._records.orders or {}
        revision = dig(application, "status", "sync", "revision")
        # an order that the ledger did not have yet, or a commit of it that nobody has read
        if name not in orders if is_orders else self._revisions.get(name) != revision:
            self._hint.set()
        if not is_orders:
            self._revisions[name] = revision

    def _remove_application(self, key: ObjectKey) -> None:
        self._objects.remove_application(key.name)
        self._revisions.pop(key.name, None)
        self._hint.set()

    def _application_keys(self) -> set[ObjectKey]:
        names = self._objects.application_names()
        return {ObjectKey(APPLICATION, name, ARGOCD_NAMESPACE) for name in names}

    def _note(self, order: str) -> None:
        with self._wake:
            self._notes[order] += 1
            if not self._changed:  # else the thread is awake already
                self._wake.notify_all()
            self._changed.add(order)

    def _note_all(self) -> None:
        with self._wake:
            self._changed.update(self._records.orders or ())
            self._wake.notify_all()

    # -- ledger and pack

    def _keep_reading(self) -> None:
        while not self._stop.is_set():
            # before the read: a hint that comes meanwhile brings another one
            self._hint.clear()
            try:
                self._read_forge()
                error = ""
            except OrderkitError as failure:
                error = str(failure)
                if error != self._forge_error:
                    is_new = isinstance(failure, NotFoundError)  # not bootstrapped yet
                    level = logging.INFO if is_new else logging.WARNING
                    logger.log(level, "ledger or pack cannot be read now: %s", failure)
            except Exception:
                logger.exception("a bug while reading ledger and pack")
                error = "a bug: see the log"
            if not error:
                self._forge_heard_s = time.monotonic()
            self._forge_error = error
            if not error:
                self._read_approvals()
            if not self._stop.wait(_RETRY_S if error else _REREAD_PAUSE_S) and not error:
                self._hint.wait(REREAD_S)

    def _read_forge(self) -> None:
        delivered = self._objects.delivered_by_teams()
        self._use(with_ledger(self._platform, self._records, delivered))
        self._use(with_pack(self._platform, self._records))
        with self._lock:
            unowned = [row.row.order for row in self._rows.values() if not row.row.owner]
        self._use(with_owners(self._platform, self._records, unowned))

    def _read_approvals(self) -> None:
        """Settle orders that wait, and look for changes that do, if it is time."""
        try:
            if time.monotonic() >= self._settle_at_s:
                self._settle_at_s = time.monotonic() + REREAD_S
                settle_all(self._platform)
            if time.monotonic() >= self._changes_at_s:
                self._changes_at_s = time.monotonic() + REREAD_S
                changes = self._waiting_changes.read(self._records)
                self._use(replace(self._records, changes=changes))
        except OrderkitError as error:
            logger.warning("what waits for approval cannot be read now: %s", error)
        except Exception:
            logger.exception("a bug while reading what waits for approval")

    def _use(self, records: ForgeRecords) -> None:
        former = self._records
        if records is former:
            return
        before, now = former.orders or {}, records.orders or {}
        with self._wake:
            self._records = records
            if records.kits is not former.kits:
                self._kit_kinds = frozenset(kit.kind for kit in (records.kits or {}).values())
                self._changed.update(now)
            self._changed.update(o for o in before.keys() | now if before.get(o) != now.get(o))
            for was, is_now in (
                (former.waiting, records.waiting),
                (former.changes, records.changes),
                (former.files, records.files),
            ):
                self._changed.update(
                    o for o in was.keys() | is_now.keys() if was.get(o) != is_now.get(o)
                )
            self._changed.update(records.owners.keys() - former.owners.keys())
            self._wake.notify_all()

    # -- rows

    def _keep_rows(self) -> None:
        while not self._stop.is_set():
            try:
                self._turn()
            except Exception:
                logger.exception("a bug while making rows")
                self._stop.wait(_RETRY_S)

    def _turn(self) -> None:
        """Wait for changes and make their rows."""
        with self._wake:
            if not self._changed:
                longest_s = REREAD_S if self._complete.is_set() else _FIRST_LOOK_S
                self._wake.wait(max(0.0, min(longest_s, self._due.wait_s())))
        for order in self._due.taken():
            self._note(order)
        self._stop.wait(_GATHER_S)
        self._follow_kinds()
        if not self._complete.is_set():
            if self._missing():
                self._stop.wait(_FIRST_LOOK_S)
                return
            self._note_all()
        while not self._stop.is_set() and (batch := self._next_batch()):
            self._publish({order: self._made(order) for order in batch})
        self._complete.set()

    def _next_batch(self) -> list[str]:
        with self._lock:
            return [self._changed.pop() for _ in range(min(_BATCH, len(self._changed)))]

    def _missing(self) -> str:
        """Return what has to be read before rows can be made; empty if nothing."""
        if not self._records.is_complete:
            return f"ledger and pack ({self._forge_error or 'being read'})"
        with self._lock:
            followers = (self._applications, *self._followers.values())
            needed = {APPLICATION, *self._kit_kinds}
        for follower in followers:
            if not follower.is_complete:
                return f"{follower.kind} is being read"
            if follower.refusal and follower.kind in needed:
                return f"{follower.kind} cannot be read: {follower.refusal}"
        return ""

    def _follow_kinds(self) -> None:
        """Follow the kinds of kits and of what their XRs compose, and no others."""
        kits = self._kit_kinds
        needed = {kind: kind in kits for kind in kits | self._objects.composed_kinds()}
        for kind in [k for k, as_kits in self._followed.items() if needed.get(k) != as_kits]:
            self._unfollow(kind)
        new = sorted(needed.keys() - self._followed, key=lambda kind: (kind not in kits, kind))
        room = KINDS_MAX - len(self._followed)
        if len(new) > room:
            logger.warning("more than %d kinds are composed: %s is left out", KINDS_MAX, new[room])
        for kind in new[:room]:
            self._followed[kind] = needed[kind]
            follower = self._follower(kind, is_kits=needed[kind])
            with self._lock:
                self._followers[kind] = follower
            follower.start()

    def _unfollow(self, kind: Kind) -> None:
        follower = self._followers[kind]
        follower.stop()
        follower.join(_JOIN_S)
        for key in self._objects.keys(kind):
            self._objects.remove(key)
        with self._lock:
            del self._followed[kind], self._followers[kind]

    def _follower(self, kind: Kind, *, is_kits: bool) -> KindFollower:
        receiver = Receiver(
            lambda manifest: self._objects.put(manifest, is_kits=is_kits),
            self._objects.remove,
            lambda: self._objects.keys(kind),
        )
        return KindFollower(self._platform.cluster, kind, receiver, on_state=self._note_all)

    def _made(self, order: str) -> LiveRow | None:
        """Return the row of an order as its sources are now; None if there is no such order."""
        records = self._records
        entry, is_ending = (records.orders or {}).get(order, (None, False))
        if entry is None:
            with self._lock:
                self._notes.pop(order, None)
            self._checks.pop(order, None)
            for known in (self._masks, self._costs, self._causes, self._heads, self._due):
                known.forget(order)
            return None
        try:
            application = self._objects.application(order)
            kits: Mapping[str, Kit] = records.kits or {}
            waiting = records.waiting.get(order)
            kit = waiting.kit if waiting else ledger.kit_of(application or {})
            kinds = {name: kit.kind for name, kit in kits.items()}
            key, xr = own_xr(entry.order, application, kinds, kit, self._objects.xr)
            parts = self._objects.parts(key, self._unknown) if key and xr else ()
            approval = waiting.approval if waiting else ""
            owner = waiting.requester if waiting else records.owners.get(order, "")
            change_approval = records.changes.get(order, "")
            sources = OrderSources(
                entry, is_ending, application, xr, parts, owner, approval, change_approval,
                self._heads.of(entry, ledger.delivered_commit(application)),
                self._checks.get(order),
                None if records.living is None else labelled_entry(application) in records.living,
                records.file_of(order),
            )  # fmt: skip
            sources = self._causes.added_to(order, key, sources)
            parts = sources.judged_parts
            declared, forge_url = kits.get(kit), self._platform.forge.base_url
            costs = self._costs.of(order, xr, records.pack_commit)

            def make(sources: OrderSources, secrets: SecretTexts) -> OrderRow:
                return summarize(sources, declared, costs, secrets=secrets, forge_url=forge_url)

            row = self._masks.masked(sources, key, make)
            now = self._platform.clock.now()
            self._due.note(order, parts, now)
            is_ready = with_parts(state_of(sources), parts, now).ready
            return LiveRow.of(row, key, is_ready=is_ready)
        except Exception:  # whatever somebody pushed: one order must not hide all others
            logger.exception("a bug while making the row of %s", order)
            reason = "this is a bug in Orderkit: the service's log has more"
            row = OrderRow(entry.order, entry.team, "", "Failing", reason)
            return LiveRow.of(row, None, is_ready=False)

    def _unknown(self, kind: Kind) -> str | None:
        """Return why the objects of a kind are not known; see `ClusterObjects.parts`."""
        follower = self._followers.get(kind)
        if follower is None or follower.refusal:
            return ""
        return None if follower.is_complete else UNREAD

    def _publish(self, rows: Mapping[str, LiveRow | None]) -> None:
        changes = []
        with self._lock:
            for order, row in rows.items():
                former = self._rows.get(order)
                if former == row:
                    continue
                self._ready_times.note(
                    order, former.row if former else None, row.row if row else None
                )
                if row is None:
                    del self._rows[order]
                else:
                    self._rows[order] = row
                changed_row = row or former
                if changed_row is not None:
                    changes.append((changed_row, row is None))
            if changes:
                self._sorted = None
            known = self._records.owners
        if any(row and not row.row.owner and order not in known for order, row in rows.items()):
            self._hint.set()  # the ledger's history says who ordered it
        if changes and self._complete.is_set():
            self.log.add(changes)
