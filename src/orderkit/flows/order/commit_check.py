"""
Check what an order's commit delivers, from its files and not from the cluster's words.

``status`` explains with it why a commit is not delivered, ``commit_status`` tells it on the forge.
Files, names and values are untrusted: they are only parsed, within limits, and cut before they are
shown.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import PurePosixPath
from typing import Any

from ground.argocd.delivery_hindrances import pinned, short
from ground.errors import OrderkitError
from ground.names import CommitSha
from ground.objects.kube_objects import Manifest, metadata
from kubeschema.validate.file_check import Definitions, definition_sources
from kubeschema.validate.findings import Finding, FindingSeverity, Reason
from kubeschema.validate.located_findings import Located, remedy, sentence, to_json
from orderkit.core.kit.kit_reader import definition_path
from orderkit.core.kit.model import Kit
from orderkit.core.kit.pack import Pack
from orderkit.core.order.ledger import OrderEntry
from orderkit.core.order.order_state import OrderState
from orderkit.core.order.repository_check import OrderRepository, check_repository
from orderkit.flows.platform import Platform
from orderkit.ports.forge import StatusState

_FINDINGS_MAX = 20


@dataclass(frozen=True, slots=True)
class CommitCheck:
    """The findings about one commit of an order, errors first, of these hooks; at most 20."""

    commit: CommitSha
    findings: tuple[Located, ...] = ()

    @property
    def errors(self) -> tuple[Located, ...]:
        return tuple(entry for entry in self.findings if _is_error(entry))

    @property
    def hooks(self) -> tuple[Located, ...]:
        """The objects that are hooks of Argo CD."""
        return tuple(entry for entry in self.findings if _reason_of(entry) is Reason.HOOK)

    @property
    def state(self) -> StatusState:
        """What the commit status says."""
        if self.errors:
            return "failure"
        return "warning" if self.findings else "success"

    @property
    def summary(self) -> str:
        """Return the first finding on one line."""
        if not self.findings:
            return "valid"
        more, text = len(self.findings) - 1, sentence(self.findings[0])
        return f"{text} (and {more} more)" if more else text

    def to_json(self) -> list[dict[str, Any]]:
        """Return the findings as ``orderkit validate --json`` has them."""
        return [to_json(entry) for entry in self.findings]


def _reason_of(entry: Located) -> StrEnum | None:
    return entry.about.reason if isinstance(entry.about, Finding) else None


def _is_error(entry: Located) -> bool:
    about = entry.about
    return isinstance(about, Finding) and about.severity is FindingSeverity.ERROR


@dataclass(frozen=True, slots=True)
class CheckedOrder:
    """An order with what its files are judged by."""

    entry: OrderEntry
    kit: Kit
    definitions: Definitions
    xr: Manifest | None
    """Its own XR as it lives: the API server judges steps from there."""

    @classmethod
    def of(
        cls, entry: OrderEntry, pack: Pack, kit_name: str, xr: Manifest | None
    ) -> CheckedOrder | None:
        """Return the order; None if the pack no longer has its kit."""
        if kit_name not in pack.kit_names:
            return None
        sources = definition_sources(PurePosixPath(), pack.files)
        definitions = Definitions.of(sources, definition_path(kit_name))
        return cls(entry, pack.kit(kit_name), definitions, xr)


def check_commit(platform: Platform, order: CheckedOrder, commit: CommitSha) -> CommitCheck:
    """
    Check the files of one commit of an order.

    Raises:
        NotFoundError: No such commit. RemoteError: the forge.
    """
    repo = order.entry.repository

    def read(path: PurePosixPath) -> bytes | None:
        revision = platform.forge.read(repo, path, commit)
        return revision.data if revision else None

    def old_xr(manifest: Manifest) -> Manifest | None:
        live_name = metadata(order.xr or {}).get("name")
        is_same = repository.is_xr(manifest) and live_name == metadata(manifest).get("name")
        return order.xr if is_same else None

    paths = sorted(platform.forge.tree(repo, commit))
    repository = OrderRepository(order.entry.order, order.kit, paths, read, PurePosixPath())
    outcome = check_repository(repository, order.definitions, old_xr)

    def weight(entry: Located) -> tuple[bool, bool]:
        return not _is_error(entry), _reason_of(entry) is not Reason.HOOK

    findings = sorted(outcome.findings, key=weight)
    return CommitCheck(commit, tuple(findings[:_FINDINGS_MAX]))


def explained_by_files(
    platform: Platform, order: CheckedOrder, application: Manifest | None, state: OrderState
) -> tuple[OrderState, CommitCheck | None]:
    """
    Return the state with the faults of its commit's own files as the reason, and the check.

    While Argo CD retries an older commit, that one is the reason. Without a fault in the files, the
    cluster's words stay.
    """
    if state.head is None:
        return state, None
    try:
        check = check_commit(platform, order, state.head)
        if check.errors or state.ready or state.phase in ("Ending", "Ended"):
            return _with_faults(state, check), check
        applied = CommitSha(pinned(application or {}))
        if applied and applied != state.head:
            older = check_commit(platform, order, applied)
            if older.errors:
                reason = f"{older.summary}, in commit {short(applied)}"
                return replace(state, reason=f"{reason}; {short(state.head)} has to wait"), check
    except OrderkitError:
        return state, None  # a report about the cluster is better than none
    return state, check


def _with_faults(state: OrderState, check: CommitCheck) -> OrderState:
    """Return the state with the faults of its commit as the reason, unless they do not matter."""
    if state.phase in ("Ending", "Ended"):
        return state
    if check.hooks:  # Argo CD calls an order Synced whose hooks it only runs later
        reason, advice = sentence(check.hooks[0]), remedy(check.hooks[0])
        return replace(state, phase="Failing", reason=reason, advice=advice)
    if state.ready:
        return state
    advice = f"{remedy(check.errors[0])}; commit and push"
    # Argo CD calls it progress when the API server drops an unknown field at each sync.
    is_stuck = state.phase == "Delivering" and state.revision == state.head
    phase = "Failing" if is_stuck else state.phase
    return replace(state, phase=phase, reason=check.summary, advice=advice)
