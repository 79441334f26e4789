"""
What an end is asked for, refused for, and comes to; and the end of an order that waits.

`check_may_end` refuses to end an order that is protected, or that another order still needs. It is
asked before the first step of an end, never later: an end that has begun is finished.

An order that waits for approval has no parts, and nothing of it was delivered: `begin_withdrawal`
and `close_proposals` end it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass

from ground.argocd.delivery_obstacles import tracker
from ground.errors import NotFoundError, RefusedError
from ground.names import CommitSha, TeamName
from ground.objects.kube_objects import Manifest, ObjectKey
from orderkit.core.kit.kit_file import End
from orderkit.core.kit.model import Kit
from orderkit.core.order.end_record import (
    DEPENDS_ON,
    PROTECTED,
    EndRecord,
    Phase,
    Survivor,
    needs,
    protection,
)
from orderkit.core.order.ledger import OrderEntry
from orderkit.core.order.order_file import MANIFESTS
from orderkit.flows.order.ledger_records import waiting_order
from orderkit.flows.order.order_report import NOTHING_KNOWN, KnownReads
from orderkit.flows.platform import (
    Platform,
    RepositorySnapshot,
    get_object,
    ledger_snapshot,
    published_kit,
    published_pack,
    snapshot,
    write_ledger,
)
from orderkit.ports.cluster import Cluster, NoSuchKindError
from orderkit.ports.forge import REASON_TRAILER, Operation, agent_notes
from yamlfiles.manifests import ManifestError, parse_manifests

OnStep = Callable[[Phase, str], None]
"""Told of each phase that is over, and what was seen."""


@dataclass(frozen=True, slots=True)
class EndRequest:
    """What to end, for whom, and what becomes of the repository."""

    order: str
    requester: str
    repository: Survivor | None = None
    """What becomes of the repository. None: as the kit says."""
    timeout_s: float = 300.0
    proof: str = ""
    """What proves the requester; empty: a claim."""
    reason: str = ""
    take: tuple[str, ...] = ()
    """Resources to remove that would survive, by the kit's names (``end.survives``)."""
    only_waiting: bool = False
    """End it only while it waits for approval: what is delivered meanwhile stays."""
    agent: str = ""
    """The AI agent that asks on behalf of the requester."""

    @property
    def notes(self) -> tuple[tuple[str, str], ...]:
        """The trailers of the commits besides the requester."""
        reason = " ".join(self.reason.split()).replace("-->", "→")
        return (*(((REASON_TRAILER, reason),) if reason else ()), *agent_notes(self.agent))


@dataclass(frozen=True, slots=True)
class Ended:
    """The tombstone, and whether this call wrote it."""

    record: EndRecord
    team: TeamName
    changed: bool


_YAML = (".yaml", ".yml", ".json")


def check_may_end(
    platform: Platform,
    entry: OrderEntry,
    xr: ObjectKey | None,
    known: KnownReads = NOTHING_KNOWN,
) -> None:
    """
    Check that an order may end.

    Protection is read from Git, or from the live XR if the repository is gone. The orders that
    need this one are read from the XRs of all kits in the cluster.

    Raises:
        RefusedError: It is protected, or another order needs it; the message names which.
    """
    protection_note = protection(_manifests_in_git(platform, entry, xr, known.head))
    if protection_note:
        raise RefusedError(
            f"{entry.order} is protected and cannot end: {protection_note}",
            hint=f"remove the annotation {PROTECTED} from its XR in {entry.repository} first",
        )
    users = sorted(_users(platform, entry, xr, known.pack)) if xr else []
    if users:
        raise RefusedError(
            f"{entry.order} is needed by {', '.join(users)}",
            hint=f"end those first, or remove the annotation {DEPENDS_ON} from their XRs",
        )


def _manifests_in_git(
    platform: Platform, entry: OrderEntry, xr: ObjectKey | None, head: CommitSha | None
) -> Iterator[Manifest]:
    files = snapshot(platform.forge, entry.repository, head)
    if files is None:
        living = get_object(platform.cluster, xr) if xr else None
        if living is not None:
            yield living
        return
    for path in sorted(files.blobs):
        if path.is_relative_to(MANIFESTS) and path.suffix in _YAML:
            revision = platform.forge.read(entry.repository, path, files.commit)
            try:
                yield from parse_manifests(str(path), revision.data) if revision else ()
            except ManifestError:
                continue  # Argo CD cannot read it either: it must not block the end


def _users(
    platform: Platform, entry: OrderEntry, xr: ObjectKey, pack: RepositorySnapshot | None
) -> Iterator[str]:
    for kit in published_pack(platform, pack).kits():
        reads_kind = _reads(kit, xr)
        for other in _living(platform.cluster, kit):
            if ObjectKey.of(other) == xr:
                continue
            how = needs(other, entry.order, xr.name, reads_kind=reads_kind)
            if how:
                yield f"{_order_of(other)} ({how})"


def _reads(kit: Kit, xr: ObjectKey) -> bool:
    kind = (xr.kind.api_version, xr.kind.kind)
    return any((requirement.api_version, requirement.kind) == kind for requirement in kit.requires)


def _living(cluster: Cluster, kit: Kit) -> tuple[Manifest, ...]:
    try:
        xrs = cluster.list(kit.kind).items
    except NoSuchKindError:
        return ()
    return tuple(xr for xr in xrs if not xr["metadata"].get("deletionTimestamp"))


def _order_of(xr: Manifest) -> str:
    """Name the order that delivers an XR; one that nobody delivers by its kind and name."""
    return tracker(xr) or str(ObjectKey.of(xr))


def begin_withdrawal(
    platform: Platform,
    entry: OrderEntry,
    *,
    requester: str,
    proof: str,
    notes: Sequence[tuple[str, str]],
    repository: Survivor | None,
) -> EndRecord:
    """
    Replace the record of a waiting order by that of its end; return the latter.

    Args:
        repository: What becomes of the repository. None: as the kit says.

    Raises:
        NotFoundError: It does not wait any more.
        ConflictError: Somebody else withdraws it at the same time.
    """
    base = ledger_snapshot(platform)
    waiting = waiting_order(platform, entry, base.commit)
    if waiting is None:
        raise NotFoundError(f"{entry.order} does not wait any more", hint="repeat the command")
    end = End()
    with suppress(NotFoundError):  # the pack lost the kit: its orders must still be able to end
        end = published_kit(platform, waiting.kit).end
    record = EndRecord(
        order=entry.order,
        kit=waiting.kit,
        requester=requester,
        repository=repository or end.repository,
        step="unregistering",
        started_at=platform.clock.now().isoformat(timespec="seconds"),
        must_be_gone=(),
    )
    # one write: there is no moment at which it neither waits nor ends
    contents = {
        entry.end_path: record.to_yaml(),
        entry.waiting_path: None,
        entry.application_path: None,
    }
    operation = Operation(
        f"end-{entry.order}-withdrawn-{record.started_at}",
        requester,
        f"{entry.order}: withdrawn before it was delivered",
        proof,
        tuple(notes),
    )
    write_ledger(platform, contents, operation, base=base)
    return record


def close_proposals(platform: Platform, entry: OrderEntry) -> None:
    """Close what proposes an order that was withdrawn. Idempotent."""
    branch = re.compile(rf"orderkit/{entry.order}-[0-9a-f]{{10}}")
    for pull in tuple(platform.forge.pulls(platform.ledger)):
        if branch.fullmatch(pull.head):
            platform.forge.close_pull(platform.ledger, pull.number)
            with suppress(RefusedError):  # protected: whoever did that may remove it
                platform.forge.delete_branch(platform.ledger, pull.head)
