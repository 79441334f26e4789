"""
Check what an order's commit delivers, from its files and not from the cluster's words.

``status`` explains with it why a commit is not delivered, ``commit_status`` tells it on the forge.
Files, names and values are untrusted: they are only parsed, within limits, and cut before they are
shown.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import PurePosixPath

from ground.argocd.delivery_hindrances import pinned, short
from ground.errors import OrderkitError
from ground.names import CommitSha
from ground.objects.kube_objects import Manifest, metadata
from kubeschema.validate.file_check import Definitions, definition_sources
from orderkit.core.kit.kit_reader import definition_path
from orderkit.core.kit.model import Kit
from orderkit.core.kit.pack import Pack
from orderkit.core.order.commit_faults import CommitCheck, weight, with_faults
from orderkit.core.order.ledger import OrderEntry
from orderkit.core.order.order_state import OrderState
from orderkit.core.order.repository_check import OrderRepository, check_repository
from orderkit.flows.platform import Platform

_FINDINGS_MAX = 20


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
            return with_faults(state, check), check
        applied = CommitSha(pinned(application or {}))
        if applied and applied != state.head:
            older = check_commit(platform, order, applied)
            if older.errors:
                reason = f"{older.summary}, in commit {short(applied)}"
                return replace(state, reason=f"{reason}; {short(state.head)} has to wait"), check
    except OrderkitError:
        return state, None  # a report about the cluster is better than none
    return state, check
