"""
What somebody made of an order's file of the ledger: more documents, or none that can be read.

The Application of the order's team delivers what is beside the order's Application, too. Pure;
``flows.order.order_report`` reads the files.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

from ground.argocd.sync_rules import sync_options
from ground.errors import shorten
from ground.objects.kube_objects import APPLICATION, Manifest, dig, labels_of, metadata
from orderkit.core.order import ledger
from orderkit.core.order.ledger import OrderEntry
from orderkit.core.order.ledger_applications import is_entering

FILES_MAX = 200
"""Files that are read of one team: beyond, only ``status`` and ``repair`` of the order find it."""
_SHOWN_MAX = 80


@dataclass(frozen=True, slots=True)
class Delivered:
    """What a team's Application says of the team's files in the ledger."""

    objects: frozenset[tuple[str, str]]
    """Kind and name of each object that it delivers."""
    missed: frozenset[str]
    """The Applications that it delivered before and finds in no file."""
    faults: str
    """Why it cannot read the files: Argo CD names the first one."""


@dataclass(frozen=True, slots=True)
class LedgerFile:
    """An order's file in the ledger, as far as somebody else wrote it."""

    added: tuple[Manifest, ...] = ()
    """The other documents."""
    fault: str = ""
    """Why Argo CD finds no Application of the order in it."""


INTACT = LedgerFile()


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
    resources = dig(application, "status", "resources", default=()) or ()
    conditions = dig(application, "status", "conditions", default=()) or ()
    objects, missed = (
        frozenset(
            (str(resource.get("kind")), str(resource.get("name")))
            for resource in resources
            if bool(resource.get("requiresPruning")) is is_missed
        )
        for is_missed in (False, True)
    )
    missing = frozenset(name for kind, name in missed if kind == APPLICATION.kind)
    errors = (c.get("message") for c in conditions if c.get("type") == "ComparisonError")
    return Delivered(objects, missing, " ".join(map(str, errors)))


def suspects(
    delivered: Mapping[str, Delivered],
    living: Collection[OrderEntry],
    waiting: Collection[OrderEntry],
) -> list[OrderEntry]:
    """
    Return the live orders whose files in the ledger somebody may have edited so that it matters.

    That is each order of a team whose Application delivers more than Applications of orders, at
    most `FILES_MAX`, and each whose file Argo CD cannot read or finds no Application in.

    Args:
        delivered: By the name of the team's Application, `delivered_by_team`.
        living: The orders that the ledger has.
        waiting: Those that wait for approval.
    """
    own = {(APPLICATION.kind, str(entry.order)) for entry in (*living, *waiting)}
    odd = {
        name: objects
        for name, objects in delivered.items()
        if objects.missed or objects.faults or objects.objects - own
    }
    found: list[OrderEntry] = []
    if odd:
        for team in sorted({entry.team for entry in living}):
            if seen := odd.get(ledger.team_application(team)):
                entries = [entry for entry in living if entry.team == team]
                every = entries[:FILES_MAX] if seen.objects - own else ()
                named_ = (e for e in entries if e.order in seen.missed or _names(seen.faults, e))
                found += dict.fromkeys((*every, *named_))
    return found


def _names(faults: str, entry: OrderEntry) -> bool:
    return f'"{entry.application_path.name}"' in faults


def _is_application(document: Manifest) -> bool:
    return document.get("apiVersion") == APPLICATION.api_version and (
        document.get("kind") == APPLICATION.kind
    )


def _identity(document: Manifest) -> tuple[str, str]:
    return str(document.get("kind")), str(metadata(document).get("name"))
