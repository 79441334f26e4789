"""
Trace an order: Application, XR, everything composed, nested XRs included, and what fails first.

What ``crossplane resource trace`` shows for an XR, beginning one step earlier, at Git.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

from compositions.composed import composed_keys, is_controlled_by
from ground.argocd.delivery_obstacles import Obstacle
from ground.errors import AccessError, RemoteError
from ground.objects.kube_objects import Kind, Manifest, ObjectKey, controller, dig
from ground.shapes import LocatedAnswer, located
from orderkit.core.inheriting_threads import InheritingThreads
from orderkit.core.order.ledger import OrderEntry
from orderkit.core.order.observed_parts import ObservedPart, observed_part
from orderkit.core.order.order_state import OrderState
from orderkit.core.order.order_summary import with_parts
from orderkit.core.order.order_view import PartState
from orderkit.core.order.part_failures import MISSING, UNSYNCED, counts, part_state
from orderkit.core.secret_values import NO_SECRETS, SECRET, SecretTexts
from orderkit.flows.argocd.refreshing import application_key, obstacle
from orderkit.flows.composing.on_demand import order_secrets
from orderkit.flows.order.closer_look import closer_state
from orderkit.flows.order.order_report import NOTHING_KNOWN, KnownReads, OrderReport, status
from orderkit.flows.platform import Platform, get_object
from orderkit.ports.cluster import Cluster, NoSuchKindError

_LISTED_MAX = 2_000
"""Parts of one kind up to which a list without the service looks at them."""
_PARTS_EVERY_S = 3.0
"""How often a waiting command reads all parts of an order, each with a request."""


class Node(LocatedAnswer, frozen=True, kw_only=True):
    """One object of an order's tree, and all below it."""

    synced: str
    ready: str
    reason: str
    children: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class TraceNode:
    """One object of the tree. `synced` and `ready` are "True", "False", "Unknown" or "-"."""

    key: ObjectKey
    synced: str
    ready: str
    reason: str
    children: tuple[TraceNode, ...] = ()
    is_foreign: bool = False
    """An XR of the order refers to it, but something else owns it."""
    observed: ObservedPart | None = None
    """What there is in the cloud, if the order only observes it."""
    fails_from: str = ""
    """See `PartState.fails_from`."""

    @property
    def answer(self) -> Node:
        """What command and service say of this node and all below it."""
        children = tuple(child.answer for child in self.children)
        return Node(**located(self.key), synced=self.synced, ready=self.ready,
                    reason=self.reason, children=children)  # fmt: skip

    def walk(self, depth: int = 0) -> Iterator[tuple[int, TraceNode]]:
        """Yield this node and all below it, with their depth."""
        yield depth, self
        for child in self.children:
            yield from child.walk(depth + 1)


@dataclass(frozen=True, slots=True)
class Trace:
    """`failing` is the deepest first thing that says why, None when all is well."""

    report: OrderReport
    root: TraceNode
    failing: TraceNode | None = None

    def part_states(self) -> Iterator[PartState]:
        """Yield what the order's XR, and XRs below it, compose."""
        return _part_states(self.root, self.report.xr)

    def parts(self) -> Iterator[ObjectKey]:
        """Yield the order's own objects: its XR, and what that owns."""
        for _, node in self.root.walk():
            if node is not self.root and not node.is_foreign:
                yield node.key


def trace(platform: Platform, order: str, known: KnownReads = NOTHING_KNOWN) -> Trace:
    """
    Read an order's whole tree from the cluster.

    Raises:
        NotFoundError: The ledger has no such order.
    """
    return trace_of(platform, status(platform, order, known))


def trace_of(platform: Platform, report: OrderReport) -> Trace:
    """
    Read the tree of an order whose report is known.

    The state of the trace's report is the one that its parts make it: see `with_parts`.
    """
    key = application_key(report.entry.order)
    application = report.sources.application
    # a report of a list may be much older than the parts
    xr = report.sources.xr if report.secrets else None
    children = [_node(platform.cluster, report.xr, frozenset(), None, xr)] if report.xr else []
    if any(_may_show_secrets(node) for child in children for _, node in child.walk()):
        texts = report.secrets() if report.secrets else secrets_of(platform, report)
        children = [_without_secrets(child, texts) for child in children]
    found = obstacle(platform.cluster, application) if application else None
    if found and report.check and report.check.errors:
        found = replace(found, reason=report.state.reason)
    root = _application_node(key, application, found, tuple(children))
    own = [_state(node) for node in root.children]
    states = (*_part_states(root, report.xr), *own)
    state = with_parts(report.state, states, platform.clock.now())
    report = replace(report, state=state)
    is_fine = report.state.ready or report.state.phase == "Waiting"
    return Trace(report, root, None if is_fine else _first_failing(root))


def with_failing_parts(platform: Platform, reports: Sequence[OrderReport]) -> list[OrderReport]:
    """
    Return reports of a list whose states say which part fails.

    Reads the orders that assemble. An update that a provider refused leaves an XR Ready, so the
    parts of those that are Ready are listed, with a request for each kind.
    """
    failing = _failing_although_ready(platform, reports)

    def looked(report: OrderReport) -> OrderReport:
        is_unsynced = report.state.reason.startswith(UNSYNCED)
        is_quiet = report.state.phase != "Assembling" and not is_unsynced
        if is_quiet and report.entry not in failing:
            return report
        return trace_of(platform, report).report

    with InheritingThreads() as threads:
        return list(threads.map(looked, reports))


def _failing_although_ready(
    platform: Platform, reports: Sequence[OrderReport]
) -> frozenset[OrderEntry]:
    parts: dict[Kind, dict[ObjectKey, OrderReport]] = {}
    ready = [report for report in reports if report.state.ready and report.sources.xr]
    for report in ready:
        for key in composed_keys(report.sources.xr or {}):
            parts.setdefault(key.kind, {})[key] = report
    now, failing = platform.clock.now(), set()
    for kind, wanted in parts.items():
        if len(wanted) > _LISTED_MAX or kind == SECRET:
            continue
        with suppress(AccessError, NoSuchKindError):
            for manifest in platform.cluster.list(kind).items:
                owner = wanted.get(ObjectKey.of(manifest))
                if owner is not None and counts(part_state(manifest).fails_from, now):
                    failing.add(owner.entry)
    return frozenset(failing)


class WaitReport:
    """Tell what an order waits for: its phase, n of m parts, which part fails first, and why."""

    def __init__(self, platform: Platform, on_wait: Callable[[str], object] | None) -> None:
        self._platform, self._on_wait = platform, on_wait
        self._parts, self._read_s = "", float("-inf")
        self._states: tuple[PartState, ...] = ()

    def __call__(self, state: OrderState, key: ObjectKey | None) -> OrderState:
        """
        Tell it, and return the state with what the parts tell.

        They are read anew after `_PARTS_EVERY_S`. An order that is Ready is not held up by them.
        """
        if state.ready:
            return state
        now_s = self._platform.clock.monotonic_s()
        if key is None or state.phase in ("Written", "Delivering"):
            self._parts, self._states = "", ()
        elif now_s - self._read_s >= _PARTS_EVERY_S:
            self._parts, self._states = self._read(key)
            self._read_s = now_s
        if self._on_wait is not None:
            self._on_wait(f"{state.phase}{self._parts or _colon(state.reason)}")
        return with_parts(state, self._states, self._platform.clock.now())

    def _read(self, key: ObjectKey) -> tuple[str, tuple[PartState, ...]]:
        try:
            xr = get_object(self._platform.cluster, key)
            root = _node(self._platform.cluster, key, frozenset(), None, xr)
        except RemoteError:
            return "", ()  # the look that follows says so
        nodes = [node for depth, node in root.walk() if depth and not node.is_foreign]
        if not nodes or xr is None:
            return "", ()
        if any(map(_may_show_secrets, nodes)):
            root = _without_secrets(root, order_secrets(self._platform, xr))
        failing = _first_failing(root)
        ready = sum(not node.reason for node in nodes)
        why = f"{failing.key}: {failing.reason}" if failing else ""
        return f" {ready}/{len(nodes)}{_colon(why)}", (*_part_states(root, None), _state(root))


def _colon(text: str) -> str:
    return f": {text}" if text else ""


def secrets_of(platform: Platform, report: OrderReport) -> SecretTexts:
    """Return the values of the order's Secrets, as far as these credentials may read them."""
    xr = get_object(platform.cluster, report.xr) if report.xr else None
    return order_secrets(platform, xr, report.pack) if xr else NO_SECRETS


def _may_show_secrets(node: TraceNode) -> bool:
    return node.observed is not None or node.reason not in {"", MISSING}


def _without_secrets(node: TraceNode, texts: SecretTexts) -> TraceNode:
    children = tuple(_without_secrets(child, texts) for child in node.children)
    observed = node.observed.masked(texts.redact) if node.observed else None
    reason = texts.redact(node.reason)
    return replace(node, reason=reason, children=children, observed=observed)


def _application_node(
    key: ObjectKey,
    application: Manifest | None,
    found: Obstacle | None,
    children: tuple[TraceNode, ...],
) -> TraceNode:
    if application is None:
        return TraceNode(key, "-", "-", MISSING, children)
    health = dig(application, "status", "health", "status", default="Unknown")
    return TraceNode(
        key,
        synced="False" if found else "True",
        ready="True" if health == "Healthy" else "False",
        reason=found.reason if found else "",
        children=children,
    )


def _node(
    cluster: Cluster,
    key: ObjectKey,
    above: frozenset[ObjectKey],
    owner: Manifest | None,
    manifest: Manifest | None = None,
) -> TraceNode:
    """Read what an object composes, and the object; `owner` is the XR that refers to it."""
    try:
        manifest = manifest or get_object(cluster, key)
    except AccessError:
        if key.kind != SECRET:
            raise
        return TraceNode(key, "-", "-", "")  # Jobs may not read Secrets; it goes with its owner
    if manifest is None:
        return TraceNode(key, "-", "-", MISSING)
    if owner is not None and not is_controlled_by(manifest, owner):
        return TraceNode(key, "-", "-", f"belongs to {_owner_text(manifest)}", is_foreign=True)
    children = tuple(
        _node(cluster, child, above | {key}, manifest)
        for child in composed_keys(manifest)
        if child not in above
    )
    state = closer_state(cluster, manifest)
    return TraceNode(
        key,
        state.synced,
        state.ready,
        state.reason,
        children,
        observed=observed_part(manifest),
        fails_from=state.fails_from,
    )


def _part_states(root: TraceNode, xr: ObjectKey | None) -> Iterator[PartState]:
    for _, node in root.walk():
        if node is not root and node.key != xr and not node.is_foreign:
            yield _state(node)


def _state(node: TraceNode) -> PartState:
    return PartState(node.key, node.synced, node.ready, node.reason, node.fails_from)


def _owner_text(manifest: Manifest) -> str:
    owner = controller(manifest)
    return f"{owner.get('kind')} {owner.get('name')}" if owner else "no XR"


def _first_failing(node: TraceNode) -> TraceNode | None:
    """
    Prefer the deepest: an XR is unready *because* of what it composes.

    But an object is missing because of what should bring it.
    """
    for child in node.children:
        failing = _first_failing(child)
        # what is missing is so because of what should bring it
        if failing and not (failing.reason == MISSING and node.reason):
            return failing
    return node if node.reason else None
