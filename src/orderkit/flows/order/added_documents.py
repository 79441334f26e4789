"""
Find ledger files of orders to which somebody added documents, or that hold no Application any more.

Only reads, at little cost. Argo CD says what it delivers of a team, and which file it cannot read,
but not the file that an object comes from. So files are read only where it says something odd.
"""

from __future__ import annotations

from collections.abc import Collection

from ground.errors import RefusedError
from orderkit.core.inheriting_threads import InheritingThreads
from orderkit.core.order.added_documents import INTACT, LedgerFile
from orderkit.core.order.ledger import OrderEntry
from orderkit.flows.argocd.commit_pinning import documents_of
from orderkit.flows.platform import Platform, RepositorySnapshot
from yamlfiles.manifests import ManifestError

_AT_ONCE = 8


def edited_files(
    platform: Platform, ledger_files: RepositorySnapshot, entries: Collection[OrderEntry]
) -> dict[OrderEntry, LedgerFile]:
    """
    Return those of these orders whose files have more, or less, than their Application.

    Raises:
        RemoteError: The forge.
    """
    if not entries:
        return {}

    def look(entry: OrderEntry) -> LedgerFile:
        path = entry.application_path
        try:
            file = platform.forge.read(platform.ledger, path, ledger_files.commit)
            own, added = documents_of(file)
        except ManifestError as error:
            return LedgerFile(fault=str(error))
        except RefusedError:
            return INTACT  # 'status' says so
        return LedgerFile(added, "" if own or file is None else f"{path} has no Application")

    with InheritingThreads(_AT_ONCE, thread_name_prefix="added") as threads:
        found = zip(entries, threads.map(look, entries), strict=True)
        return {entry: file for entry, file in found if file != INTACT}
