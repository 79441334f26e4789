"""
What must hold before an order is entered: its kit, record, repository, values, references.

`check_references` checks that the objects exist that an order's fields refer to. kit.yaml's
``refers`` lists these fields. They are checked before anything is written, so that a person gets
the answer at once. Stations check it again, because an object may vanish a moment later.

The other checks come before the order's entry into the ledger. All only read.
"""

from __future__ import annotations

import difflib
from collections.abc import Collection
from functools import partial
from pathlib import PurePosixPath
from typing import Any

from ground.errors import AlreadyOrderedError, InvalidInputError, NotFoundError, RefusedError, every
from ground.names import CommitSha, RepoId
from ground.objects.kube_objects import Kind, ObjectKey, dig, labels_of
from orderkit.core.kit.kit_file_parts import FieldPath, Refers
from orderkit.core.kit.model import Kit
from orderkit.core.order import ledger, order_file
from orderkit.core.order.ledger import OrderEntry
from orderkit.core.order.order_file import OrderFile
from orderkit.flows.argocd.refreshing import application_key
from orderkit.flows.forge_protection import refuse_foreign_access
from orderkit.flows.order import cost_limit, live_order
from orderkit.flows.platform import (
    Platform,
    RepositorySnapshot,
    get_object,
    published_kit,
    read_text,
)
from orderkit.flows.team import limit_check
from orderkit.ports.cluster import Cluster, NoSuchKindError
from orderkit.ports.forge import Forge, Repository

_LISTED = 10


def check_references(
    cluster: Cluster,
    kit: Kit,
    spec: Any,
    *,
    changed: Collection[FieldPath] | None = None,
) -> None:
    """
    Look up every object that a ``spec`` refers to.

    Args:
        changed: Only these fields, or what is below them; None: all.

    Raises:
        InvalidInputError: An object is not there (the nearest is named), or is not ready.
        UnreachableError, RemoteError: The cluster cannot be read.
    """
    checks = []
    for path, hints in kit.fields.items():
        name = dig(spec, *path.split("."))
        if hints.refers is None or not isinstance(name, str):
            continue
        if changed is None or any(path == c or path.startswith(f"{c}.") for c in changed):
            checks.append(partial(_check, cluster, kit.parameter(path), name, hints.refers))
    every(checks)


def _check(cluster: Cluster, parameter: str, name: str, refers: Refers) -> None:
    kind = Kind.parse(refers.api_version, refers.kind)
    manifest = get_object(cluster, ObjectKey(kind, name))
    if manifest is None:
        names = _names(cluster, kind)
        near = difflib.get_close_matches(name, names, n=1)
        shown_names = ", ".join(names[:_LISTED]) or "none"
        raise InvalidInputError(
            parameter,
            name,
            f"is not a {refers.kind} of this platform",
            hint=f"did you mean '{near[0]}'?" if near else f"there are: {shown_names}",
        )
    if refers.ready and dig(manifest, *refers.ready.split(".")) is not True:
        raise InvalidInputError(
            parameter,
            name,
            f"is a {refers.kind} that is not ready",
            hint=f"wait until its {refers.ready} is true, or choose another {refers.kind}",
        )


def _names(cluster: Cluster, kind: Kind) -> list[str]:
    try:
        items = cluster.list(kind).items
    except NoSuchKindError:
        # not established yet, so there are no objects of it
        return []
    return sorted(str(item["metadata"]["name"]) for item in items)


def check_free(entry: OrderEntry, ledger_paths: Collection[PurePosixPath]) -> None:
    """
    Check by the ledger's paths that the team may order and the id is not another order's.

    Raises:
        NotFoundError: The team is not in the ledger.
        AlreadyOrderedError: The order is ending, or its id belongs to another team.
    """
    limit_check.check_known(entry.team, ledger_paths)
    if entry.end_path in ledger_paths:
        raise AlreadyOrderedError(
            f"{entry.order} is ending", hint=f"finish that first: orderkit destroy {entry.order}"
        )
    if entry.application_path in ledger_paths or entry.waiting_path in ledger_paths:
        return
    # Whose it is may be none of the caller's business.
    if ledger.living_order(ledger_paths, entry.order) is not None:
        raise AlreadyOrderedError(f"{entry.order} is taken", hint="order another name")


def check_kit(
    platform: Platform,
    entry: OrderEntry,
    kit: str,
    pack: RepositorySnapshot,
    registered_at: CommitSha | None,
) -> Kit:
    """
    Check the kit of an order that is to be registered, and return it.

    Args:
        registered_at: The commit of the ledger that has the order; None: it is new.

    Raises:
        InvalidInputError: The order's id does not name it. RefusedError: It is registered with
            another kit. NotFoundError: The pack has no such kit.
    """
    if registered_at:
        live_order.check_kit(platform, entry, kit, registered_at)
    if not entry.order.startswith(f"{kit}-"):
        raise InvalidInputError(
            "order",
            entry.order,
            f"is not an order of kit '{kit}': the id is <kit>-<name>",
            hint=f"name the repository {kit}-<name>, or name the kit of this one",
        )
    return published_kit(platform, kit, pack)


def check_record(forge: Forge, entry: OrderEntry, kit: str) -> tuple[OrderFile, Repository | None]:
    """
    Return the record of an order that is to be registered, and its repository.

    Raises:
        AlreadyOrderedError: Its repository is archived. NotFoundError: It has no record.
        InvalidInputError: The record names another order, kit or team.
    """
    repo = entry.repository
    repository = forge.repo(repo)
    if repository is not None and repository.archived:
        raise archived(repo)
    text = read_text(forge, repo, order_file.PATH, "main")
    if text is None:
        raise NotFoundError(
            f"{repo}: no {order_file.PATH} on branch main", hint="publish the order first"
        )
    record = order_file.parse(text.encode(), name=f"{repo}/{order_file.PATH}")
    claims = {
        "order": (entry.order, record.order),
        "kit": (kit, record.kit),
        "team": (entry.team, record.team),
    }
    for field, (claimed, recorded) in claims.items():
        if claimed != recorded:
            raise InvalidInputError(
                field, claimed, f"is not what {repo}/{order_file.PATH} says: '{recorded}'"
            )
    return record, repository


def archived(repo: RepoId) -> AlreadyOrderedError:
    """Make the error for an order whose repository was archived at its end."""
    return AlreadyOrderedError(
        f"{repo} is archived: the order ended",
        hint=f"'orderkit destroy {repo.name} --delete-repository' frees the name; or order another",
    )


def check_new(
    platform: Platform,
    live: live_order.LiveOrder,
    snapshot: RepositorySnapshot,
    repository: Repository | None,
) -> None:
    """
    Check what only an order that is not in the ledger yet may break.

    Args:
        repository: The order's, as it was just read.

    Raises:
        RefusedError: Somebody else owns its repository, its id is that of a platform's
            Application, or its values are above a limit of its team.
    """
    entry, team = live.entry, live.team
    refuse_foreign_access(
        platform,
        entry.repository,
        adopted=team.adopted,
        writers=team.members,
        way_out=f"orderkit team change {entry.team} --adopt {{holders}}",
        seen=repository,
    )
    _check_application(platform.cluster, entry)
    _check_values(platform, live, snapshot)


def _check_application(cluster: Cluster, entry: OrderEntry) -> None:
    """Refuse an id that would replace an Application that is not an order's."""
    application = get_object(cluster, application_key(entry.order))
    if application is not None and labels_of(application).get(ledger.ORDER_LABEL) != entry.order:
        raise RefusedError(
            f"{entry.order} is the name of one of the platform's own Applications",
            hint="order another name",
        )


def _check_values(
    platform: Platform, live: live_order.LiveOrder, snapshot: RepositorySnapshot
) -> None:
    """Hold the order's XR, as its repository has it, to the bounds of its team."""
    limits = live.team.limits
    if live.kit.name not in limits.fields and limits.cost is None:
        return
    head = platform.forge.head(live.repository)
    if head is None:
        return  # gone since its record was read: there is nothing to deliver
    xr = live_order.read_xr(platform, live, head).xr
    limit_check.check_values(live.team, live.kit, xr)
    xr = live_order.delivered_xr(live, xr)
    cost_limit.check_new(platform, live.team, live.entry, xr, snapshot.blobs)
