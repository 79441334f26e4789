"""
Find documents that somebody added to ledger files of orders, at little cost. Only reads.

Argo CD says what it delivers of a team, but not the file that it comes from. So files are read
only of teams whose Application delivers more than orders.
"""

from __future__ import annotations

from collections.abc import Mapping

from ground.errors import RefusedError
from ground.objects.kube_objects import Manifest
from orderkit.core.inheriting_threads import InheritingThreads
from orderkit.core.order import ledger
from orderkit.core.order.added_documents import Delivered, teams_with_more
from orderkit.core.order.ledger import OrderEntry
from orderkit.flows.argocd.commit_pinning import documents_of
from orderkit.flows.platform import Platform, RepositorySnapshot
from yamlfiles.manifests import ManifestError

FILES_MAX, _AT_ONCE = 200, 8
"""Files that are read of one team: beyond, only ``status`` and ``repair`` of the order find it."""


def added_documents(
    platform: Platform, ledger_files: RepositorySnapshot, delivered: Mapping[str, Delivered]
) -> dict[OrderEntry, tuple[Manifest, ...]]:
    """
    Return the orders whose files have more than their Application, with the other documents.

    Args:
        delivered: By the name of a team's Application, what it delivers.

    Raises:
        RemoteError: The forge.
    """
    entries = list(ledger.entries(ledger_files.blobs))
    known = [*entries, *ledger.waiting_orders(ledger_files.blobs)]
    suspects: list[OrderEntry] = []
    for team in teams_with_more(delivered, known):
        suspects += [entry for entry in entries if entry.team == team][:FILES_MAX]
    if not suspects:
        return {}

    def look(entry: OrderEntry) -> tuple[Manifest, ...]:
        path = entry.application_path
        try:
            return documents_of(platform.forge.read(platform.ledger, path, ledger_files.commit))[1]
        except (ManifestError, RefusedError):
            return ()  # 'status' says so

    with InheritingThreads(_AT_ONCE, thread_name_prefix="added") as threads:
        found = zip(suspects, threads.map(look, suspects), strict=True)
        return {entry: added for entry, added in found if added}
