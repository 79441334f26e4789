"""
Register an order: one commit in the ledger, after the order's repository proved itself.

Called by the service (a portal's template step) and thereby by every ``orderkit order``.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

from orderkit.core.errors import (
    AlreadyOrderedError,
    InvalidInputError,
    NotFoundError,
    RefusedError,
)
from orderkit.core.kit.model import Kit
from orderkit.core.names import CommitSha, OrderId, RepoId, TeamName, check_requester
from orderkit.core.objects.kube_objects import dig, labels_of, metadata
from orderkit.core.order import ledger, order_file, team_limits
from orderkit.core.order.end_record import STEPS
from orderkit.core.order.lease import EXPIRES_AT, grant, lease_annotations, policy_of
from orderkit.core.order.ledger import OrderEntry
from orderkit.core.order.order_file import OrderFile
from orderkit.core.yaml import yaml11
from orderkit.flows.argocd import commit_pinning
from orderkit.flows.argocd.refreshing import application_key, knows_retry_refresh, refresh
from orderkit.flows.foreign_access import refuse_foreign_access
from orderkit.flows.main_protection import forbid_squash, protect_main
from orderkit.flows.order import cost_limit, live_order
from orderkit.flows.order.expiry_note import try_note_expiry
from orderkit.flows.platform import (
    Platform,
    RepositorySnapshot,
    get_object,
    ledger_snapshot,
    published_kit,
    read_text,
    write_ledger,
)
from orderkit.flows.team import limit_check
from orderkit.ports.forge import Commit, Operation, Written
from orderkit.ports.requesters import Requester

_NEWEST_COMMITS = 200
_REGISTER, _REFUSE = "register-", "refuse-"
"""Prefixes of the operations that enter an order into the ledger, and take it back."""
_BEGUN = re.compile(rf"{_REGISTER}(.+)-on-.*")
_ENDED = re.compile(rf"end-(.+)-(?:{'|'.join(STEPS)}|tombstone)-.*|{_REFUSE}(.+)-on-.*")


@dataclass(frozen=True, slots=True)
class Registration:
    """What a portal asks for. Everything in it is a claim until the repository confirms it."""

    order: OrderId
    kit: str
    team: TeamName
    requester: str
    proof: str = ""
    """What proves the requester; empty: a claim."""
    is_adopted: bool = False
    """It existed before it became an order: it gets no lease until somebody gives it one."""


@dataclass(frozen=True, slots=True)
class Registered:
    """`changed` is False when the ledger already had exactly this."""

    order: OrderId
    team: TeamName
    kit: str
    repository: RepoId
    commit: CommitSha
    changed: bool

    def to_json(self) -> dict[str, Any]:
        """Return the stable shape that command line and service both answer with."""
        return {
            "order": self.order,
            "team": self.team,
            "kit": self.kit,
            "repository": str(self.repository),
            "ledgerCommit": self.commit,
            "changed": self.changed,
        }


def register(platform: Platform, registration: Registration) -> Registered:
    """
    Enter an order into the ledger, or find it there. Idempotent, one commit.

    If its ``main`` is protected, what ``main`` holds now is delivered. Two commits if the team's
    orders are counted: until the count is known, the order's Application goes with its file, so
    that it can be taken back.

    Raises:
        NotFoundError: Team, repository or kit does not exist.
        InvalidInputError: The repository's record says something else, or the id is not one of
            the kit.
        RefusedError: The team may not have it, its id is that of a platform's Application, or it
            is registered with another kit, or somebody else owns its repository.
        AlreadyOrderedError: The order ended, or its id belongs to another team.
        ConflictError: The ledger was changed by others in every round.
    """
    check_requester(registration.requester)
    entry = OrderEntry(registration.team, registration.order)
    snapshot = ledger_snapshot(platform)
    check_free(entry, snapshot.blobs)
    is_new = entry.application_path not in snapshot.blobs
    _check_kit(platform, registration, entry, is_new=is_new)
    team = limit_check.check_may_order(platform, entry, registration.kit, snapshot)
    record = _check_record(platform, registration, entry.repository)
    kit = published_kit(platform, record.kit)
    live = live_order.LiveOrder(entry, kit, record, team)
    if is_new:
        _check_new(platform, live, snapshot)
    protect_main(platform.forge, entry.repository, kit)
    forbid_squash(platform.forge, entry.repository)
    is_counted = team.limits.cost is not None or team_limits.is_counted(team, registration.kit)
    is_raced = is_counted and (is_new or _is_entering(platform, entry, snapshot))
    stage: ledger.Stage = "entering" if is_raced else "living"
    is_leased = is_new and not registration.is_adopted
    lease = _new_lease(platform, live, registration.requester) if is_leased else {}
    commit = _enter(platform, registration, entry, kit, snapshot, stage=stage, lease=lease)
    if is_raced:
        _confirm_place(platform, registration, live, commit.commit)
    if _came_second(platform, entry, snapshot, commit):
        _take_back(platform, registration, entry, "taken by another team")
        raise AlreadyOrderedError(f"{entry.order} is taken", hint="order another name")
    if is_raced:
        commit = _enter(
            platform, registration, entry, kit, ledger_snapshot(platform), stage="living"
        )
    if commit.changed:
        refresh(platform, ledger.team_application(registration.team))
    _note_expiry(platform, registration, lease or _lease_in(platform, entry, kit))
    return Registered(
        registration.order,
        registration.team,
        registration.kit,
        entry.repository,
        commit.commit,
        commit.changed,
    )


def registered_by(platform: Platform, entry: OrderEntry) -> str:
    """
    Return who registered an order, as the ledger says; "" if it does not.

    The order's own repository cannot say it: whoever can push there can rewrite its record.
    """
    requester = ""
    for commit in platform.forge.commits(platform.ledger, path=entry.application_path):
        if commit.operation.startswith("end-") or was_taken_back(commit, entry):
            break  # of an earlier order of this name
        if commit.operation.startswith(f"{_REGISTER}{entry.order}-on-"):
            requester = commit.requester
    return requester


def registered_owners(platform: Platform, *, newest: int = _NEWEST_COMMITS) -> dict[str, str]:
    """
    Return who registered which order, by the newest changes of the ledger.

    For orders of versions that did not write it into the Application (`ledger.requester_of`).
    """
    owners: dict[str, str] = {}
    ended: set[str] = set()
    for commit in platform.forge.commits(platform.ledger, limit=newest):
        if end := _ENDED.fullmatch(commit.operation):
            ended.add(end[1] or end[2])
        elif (begin := _BEGUN.fullmatch(commit.operation)) and begin[1] not in ended:
            owners[begin[1]] = commit.requester  # the oldest of this life, as `registered_by` says
    return owners


def was_taken_back(commit: Commit, entry: OrderEntry) -> bool:
    """Say whether a commit of the ledger took out an order for which there was no place."""
    return commit.operation.startswith(f"{_REFUSE}{entry.order}-on-")


def _enter(
    platform: Platform,
    registration: Registration,
    entry: OrderEntry,
    kit: Kit,
    snapshot: RepositorySnapshot,
    *,
    stage: ledger.Stage,
    lease: Mapping[str, str] | None = None,
) -> Written:
    recorded = commit_pinning.application_at(platform, entry, snapshot.commit)
    before = ledger.delivered_commit(recorded)
    requester = registration.requester
    if recorded and not ledger.requester_of(recorded):  # by a version that did not write it there
        requester = registered_by(platform, entry)
    application = ledger.order_application(
        entry,
        kit=registration.kit,
        forge_url=platform.forge.base_url,
        commit=commit_pinning.commit_to_pin(platform, entry, kit, before),
        stage=stage,
        refreshes=knows_retry_refresh(platform),
        recorded=recorded,
        requester=requester,
        lease=lease,
    )
    return write_ledger(
        platform,
        {entry.application_path: yaml11.dump(application)},
        Operation(
            f"{_REGISTER}{registration.order}",
            registration.requester,
            f"{registration.order}: ordered",
            registration.proof,
        ),
        base=snapshot,
    )


def _is_entering(platform: Platform, entry: OrderEntry, snapshot: RepositorySnapshot) -> bool:
    """Say whether an order was entered by somebody who was stopped before its place was sure."""
    application = commit_pinning.application_at(platform, entry, snapshot.commit)
    return ledger.FINALIZER in (metadata(application or {}).get("finalizers") or ())


def _new_lease(platform: Platform, live: live_order.LiveOrder, requester: str) -> dict[str, str]:
    """Return the lease of a new order, as annotations; none if it lives without an expiry."""
    kit, path = live.kit, live.kit.lease.term_field
    policy = policy_of(kit.lease, live.entry.team)
    if policy is None:
        return {}
    head = platform.forge.head(live.repository) if path else None
    xr = live_order.read_xr(platform, live, head).xr if head else {}
    asked = dig(xr, "spec", *path.split(".")) if path else None
    try:
        granted = grant(policy, platform.clock.now(), asked, by=requester)
    except InvalidInputError as error:
        name = kit.parameter(path) if path else "lease"
        raise InvalidInputError(name, error.value, error.rule, hint=error.hint) from error
    return granted.annotations() if granted else {}


def _lease_in(platform: Platform, entry: OrderEntry, kit: Kit) -> dict[str, str]:
    if not kit.lease.is_declared:
        return {}
    return lease_annotations(commit_pinning.application_at(platform, entry))


def _note_expiry(platform: Platform, registration: Registration, lease: Mapping[str, str]) -> None:
    if expires := lease.get(EXPIRES_AT):
        requester = Requester(registration.requester, registration.proof)
        try_note_expiry(platform, registration.order, expires, requester)


def _came_second(
    platform: Platform, entry: OrderEntry, snapshot: RepositorySnapshot, written: Written
) -> bool:
    """
    Say whether another team had the id when this order was entered.

    Two teams that register an id at the same moment write different files, so the forge refuses
    neither. Of an order that was entered before (its writer was stopped before it took it back),
    only what the ledger shows as taken twice is looked up.
    """
    if not written.changed and not ledger.teams_besides(snapshot.blobs, entry):
        return False
    entered_at = written.commit if written.changed else _entered_at(platform, entry)
    if entered_at is None:
        return False
    blobs = platform.forge.tree(platform.ledger, entered_at)
    return bool(ledger.teams_besides(blobs, entry))


def _entered_at(platform: Platform, entry: OrderEntry) -> CommitSha | None:
    """Return the newest commit that entered an order."""
    prefix = f"{_REGISTER}{entry.order}-on-"
    history = platform.forge.commits(platform.ledger, path=entry.application_path)
    return next((commit.id for commit in history if commit.operation.startswith(prefix)), None)


def _take_back(
    platform: Platform, registration: Registration, entry: OrderEntry, reason: str
) -> None:
    """Remove an entry for which another one, written at the same moment, leaves no place."""
    write_ledger(
        platform,
        {entry.application_path: None},
        Operation(
            f"{_REFUSE}{registration.order}",
            registration.requester,
            f"{registration.order}: {reason}",
            registration.proof,
        ),
    )


def _confirm_place(
    platform: Platform,
    registration: Registration,
    live: live_order.LiveOrder,
    registered_at: CommitSha,
) -> None:
    """Take an order back that, with those registered before it, is above a limit of its team."""
    entry, team, kit = live.entry, live.team, registration.kit
    if limit_check.overfull(platform, entry, kit, team, registered_at):
        _take_back(platform, registration, entry, "one too many")
        limit_check.check_may_order(platform, entry, kit, ledger_snapshot(platform))
        raise RefusedError(
            f"team {team.team} got its last order at the same moment", hint="repeat the command"
        )
    head = platform.forge.head(live.repository)
    if head is None:
        return  # gone since its record was read: there is nothing to deliver
    try:
        cost_limit.check_registered(platform, live, registered_at, head)
    except RefusedError:
        _take_back(platform, registration, live.entry, "above the team's cost limit")
        raise


def _check_new(
    platform: Platform, live: live_order.LiveOrder, snapshot: RepositorySnapshot
) -> None:
    entry, team = live.entry, live.team
    refuse_foreign_access(
        platform,
        entry.repository,
        adopted=team.adopted,
        writers=team.members,
        way_out=f"orderkit team change {entry.team} --adopt {{holders}}",
    )
    _check_application(platform, entry)
    _check_values(platform, live, snapshot)


def _check_kit(
    platform: Platform, registration: Registration, entry: OrderEntry, *, is_new: bool
) -> None:
    """Refuse a kit that the order's id does not name, or that it was not registered with."""
    if not is_new:
        live_order.check_kit(platform, entry, registration.kit)
    if not entry.order.startswith(f"{registration.kit}-"):
        raise InvalidInputError(
            "order",
            entry.order,
            f"is not an order of kit '{registration.kit}': the id is <kit>-<name>",
            hint=f"name the repository {registration.kit}-<name>, or name the kit of this one",
        )
    published_kit(platform, registration.kit)


def _check_application(platform: Platform, entry: OrderEntry) -> None:
    """Refuse an id that would replace an Application that is not an order's."""
    application = get_object(platform, application_key(entry.order))
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


def archived(repo: RepoId) -> AlreadyOrderedError:
    """Make the error for an order whose repository was archived at its end."""
    return AlreadyOrderedError(
        f"{repo} is archived: the order ended",
        hint=f"'orderkit destroy {repo.name} --delete-repository' frees the name; or order another",
    )


def check_free(entry: OrderEntry, ledger_paths: Collection[PurePosixPath]) -> None:
    """
    Check by the ledger's paths that the team may order and the id is not another order's.

    Raises:
        NotFoundError: The team is not in the ledger.
        AlreadyOrderedError: The order is ending, or its id belongs to another team.
    """
    if ledger.team_path(entry.team) not in ledger_paths:
        raise limit_check.unknown_team(entry.team, list(ledger.teams(ledger_paths)))
    if entry.end_path in ledger_paths:
        raise AlreadyOrderedError(
            f"{entry.order} is ending", hint=f"finish that first: orderkit destroy {entry.order}"
        )
    if entry.application_path in ledger_paths:
        return
    # Whose it is may be none of the caller's business.
    if ledger.living_order(ledger_paths, entry.order) is not None:
        raise AlreadyOrderedError(f"{entry.order} is taken", hint="order another name")


def _check_record(platform: Platform, registration: Registration, repo: RepoId) -> OrderFile:
    repository = platform.forge.repo(repo)
    if repository is not None and repository.archived:
        raise archived(repo)
    text = read_text(platform, repo, order_file.PATH, "main")
    if text is None:
        raise NotFoundError(
            f"{repo}: no {order_file.PATH} on branch main", hint="publish the order first"
        )
    record = order_file.parse(text.encode(), name=f"{repo}/{order_file.PATH}")
    claims = {
        "order": (registration.order, record.order),
        "kit": (registration.kit, record.kit),
        "team": (registration.team, record.team),
    }
    for field, (claimed, recorded) in claims.items():
        if claimed != recorded:
            raise InvalidInputError(
                field, claimed, f"is not what {repo}/{order_file.PATH} says: '{recorded}'"
            )
    return record
