"""
Find out how the orders of a wave are, with few requests: from Git once, from the cluster often.

What a process has seen of Git it remembers: a commit of the campaign stays one. Times count from
when this process first saw something, so no clocks of different machines are compared.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import PurePosixPath

from ground.names import BlobSha, CommitSha, OrderId, TeamName
from ground.objects.kube_objects import (
    APPLICATION,
    ARGOCD_NAMESPACE,
    Manifest,
    ObjectKey,
    dig,
    labels_of,
    metadata,
)
from orderkit.core.campaign.computing import Computer
from orderkit.core.campaign.deciding import OrderFact, OrderPhase
from orderkit.core.campaign.definition import Campaign
from orderkit.core.campaign.record import CampaignRecord, WaveRecord
from orderkit.core.inheriting_threads import InheritingThreads
from orderkit.core.order import ledger, order_state
from orderkit.core.order.ledger import OrderEntry
from orderkit.core.order.order_state import OrderState
from orderkit.flows.argocd.refreshing import StuckOperationEnder, application_key
from orderkit.flows.campaign.campaign_reads import shared_reads
from orderkit.flows.campaign.order_work import Worked, found, git_fact
from orderkit.flows.forge_protection import needs_protection
from orderkit.flows.order.closer_look import without_secrets
from orderkit.flows.order.order_report import held_by_window, own_xr
from orderkit.flows.platform import Platform, get_object
from orderkit.ports.forge import FileRevision
from yamlfiles import yaml11

_ONE_BY_ONE = 20
"""Up to so many orders are read one by one, more in a list of all."""
_PULLS_EVERY_S = 5.0
_LOOK_SHARE = 4
"""A look at the cluster is not repeated for so many times its duration: at most a fifth of the time
goes into looks, however many orders the cluster has."""
_PATIENCE_S = 3.0
"""How long Argo CD has for a commit before it is told again."""


@dataclass(frozen=True, slots=True)
class ClusterOrder:
    """An order's Application and XR; None: the cluster does not have it."""

    application: Manifest | None
    xr: Manifest | None


@dataclass
class ClusterLook:
    """What the cluster has of many orders of a kit, read once."""

    platform: Platform
    computer: Computer
    orders: Mapping[str, ClusterOrder]

    @classmethod
    def at(cls, platform: Platform, computer: Computer, orders: Iterable[str]) -> ClusterLook:
        """
        Read the orders.

        Raises:
            RemoteError: The cluster does not answer.
        """
        wanted, kind = list(orders), computer.kit.kind
        if len(wanted) <= _ONE_BY_ONE:
            applications = {
                o: get_object(platform.cluster, application_key(OrderId(o))) for o in wanted
            }
            xrs: dict[ObjectKey, Manifest] | None = None
        else:
            listed = platform.cluster.list(APPLICATION, namespace=ARGOCD_NAMESPACE).items
            by_name = {str(metadata(found)["name"]): found for found in listed}
            applications = {order: by_name.get(order) for order in wanted}
            xrs = {ObjectKey.of(xr): xr for xr in platform.cluster.list(kind).items}

        def look_up(key: ObjectKey) -> Manifest | None:
            return get_object(platform.cluster, key) if xrs is None else xrs.get(key)

        kinds = {computer.kit.name: kind}
        found_orders = {
            order: ClusterOrder(
                application,
                own_xr(OrderId(order), application, kinds, computer.kit.name, look_up)[1],
            )
            for order, application in applications.items()
        }
        return cls(platform, computer, found_orders)

    def followers(self, blobs: Mapping[PurePosixPath, BlobSha]) -> Iterator[FileRevision]:
        """
        Yield the ledger's files of orders that follow a branch, as the cluster has them.

        Of such an order only its kit and its place are read in the ledger, and Argo CD acts on the
        cluster's copy of both. Where a kit wants reviews, the ledger names the commit to deliver,
        and is asked.
        """
        if needs_protection(self.computer.kit):
            return
        for order, seen in self.orders.items():
            labels = labels_of(seen.application or {})
            entry = OrderEntry(TeamName(labels.get(ledger.TEAM_LABEL, "")), OrderId(order))
            path, application = entry.application_path, seen.application
            is_own = labels.get(ledger.ORDER_LABEL) == order and path in blobs
            if application is None or not is_own or ledger.delivered_commit(application):
                continue
            kept = {key: application[key] for key in ("apiVersion", "kind", "spec")}
            names = {key: metadata(application).get(key) for key in ("name", "labels")}
            text = yaml11.dump({**kept, "metadata": names})
            yield FileRevision(path, text.encode(), blobs[path])

    def xr(self, order: str) -> Manifest | None:
        """Return an order's XR; None: the cluster does not have it, or it was not looked for."""
        return self.orders[order].xr if order in self.orders else None

    def state(self, order: str, commit: CommitSha | None) -> OrderState:
        """Return the state of an order, compared with a commit; None: with what was delivered."""
        seen = self.orders[order]
        state = order_state.judge(seen.application, seen.xr, head=commit, ending=False)
        state = without_secrets(self.platform, seen.xr, state)
        return held_by_window(self.platform.clock, self.computer.kit, state)


@dataclass
class _Made:
    """A commit of the campaign, and since when this process knows it."""

    commit: CommitSha
    base: CommitSha | None
    """What was delivered before, if this process made the commit."""
    since_s: float
    urging: StuckOperationEnder
    failing_since_s: float | None = None
    is_ready: bool = False
    why: str = "it was changed just now"
    """Why it was not Ready when it was looked at last."""


@dataclass
class WaveFacts:
    """What this process knows about the orders of the campaign."""

    platform: Platform
    computer: Computer
    campaign: Campaign
    _worked: dict[str, Worked] = field(default_factory=dict)
    _made: dict[str, _Made] = field(default_factory=dict)
    _looks: dict[str, int] = field(default_factory=dict)
    _pulls_seen_s: float = float("-inf")
    _next_look_s: float = float("-inf")

    def know(self, entry: OrderEntry, worked: Worked) -> None:
        """Remember what became of an order."""
        self._worked[entry.order] = worked
        if worked.phase is OrderPhase.MADE and worked.commit and entry.order not in self._made:
            urging = StuckOperationEnder(self.platform, entry.repository, worked.commit)
            now_s = self.platform.clock.monotonic_s()
            self._made[entry.order] = _Made(worked.commit, worked.base, now_s, urging)

    def look_back(
        self,
        record: CampaignRecord,
        wave: WaveRecord,
        entries: Mapping[str, OrderEntry],
        *,
        with_made: bool = False,
        at_most: int | None = None,
    ) -> None:
        """
        Look what Git shows of a wave that somebody began before.

        Args:
            at_most: Look at so many orders only: those at which nobody looked for the longest time.
            with_made: Learn of commits too. Whoever runs the campaign meets them again, and makes
                sure that they are delivered.

        Raises:
            RemoteError: The forge fails.
        """
        # what was seen of Git is not asked again: a commit of the campaign stays one
        unknown = [o for o in wave.orders if o not in self._worked and o in entries]
        if at_most is not None:
            unknown = sorted(unknown, key=lambda order: self._looks.get(order, 0))[:at_most]
            self._looks |= {order: self._looks.get(order, 0) + 1 for order in unknown}

        def look(order: str) -> Worked | None:
            operation = f"campaign-{record.id}-{order}-{record.attempt}"
            fact = git_fact(self.platform, entries[order].repository, record.id, operation)
            return found(fact, record) if with_made or fact.kind != "made" else None

        with InheritingThreads(thread_name_prefix="looking") as pool:
            for order, worked in zip(unknown, pool.map(look, unknown), strict=True):
                if worked is not None:
                    self.know(entries[order], worked)

    def facts(
        self, record: CampaignRecord, wave: WaveRecord, entries: Mapping[str, OrderEntry]
    ) -> list[OrderFact]:
        """
        Return what is known about each order of a wave now.

        Raises:
            RemoteError: The forge or the cluster does not answer.
        """
        self._look_at_pulls(entries)
        soaks = bool(self.campaign.gates.soak)
        made = [order for order in wave.orders if order in self._made]
        pending = [order for order in made if soaks or not self._made[order].is_ready]
        look = self._look(pending)
        return [
            self._fact(order, record, look)
            if order in entries
            else OrderFact(order, OrderPhase.SKIPPED, "it has ended")
            for order in wave.orders
        ]

    def _look(self, orders: Sequence[str]) -> ClusterLook:
        """Look at the cluster, or at nothing if that was done just now."""
        shared = replace(self.platform, forge=shared_reads(self.platform.forge))
        begun_s = self.platform.clock.monotonic_s()
        if begun_s < self._next_look_s:
            return ClusterLook(shared, self.computer, {})
        look = ClusterLook.at(shared, self.computer, orders)
        now_s = self.platform.clock.monotonic_s()
        self._next_look_s = now_s + _LOOK_SHARE * (now_s - begun_s)
        return look

    def _fact(self, order: str, record: CampaignRecord, look: ClusterLook) -> OrderFact:
        worked, made = self._worked.get(order), self._made.get(order)
        if worked is None:
            return OrderFact(order, OrderPhase.TODO)
        if worked.phase is not OrderPhase.MADE or made is None:
            return OrderFact(order, worked.phase, worked.why, str(worked.commit or ""))
        if made.is_ready and order not in look.orders:
            return OrderFact(order, OrderPhase.READY, commit=made.commit)
        was_unready = record.unready.get(order, "")
        now_s = self.platform.clock.monotonic_s()
        if order in look.orders:
            made.why = self._unready(order, made, look, now_s)
        if not made.why:
            made.is_ready = True
            return OrderFact(order, OrderPhase.READY, commit=made.commit)
        if made.is_ready:  # while it soaks
            made.is_ready, made.since_s = False, now_s
        failing_s = 0.0 if made.failing_since_s is None else now_s - made.failing_since_s
        age_s = now_s - made.since_s
        return OrderFact(
            order, OrderPhase.MADE, made.why, made.commit, age_s, failing_s, was_unready
        )

    def _unready(self, order: str, made: _Made, look: ClusterLook, now_s: float) -> str:
        """Return why an order is not Ready at the campaign's commit; empty if it is."""
        application = look.orders[order].application
        revision = str(dig(application, "status", "sync", "revision", default="") or "")
        is_there = revision != made.base and made.urging.reached(revision)
        commit = CommitSha(revision) if is_there else made.commit
        if application is not None and now_s - made.since_s > _PATIENCE_S:
            made.urging.look(application)
        state = look.state(order, commit)
        if state.phase != "Failing":
            made.failing_since_s = None
        elif made.failing_since_s is None:
            made.failing_since_s = now_s
        if not state.ready:
            return f"{state.phase}: {state.reason}"
        xr, source = look.xr(order), self.campaign.gates.when
        if not source or xr is None:
            return ""
        values = self.computer.variables(OrderEntry(TeamName(""), OrderId(order)), xr, xr)
        match = self.computer.matches(source, values)
        return "" if match.holds else f"the gate is shut: {match.why or source}"

    def _look_at_pulls(self, entries: Mapping[str, OrderEntry]) -> None:
        """See whether people merged or closed pull requests, now and then."""
        now_s = self.platform.clock.monotonic_s()
        if now_s - self._pulls_seen_s < _PULLS_EVERY_S:
            return
        self._pulls_seen_s = now_s
        for order, worked in list(self._worked.items()):
            if worked.phase is OrderPhase.PROPOSED and order in entries:
                self._look_at_pull(entries[order], worked)

    def _look_at_pull(self, entry: OrderEntry, worked: Worked) -> None:
        pull = self.platform.forge.pull(entry.repository, worked.pull)
        if pull is None or pull.state == "closed":
            why = f"pull request #{worked.pull} was closed without being merged"
            self.know(entry, Worked(OrderPhase.SKIPPED, why, pull=worked.pull))
        elif pull.state == "merged":
            commit = pull.merge_commit or pull.head_commit
            self.know(entry, Worked(OrderPhase.MADE, commit=commit, pull=worked.pull))


def _is_unwell(state: OrderState) -> bool:
    return not state.ready and state.phase in ("Failing", "Attention")


def unready_orders(platform: Platform, computer: Computer, orders: Iterable[str]) -> dict[str, str]:
    """
    Return the orders that fail or are held, and why; what is on its way is not among them.

    Raises:
        RemoteError: The cluster does not answer.
    """
    look = ClusterLook.at(platform, computer, orders)
    states = {order: look.state(order, None) for order in look.orders}
    return {o: f"{s.phase}: {s.reason}"[:200] for o, s in states.items() if _is_unwell(s)}
