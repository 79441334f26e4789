"""
The public API for tests and demos of packs: order a pack's kits on an embedded platform.

`trial_platform` starts forge, cluster, portal and service in this process and publishes a pack
there. Nothing of it needs a container, and it listens on 127.0.0.1 only. Operators that a real
cluster would run are imitated with `Controller` and `permissive_crd`. `Story`, `expect` and `wait`
print and check what a demo proves.

Tests of stations need only `orderkit.stations`. Everything else of ``orderkit`` is private, except
`orderkit.controllers`. docs/public-api.md has an example.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import requests

from ground.names import CommitSha, RepoId
from ground.objects.kube_objects import Kind, Manifest
from kubeschema.known.managed_behaviour import OPEN
from orderkit.adapters.state_folder import PLATFORM_FILE
from orderkit.cli.connecting import SECRET_HEADER, token
from orderkit.core.kit.kit_file import How
from orderkit.core.order.change import FieldEdit
from orderkit.flows.change import ChangeRequest, change
from orderkit.flows.change.reviewing import merge_unreviewed
from orderkit.flows.end.destroying import destroy
from orderkit.flows.end.end_request import EndRequest
from orderkit.flows.order import order_report, placing
from orderkit.flows.order.awaiting import await_commit
from orderkit.ports.cluster import Cluster
from orderkit.ports.forge import Forge, MergeStyle, Operation
from orderkit.ports.requesters import Requester
from orderkit_standins.controller import Controller
from orderkit_standins.demo.narration import PATIENCE_S, ExpectationError, Story, expect, wait
from orderkit_standins.platform import Ports
from orderkit_standins.providers import played_kinds
from orderkit_standins.serve_platform import EmbeddedRunRequest, Running, running

__all__ = [
    "Controller",
    "ExpectationError",
    "Story",
    "TrialOrder",
    "TrialPlatform",
    "expect",
    "permissive_crd",
    "trial_platform",
    "wait",
]

_TIMEOUT_S = 2 * PATIENCE_S


@dataclass(frozen=True, slots=True)
class TrialOrder:
    """What `TrialPlatform.order` did."""

    id: str
    """``<kit>-<name>``."""
    repository: RepoId
    created: bool
    """False if the same order existed already."""
    phase: str
    """Its state now, as ``orderkit status`` shows it."""


@dataclass(frozen=True, slots=True)
class TrialPlatform:
    """
    An embedded platform that runs.

    Every method waits for its result and raises OrderkitError if that does not come: RefusedError
    or InvalidInputError if a rule forbids the request, IncompleteError if time runs out.
    """

    _running: Running
    requester: str
    """Who orders and changes: a catalog reference such as ``user:default/demo``."""

    @property
    def file(self) -> Path:
        """Its platform.yaml: what commands and controllers take as ``--platform``."""
        return self._running.embedded.state.folder / PLATFORM_FILE

    @property
    def cluster(self) -> Cluster:
        return self._running.platform.cluster

    @property
    def forge(self) -> Forge:
        return self._running.platform.forge

    def order(self, kit: str, form_values: Mapping[str, str]) -> TrialOrder:
        """Order a kit as its form would; return once the order is Ready."""
        request = placing.TaskRequest(kit, {}, Requester(self.requester), assignments=form_values)
        ordered = placing.order(self._running.platform, request, wait_s=_TIMEOUT_S)
        phase = str(ordered.report.state.phase)
        return TrialOrder(ordered.order, ordered.repository, ordered.created, phase)

    def change(self, order: str, field: str, value: object) -> CommitSha:
        """Set a field of an order; return the commit once it is delivered and Ready."""
        edit = FieldEdit(field, "set", value)
        request = ChangeRequest(order=order, edits=(edit,), requester=Requester(self.requester))
        changed = change(self._running.platform, request)
        if changed.commit is None:
            raise ExpectationError(f"{order}: setting {field} made no commit: {changed.state}")
        self._await(order, changed.commit)
        return changed.commit

    def change_by_review(self, order: TrialOrder, field: str, value: object, *, reason: str) -> int:
        """Propose a field's change, merge it, and return the pull request's number once Ready."""
        request = ChangeRequest(
            order=order.id,
            edits=(FieldEdit(field, "set", value),),
            requester=Requester(self.requester),
            how=How.REVIEW,
            reason=reason,
        )
        pull = change(self._running.platform, request).pull
        if pull is None:
            raise ExpectationError(f"{order.id}: setting {field} opened no pull request")
        operation = Operation(f"merge-{pull.number}", self.requester, f"Merge {pull.title}")
        platform = self._running.platform
        merged = merge_unreviewed(
            platform, order.repository, pull, operation, style=MergeStyle.MERGE
        )
        self._await(order.id, merged)
        return pull.number

    def end(self, order: str) -> int:
        """End an order; return how many objects were seen to be gone."""
        request = EndRequest(order, self.requester, timeout_s=_TIMEOUT_S)
        ended = destroy(self._running.platform, request, on_step=_ignore)
        return len(ended.record.must_be_gone)

    def orders(self) -> list[str]:
        """Return the ids of all orders."""
        return [report.entry.order for report in order_report.list_orders(self._running.platform)]

    def gate_status(self, kit: str, name: str, *, namespace: str) -> int:
        """Return the HTTP status of the kit's gate: 200 open, 402 used up (docs/service.md)."""
        service = self._running.settings.service
        with requests.Session() as session:
            session.trust_env = False
            return session.get(
                f"{service.url}/v1/gates/{kit}/{name}",
                params={"namespace": namespace},
                headers={SECRET_HEADER: token(service)},
                timeout=PATIENCE_S,
            ).status_code

    def _await(self, order: str, commit: CommitSha) -> None:
        await_commit(self._running.platform, order, commit, timeout_s=_TIMEOUT_S)


@contextlib.contextmanager
def trial_platform(
    folder: Path,
    pack: Path,
    *,
    teams: Sequence[str],
    requester: str = "user:default/demo",
    values: Mapping[str, str] | None = None,
) -> Iterator[TrialPlatform]:
    """
    Start an embedded platform with a pack; stop it at the end of the ``with`` block.

    Args:
        folder: Where it keeps its state. A second start in the same folder finds its orders again.
        pack: The pack's folder.
        teams: The organisations that may order.
        requester: Who orders and changes, as a catalog reference.
        values: What the pack asks of every platform (``platform.values`` in pack.yaml).

    Raises:
        InvalidInputError: The pack is broken. IncompleteError: a layer is not healthy in time.
        RefusedError, ConflictError: The folder belongs to another platform, or one that runs.
    """
    ports = Ports(0, 0, 0, 0)
    request = EmbeddedRunRequest(folder, pack, ports, tuple(teams), values=values or {})
    with running(request, on_step=_ignore) as platform:
        yield TrialPlatform(platform, requester)


def permissive_crd(kind: Kind, *, namespaced: bool) -> Manifest:
    """Return a CRD that accepts any spec and status, instead of a real operator's CRD."""
    return played_kinds.crd(kind, namespaced=namespaced, spec=OPEN)


def _ignore(*_: Any) -> None:
    """Report no steps."""
