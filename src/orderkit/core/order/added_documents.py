"""
Documents that somebody added to an order's file of the ledger, beside the order's Application.

The Application of the order's team delivers them too. Pure; ``flows.order.added_documents`` reads
the files.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import PurePosixPath

from ground.argocd.waves import sync_options
from ground.errors import shorten
from ground.names import TeamName
from ground.objects.kube_objects import APPLICATION, Manifest, dig, labels_of, metadata
from orderkit.core.order import ledger
from orderkit.core.order.ledger import OrderEntry
from orderkit.core.order.ledger_applications import is_entering

Delivered = frozenset[tuple[str, str]]
"""Kind and name of each object that an Application delivers."""
_SHOWN_MAX = 80


def own_document(path: PurePosixPath, documents: Sequence[Manifest]) -> Manifest | None:
    """Return the order's Application among the documents of its file; else the first, if any."""
    own = (each for each in documents if _identity(each) == (APPLICATION.kind, path.stem))
    return next(own, next(iter(documents), None))


def named(document: Manifest) -> str:
    """Return kind and name of a document."""
    return shorten(" ".join(_identity(document)), limit=_SHOWN_MAX)


def removal_by_hand(path: PurePosixPath, added: Sequence[Manifest]) -> str:
    """
    Return what a person does about documents whose removal deletes something; empty if none does.

    Argo CD deletes an Application without finalizer, or keeps it, and its objects stay. Anything
    else goes with all that is in it, so ``orderkit repair``, which deletes nothing, leaves it.
    """
    deleted = [each for each in added if not _is_application(each) or is_entering(each)]
    if not deleted:
        return ""
    every, goes = (", ".join(map(named, documents)) for documents in (added, deleted))
    return (
        f"take {every} out of {path}, then commit and push the ledger:"
        f" Argo CD deletes {goes} with its content"
    )


def kept(added: Sequence[Manifest]) -> list[str]:
    """Return the names of added Applications that Argo CD keeps although Git has them no more."""
    return [_identity(each)[1] for each in added if "Prune=false" in sync_options(each)]


def delivered_by_team(application: Manifest) -> Delivered | None:
    """Return what a team's Application delivers of Git; None of any other Application."""
    labels = labels_of(application)
    if ledger.TEAM_LABEL not in labels or ledger.ORDER_LABEL in labels:
        return None
    return frozenset(
        (str(resource.get("kind")), str(resource.get("name")))
        for resource in dig(application, "status", "resources", default=()) or ()
        if not resource.get("requiresPruning")
    )


def teams_with_more(
    delivered: Mapping[str, Delivered], entries: Collection[OrderEntry]
) -> Iterator[TeamName]:
    """
    Yield the teams whose Application delivers more than Applications of orders.

    Args:
        delivered: By the name of the team's Application, `delivered_by_team`.
        entries: The orders that the ledger has.
    """
    own = {(APPLICATION.kind, str(entry.order)) for entry in entries}
    for team in sorted({entry.team for entry in entries}):
        if delivered.get(ledger.team_application(team), frozenset()) - own:
            yield team


def _is_application(document: Manifest) -> bool:
    return document.get("apiVersion") == APPLICATION.api_version and (
        document.get("kind") == APPLICATION.kind
    )


def _identity(document: Manifest) -> tuple[str, str]:
    return str(document.get("kind")), str(metadata(document).get("name"))
