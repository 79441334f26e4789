"""Register an order: one commit in the ledger, after the order's repository proved itself."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass

from ground.errors import AccessError, AlreadyOrderedError, RefusedError
from ground.names import MAIN, CommitSha, OrderId, RepoId, TeamName, check_requester
from ground.shapes import Answer, Known
from orderkit.core.kit.model import Kit
from orderkit.core.order import ledger, ledger_applications, team_limits
from orderkit.core.order.lease import lease_annotations
from orderkit.core.order.ledger import OrderEntry
from orderkit.flows.argocd import commit_pinning
from orderkit.flows.argocd.refreshing import application_key, knows_retry_refresh, refresh
from orderkit.flows.forge_protection import (
    checks_of,
    forbid_squash,
    needs_protection,
    protect_main,
)
from orderkit.flows.order import cost_limit, live_order, order_proposals
from orderkit.flows.order.approvals import (
    Asking,
    may_need_approval,
    noted_bypass,
    order_needs,
    refuse_bypass,
)
from orderkit.flows.order.expiry_note import new_lease, note_new_expiry
from orderkit.flows.order.ledger_records import REFUSE, REGISTER, registered_by
from orderkit.flows.order.order_proposals import note_bypass
from orderkit.flows.order.registration_check import check_free, check_kit, check_new, check_record
from orderkit.flows.platform import (
    Platform,
    RepositorySnapshot,
    get_object,
    ledger_snapshot,
    pack_snapshot,
    write_ledger,
)
from orderkit.flows.team import limit_check
from orderkit.ports.cluster import Cluster
from orderkit.ports.forge import Operation, Written, agent_notes
from orderkit.ports.requesters import Requester
from yamlfiles import yaml11


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
    agent: str = ""
    """The AI agent that asks on behalf of the requester."""


class Registered(Answer, frozen=True):
    """`changed` is False when the ledger already had exactly this."""

    order: OrderId
    team: TeamName
    kit: str
    repository: str
    ledger_commit: str
    changed: bool
    approval: Known = ""
    """Who has to agree before it is delivered, and why; empty: nobody."""


def register(platform: Platform, registration: Registration) -> Registered:
    """
    Enter an order into the ledger, or find it there. Idempotent, one commit.

    An order that needs approval is proposed instead, and waits (``flows.approval``). If its
    ``main`` is protected, what ``main`` holds now is delivered. Two commits if the team's
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
    is_waiting = entry.waiting_path in snapshot.blobs
    is_new = is_waiting or entry.application_path not in snapshot.blobs
    pack = pack_snapshot(platform)
    registered_at = None if is_new else snapshot.commit
    kit = check_kit(platform, entry, registration.kit, pack, registered_at)
    team = limit_check.check_may_order(platform, entry, kit.name, snapshot, pack)
    record, repository = check_record(platform.forge, entry, kit.name)
    live = live_order.LiveOrder(entry, kit, record, team, pack=pack.commit)
    if registration.agent and not is_new:  # a repetition would deliver what `main` holds now
        _refresh_if_missing(platform.cluster, entry)
        place = str(entry.repository)
        return Registered(entry.order, entry.team, kit.name, place, snapshot.commit, changed=False)
    if is_new:
        check_new(platform, live, snapshot, repository)
    protect_main(platform.forge, entry.repository, kit)
    forbid_squash(platform.forge, entry.repository, repository)
    _ensure_webhook(platform, entry.repository)
    head = functools.cache(lambda: platform.forge.head(entry.repository))
    attempt = _Attempt(platform, registration, live, snapshot, is_new, head)
    bypassed = ""
    if is_new:
        live_order.check_observes(platform, live, head)
        if proposed := attempt.propose():
            return proposed
    elif commit := head():
        bypassed = attempt.bypassed(commit)
    written = attempt.enter_in_place(bypassed)
    if written is None:
        return register(platform, registration)
    if written.changed:
        refresh(platform.cluster, ledger.team_application(registration.team))
    else:
        _refresh_if_missing(platform.cluster, entry)
    # of what was there before, the lease may have been extended meanwhile
    ledger_at = written.commit if written.changed else MAIN
    lease = _lease_in(platform, entry, kit, ledger_at)
    by = Requester(registration.requester, registration.proof)
    note_new_expiry(platform, live, by, lease, head)
    return Registered(
        registration.order,
        registration.team,
        registration.kit,
        str(entry.repository),
        written.commit,
        written.changed,
    )


def _refresh_if_missing(cluster: Cluster, entry: OrderEntry) -> None:
    """Have an order delivered whose writer may have died before it asked for that."""
    if get_object(cluster, application_key(entry.order)) is None:
        refresh(cluster, ledger.team_application(entry.team))


def _ensure_webhook(platform: Platform, repo: RepoId) -> None:
    """Have the forge tell the service of an order, where an organisation's webhook may not do."""
    forge, webhook = platform.forge, platform.webhook
    if webhook is None or forge.capabilities.organisations_have_webhooks:
        return
    with suppress(AccessError):  # then 'orderkit doctor' says what is not heard of
        if not forge.has_webhook(repo, webhook):
            forge.ensure_webhook(repo, webhook)


def _lease_in(platform: Platform, entry: OrderEntry, kit: Kit, ledger_at: str) -> dict[str, str]:
    if not kit.lease.is_declared:
        return {}
    return lease_annotations(commit_pinning.application_at(platform, entry, ledger_at))


@dataclass(frozen=True, slots=True)
class _Attempt:
    """One attempt to enter an order, as its repository and the ledger were read."""

    platform: Platform
    registration: Registration
    live: live_order.LiveOrder
    snapshot: RepositorySnapshot
    is_new: bool
    head: Callable[[], CommitSha | None]
    """Returns the head of ``main``, read once it is protected: what is judged is delivered."""

    @property
    def _asking(self) -> Asking:
        asked = self.registration
        return Asking(asked.requester, asked.proof, asked.agent)

    def bypassed(self, head: CommitSha) -> str:
        """Return what is delivered without an agreement, by this registration or an earlier one."""
        by = self.live, head, self._asking, self.snapshot.commit
        if lacking := refuse_bypass(self.platform, *by):
            return f"delivered by {self.registration.requester} without {lacking}"
        return noted_bypass(self.platform, *by)

    def propose(self) -> Registered | None:
        """Propose an order that needs approval; None if it needs none, or it is settled."""
        platform, live, entry = self.platform, self.live, self.live.entry
        is_waiting = entry.waiting_path in self.snapshot.blobs
        may_need = may_need_approval(live) or is_waiting or bool(self.registration.agent)
        head = self.head() if may_need else None
        if head is None:
            return None
        xr = live_order.read_xr(platform, live, head).xr
        needs = order_needs(platform, live, xr, self._asking, self.snapshot)
        if not (needs or is_waiting):
            return None
        if not needs_protection(live.kit):  # else it was protected before its head was read
            platform.forge.protect_branch(entry.repository, MAIN, checks=checks_of(live.kit))
        proposal = order_proposals.propose(
            platform, live, needs, self._asking, self.snapshot, commit=head
        )
        settled = proposal.settle() if proposal else None
        if settled and settled.state == "closed":
            raise AlreadyOrderedError(
                f"{entry.order}: its pull request was closed, which withdraws the order",
                hint=f"order another name, or free this one: orderkit destroy {entry.order}"
                " --delete-repository",
            )
        is_left = proposal is not None and settled is not None and settled.state == "waiting"
        waits = proposal.waiting.approval if proposal and is_left else ""
        known = proposal.snapshot.commit if proposal and proposal.is_new and is_left else None
        commit = known or platform.forge.head(platform.ledger) or self.snapshot.commit
        repository = str(entry.repository)
        return Registered(
            entry.order, entry.team, live.kit.name, repository, commit, not is_waiting, waits
        )

    def enter_in_place(self, bypassed: str) -> Written | None:
        """Enter an order for which its team has room; None: taken back, and can be asked for."""
        kit, team = self.live.kit, self.live.team
        is_counted = team.limits.cost is not None or team_limits.is_counted(team, kit.name)
        is_raced = is_counted and (self.is_new or self._is_entering())
        # until the count is known, its Application goes with its file, so that it can be taken back
        stage: ledger_applications.Stage = "entering" if is_raced else "living"
        is_leased = self.is_new and not self.registration.is_adopted
        requester = self.registration.requester
        lease = new_lease(self.platform, self.live, requester) if is_leased else {}
        commit = self._enter(self.snapshot, stage=stage, lease=lease, bypassed=bypassed)
        if is_raced and (no_place := _no_place(self.platform, self.live, commit.commit)):
            self._refuse_last(no_place)
            return None
        self._refuse_second(commit)
        if not is_raced:
            return commit
        return self._enter(ledger_snapshot(self.platform), stage="living")

    def _is_entering(self) -> bool:
        """Say whether it was entered by somebody who was stopped before its place was sure."""
        return ledger_applications.is_entering(
            commit_pinning.application_at(self.platform, self.live.entry, self.snapshot.commit)
        )

    def _enter(
        self,
        snapshot: RepositorySnapshot,
        *,
        stage: ledger_applications.Stage,
        lease: Mapping[str, str] | None = None,
        bypassed: str = "",
    ) -> Written:
        platform, entry, registration = self.platform, self.live.entry, self.registration
        recorded = commit_pinning.application_at(platform, entry, snapshot.commit)
        is_entering = ledger_applications.is_entering(recorded)
        before = None if is_entering else ledger.delivered_commit(recorded)
        commit = commit_pinning.commit_to_pin(
            platform.forge, entry, self.live.kit, before, self.head
        )
        if stage == "entering":  # so that nothing pushed meanwhile runs if it is taken back
            commit = commit or self.head()
            if commit:
                live_order.check_hooks(platform.forge, self.live, commit)
        requester = registration.requester
        if recorded and not ledger.requester_of(recorded):  # by a version that did not write it
            requester = registered_by(platform, entry)
        application = ledger_applications.order_application(
            entry,
            kit=registration.kit,
            forge_url=platform.forge.base_url,
            commit=commit,
            stage=stage,
            refreshes=knows_retry_refresh(platform.cluster),
            recorded=recorded,
            requester=requester,
            lease=lease,
        )
        note_bypass(application, bypassed)
        return write_ledger(
            platform,
            {entry.application_path: yaml11.dump(application)},
            Operation(
                f"{REGISTER}{registration.order}",
                registration.requester,
                f"{registration.order}: ordered",
                registration.proof,
                agent_notes(registration.agent),
            ),
            base=snapshot,
        )

    def _refuse_last(self, why: _NoPlace) -> None:
        """Take back an order above its team's limit; refuse it unless the team may ask for it."""
        platform, entry = self.platform, self.live.entry
        self._take_back(why.reason)
        if not why.may_ask:
            kit = self.registration.kit
            limit_check.check_may_order(platform, entry, kit, ledger_snapshot(platform))
            raise why.refusal

    def _refuse_second(self, written: Written) -> None:
        """Take back and refuse an order whose id another team got at the same moment."""
        if self._came_second(written):
            self._take_back("taken by another team")
            order = self.live.entry.order
            raise AlreadyOrderedError(f"{order} is taken", hint="order another name")

    def _came_second(self, written: Written) -> bool:
        """
        Say whether another team had the id when this order was entered.

        Of an order that was entered before (its writer was stopped before it took it back), only
        what the ledger shows as taken twice is looked up.
        """
        platform, entry = self.platform, self.live.entry
        if not written.changed and not ledger.teams_besides(self.snapshot.blobs, entry):
            return False
        entered_at = written.commit if written.changed else _entered_at(platform, entry)
        if entered_at is None:
            return False
        # two teams that register an id at the same moment write different files, so the forge
        # refuses neither
        blobs = platform.forge.tree(platform.ledger, entered_at)
        return bool(ledger.teams_besides(blobs, entry))

    def _take_back(self, reason: str) -> None:
        """Remove the entry, for which another, written at the same moment, leaves no place."""
        registration = self.registration
        write_ledger(
            self.platform,
            {self.live.entry.application_path: None},
            Operation(
                f"{REFUSE}{registration.order}",
                registration.requester,
                f"{registration.order}: {reason}",
                registration.proof,
            ),
        )


def _entered_at(platform: Platform, entry: OrderEntry) -> CommitSha | None:
    """Return the newest commit that entered an order."""
    prefix = f"{REGISTER}{entry.order}-on-"
    history = platform.forge.commits(platform.ledger, path=entry.application_path)
    return next((commit.id for commit in history if commit.operation.startswith(prefix)), None)


@dataclass(frozen=True, slots=True)
class _NoPlace:
    """Why an order that was entered is above a limit of its team."""

    reason: str
    refusal: RefusedError
    may_ask: bool


def _no_place(
    platform: Platform, live: live_order.LiveOrder, registered_at: CommitSha
) -> _NoPlace | None:
    """Return why an order, with those registered before it, is above a limit of its team."""
    entry, team = live.entry, live.team
    if limit_check.overfull(platform, entry, live.kit.name, team, registered_at):
        text = f"team {team.team} got its last order at the same moment"
        refusal = RefusedError(text, hint="repeat the command")
        return _NoPlace("one too many", refusal, team.limits.over == "ask")
    head = platform.forge.head(live.repository) if team.limits.cost is not None else None
    if head is None:  # no limit, or the repository is gone: there is nothing to deliver
        return None
    xr = live_order.delivered_xr(live, live_order.read_xr(platform, live, head).xr)
    paths = platform.forge.tree(platform.ledger, registered_at)
    excess = cost_limit.new_excess(platform, team, entry, xr, paths)
    if excess is None:
        return None
    return _NoPlace("above the team's cost limit", excess, team.limits.over == "ask")
