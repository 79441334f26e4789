"""
Orders that wait for approval: propose one to the ledger, judge the proposal, and deliver it.

The record ``waiting.yaml`` on the ledger's main branch says what is proposed: which commit of the
order's repository, by whom. Everything else follows from it and is made again if it is missing:
the branch, the pull request, its status. `Proposal.settle` brings an order as far as the proposal
allows: agreed to, it is merged and delivered; merged by somebody else, it is taken back or
reported, as its kit says. Both are idempotent and resumable; any number of processes may do it at
the same time, since each write states what it read.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Literal

from ground.errors import (
    AccessError,
    AlreadyOrderedError,
    NotFoundError,
    OrderkitError,
    RefusedError,
    shorten,
)
from ground.names import MAIN, CommitSha, RepoId
from ground.objects.kube_objects import Manifest
from ground.shapes import changed
from orderkit.core.kit.approval_rules import Need, sentence
from orderkit.core.order import ledger, ledger_applications
from orderkit.core.order.approval import BYPASSED, CONTEXT, WaitingOrder
from orderkit.core.order.lease import lease_annotations
from orderkit.core.order.ledger import OrderEntry
from orderkit.core.order.order_state import short
from orderkit.core.plan.plan_markdown import plain_line, to_markdown
from orderkit.flows.argocd.commit_pinning import application_at
from orderkit.flows.argocd.refreshing import knows_retry_refresh, refresh
from orderkit.flows.composing.on_demand import plan_new
from orderkit.flows.order import agreements
from orderkit.flows.order.agreements import agreed, forge_user, missing, objection
from orderkit.flows.order.approvals import Asking, asking_of, foreseen, order_needs
from orderkit.flows.order.commit_judging import refuse_unproved
from orderkit.flows.order.expiry_note import new_lease, note_new_expiry
from orderkit.flows.order.ledger_records import waiting_order
from orderkit.flows.order.live_order import LiveOrder, delivered_xr, new_live_order, read_xr
from orderkit.flows.platform import (
    Platform,
    RepositorySnapshot,
    ledger_snapshot,
    snapshot,
    write_ledger,
)
from orderkit.flows.repeating import in_rounds
from orderkit.flows.team.limit_check import check_may_order
from orderkit.ports.forge import (
    FileChange,
    MergeStyle,
    Operation,
    PullDraft,
    PullRequest,
    agent_notes,
)
from orderkit.ports.requesters import Requester
from yamlfiles import yaml11

_XR_MAX = 10_000


@dataclass(frozen=True, slots=True)
class Settled:
    """What became of an order that waited for approval."""

    state: Literal["waiting", "delivered", "closed", "withdrawn"]
    """``closed``: its pull request was, and it has to be withdrawn."""
    missing: str = ""
    """Why it still waits."""
    pull: PullRequest | None = None
    approvers: tuple[str, ...] = ()


def propose(
    platform: Platform,
    live: LiveOrder,
    needs: tuple[Need, ...],
    asking: Asking,
    snapshot: RepositorySnapshot,
    *,
    commit: CommitSha,
) -> Proposal | None:
    """
    Make sure that an order is proposed as its repository is at a commit. Idempotent, resumable.

    Returns the proposal; None if it does not wait any more.

    Raises:
        RefusedError: Nothing proves who wrote what the repository holds.
        ConflictError: Somebody else proposed it at the same moment.
    """
    entry = live.entry
    waiting = waiting_order(platform, entry) if entry.waiting_path in snapshot.blobs else None
    if waiting is None or waiting.commit != commit:
        refuse_unproved(platform, entry, commit)
        person = forge_user(platform, entry.repository, asking.requester)
        waiting = WaitingOrder(
            order=entry.order,
            team=entry.team,
            kit=live.kit.name,
            requester=asking.requester,
            commit=commit,
            since=platform.clock.now().isoformat(timespec="seconds"),
            approval=foreseen(platform, entry, needs, replace(asking, person=person)),
            proof=asking.proof,
            account=person.id if person else 0,
            agent=asking.agent,
        )
        written = write_ledger(
            platform,
            {entry.waiting_path: waiting.to_yaml()},
            _operation(waiting, "propose", "waits for approval"),
            base=snapshot,
        )
        files = platform.forge.tree(platform.ledger, written.commit)
        now = RepositorySnapshot(written.commit, files)
        pull = _ensure_pull(platform, live, waiting, needs, now)
        return Proposal(platform, live, waiting, needs, pull, now, is_new=True)
    return proposal_of(platform, entry)


def proposal_of(
    platform: Platform, entry: OrderEntry, *, patience_s: float = 0.0
) -> Proposal | None:
    """
    Return what proposes an order that waits for approval; None if it does not wait.

    What is missing of it is made, after a crash for example.

    Args:
        patience_s: None also if it is younger than this and has no pull request yet: whoever
            ordered it is about to open one.

    Raises:
        OrderkitError: The forge.
    """
    snapshot = ledger_snapshot(platform)
    if entry.waiting_path not in snapshot.blobs:
        return None
    waiting = waiting_order(platform, entry, snapshot.commit)
    if waiting is None:
        return None
    age = platform.clock.now() - datetime.fromisoformat(waiting.since)
    if age < timedelta(seconds=patience_s) and open_proposal(platform, waiting) is None:
        return None
    live = new_live_order(platform, entry, snapshot, waiting.kit)
    xr = read_xr(platform, live, waiting.commit).xr
    needs = order_needs(platform, live, xr, asking_of(waiting), snapshot)
    pull = _ensure_pull(platform, live, waiting, needs, snapshot)
    return Proposal(platform, live, waiting, needs, pull, snapshot)


def open_proposal(platform: Platform, waiting: WaitingOrder) -> PullRequest | None:
    """Return the pull request that proposes an order, in whatever state; None if there is none."""
    # one request in the usual case; else all pull requests of the ledger are read
    pull = platform.forge.pull_between(platform.ledger, MAIN, waiting.branch)
    if pull is not None and pull.state == "open":
        return pull
    pulls = platform.forge.pulls(platform.ledger, state="all", head=waiting.branch)
    # of two processes that open one at the same moment, the later is closed
    return min(pulls, key=lambda pull: pull.number, default=None)


@dataclass(frozen=True, slots=True)
class Proposal:
    """An order that waits for approval, what it needs, and its pull request."""

    platform: Platform
    live: LiveOrder
    waiting: WaitingOrder
    needs: tuple[Need, ...]
    pull: PullRequest
    snapshot: RepositorySnapshot
    is_new: bool = False
    """It was proposed just now, by the rules of today."""

    def settle(self) -> Settled:
        """
        Bring the order as far as the proposal allows, but not to its end. Idempotent, resumable.

        Raises:
            OrderkitError: The forge.
        """
        if self.pull.state == "closed":
            return Settled("closed", pull=self.pull)
        lacking, approvers = self._judge()
        is_written = self.live.entry.application_path in self.snapshot.blobs
        if self.pull.state == "open":
            agreements.set_approval_status(
                self.platform.forge, self._repo, self.pull.head_commit, self.pull, lacking
            )
        if lacking and is_written:
            return self._bypassed(lacking)
        if lacking:
            if not self.is_new:
                self._keep_sentence()
            return Settled("waiting", lacking, self.pull)
        if self.pull.state == "open":
            self._merge(approvers)
        self._deliver(f"approved by {', '.join(approvers)}" if approvers else "may be delivered")
        return Settled("delivered", "", self.pull, approvers)

    def _judge(self) -> tuple[str, tuple[str, ...]]:
        """Return why it may not be delivered, empty if it may, and who agreed."""
        platform, entry, pull = self.platform, self.live.entry, self.pull
        try:
            pack = snapshot(platform.forge, platform.pack_repo, self.live.pack)
            check_may_order(platform, entry, self.waiting.kit, self.snapshot, pack)
            self._check_taken()
            behind = self.behind()
            who = agreed(platform, entry, platform.ledger, pull, behind)
        except (RefusedError, AlreadyOrderedError) as error:
            return str(error), ()
        lacking = objection(platform, entry, self.needs, who) or missing(
            platform, entry, self.needs, who
        )
        return lacking, tuple(user.login for user in who.people)

    def _check_taken(self) -> None:
        if ledger.teams_besides(self.snapshot.blobs, self.live.entry):
            raise AlreadyOrderedError(
                f"{self.live.entry.order} is taken by another team",
                hint="orderkit order KIT with another name",
            )

    def behind(self) -> set[int]:
        """
        Return the ids of the people behind the proposal.

        Raises:
            RefusedError: They are not known, or it proposes something else.
        """
        platform, repo, pull, waiting = self.platform, self._repo, self.pull, self.waiting
        me = platform.forge.user_with_right(repo, platform.forge.user())
        if pull.base != MAIN or (me and pull.author.id != me[0].id):
            raise RefusedError(
                f"{repo}#{pull.number} is not Orderkit's into {MAIN}",
                hint="close it, then repeat 'orderkit order' with the same values",
            )
        events = platform.forge.pull_events(repo, pull.number)
        # Gitea forgets all pushers when the base changes
        if any(event.kind == "retarget" for event in events):
            raise RefusedError(
                "somebody changed the base of its pull request: close it",
                hint=f"orderkit destroy {self.live.entry.order}, then order it again",
            )
        if not self._is_as_proposed():
            raise RefusedError(
                "somebody changed what is proposed: close the pull request",
                hint=f"orderkit destroy {self.live.entry.order}, then order it again",
            )
        person = forge_user(platform, repo, waiting.requester)
        ids = {account for account in (waiting.account, person.id if person else 0) if account}
        if self.needs and not ids:
            raise RefusedError(
                f"'{waiting.requester}' ordered it, who is not a user of the forge, so nobody can"
                " tell whose approval counts: close its pull request, and order it as somebody"
                " who is"
            )
        return ids | {pull.author.id} | {event.by.id for event in events if event.kind == "push"}

    @property
    def _repo(self) -> RepoId:
        return self.platform.ledger

    def _is_as_proposed(self) -> bool:
        """Say whether the head adds the order's Application, as we write it, and nothing else."""
        forge, path, head = (
            self.platform.forge,
            self.live.entry.application_path,
            self.pull.head_commit,
        )
        file = forge.read(self._repo, path, head)
        if file is None or file.data.decode(errors="replace") not in self._texts():
            return False
        if self.pull.state != "open":
            return True
        commits = forge.compare(self._repo, MAIN, head)
        if len(commits) != 1 or len(commits[0].parents) != 1:
            return False
        before = dict(forge.tree(self._repo, commits[0].parents[0]))
        after = dict(forge.tree(self._repo, head))
        return {p for p, _ in before.items() ^ after.items()} == {path}

    def _texts(self) -> set[str]:
        stages: tuple[ledger_applications.Stage, ...] = ("proposed", "living")
        return {
            _application(self.platform, self.live, self.waiting, stage, refreshes=refreshes)
            for stage in stages
            for refreshes in (False, True)
        }

    def _keep_sentence(self) -> None:
        """Let the record say who has to agree by the rules of today."""
        text = foreseen(self.platform, self.live.entry, self.needs, asking_of(self.waiting))
        if text and text != self.waiting.approval:
            write_ledger(
                self.platform,
                {self.live.entry.waiting_path: changed(self.waiting, approval=text).to_yaml()},
                _operation(self.waiting, "propose", "waits for another approval"),
                base=self.snapshot,
            )

    def _merge(self, approvers: Sequence[str]) -> None:
        notes = tuple(("Orderkit-Approved-By", login) for login in approvers)
        operation = _operation(self.waiting, "merge", "approved")
        operation = replace(operation, notes=(*operation.notes, *notes))
        self.platform.forge.merge_pull(
            self._repo,
            self.pull.number,
            head=self.pull.head_commit,
            style=MergeStyle.MERGE,
            operation=operation,
        )

    def _deliver(self, summary: str, bypassed: str = "") -> None:
        """Let Argo CD deliver it, and remove the record: one commit."""
        entry, waiting = self.live.entry, self.waiting
        lease = new_lease(self.platform, self.live, waiting.requester)
        text = _application(
            self.platform, self.live, waiting, "living", bypassed=bypassed, lease=lease
        )
        in_rounds(lambda: self._try_deliver(text, summary))
        with suppress(OrderkitError):  # it polls too
            refresh(self.platform.cluster, ledger.team_application(entry.team))
        with suppress(OrderkitError):
            # Another run may have delivered it, with a lease of another second.
            lease = lease_annotations(application_at(self.platform, entry))
            by = Requester(waiting.requester, waiting.proof)
            note_new_expiry(self.platform, self.live, by, lease)

    def _try_deliver(self, text: str, summary: str) -> None:
        """Raises NotFoundError if the order was withdrawn meanwhile."""
        base, entry = ledger_snapshot(self.platform), self.live.entry
        if entry.waiting_path not in base.blobs:
            if entry.application_path in base.blobs and entry.end_path not in base.blobs:
                return  # somebody else delivered it meanwhile
            raise NotFoundError(
                f"{entry.order} does not wait any more: it was withdrawn meanwhile",
                hint="order it again",
            )
        # The operation is that of a registration: `registered_by` looks for it.
        write_ledger(
            self.platform,
            {entry.application_path: text, entry.waiting_path: None},
            _operation(self.waiting, "register", summary),
            base=base,
        )

    def _bypassed(self, lacking: str) -> Settled:
        """Report, or take back, what somebody wrote or merged without the agreement it needs."""
        entry, number = self.live.entry, self.pull.number
        if self.live.kit.approval.bypass == "report" and self._is_as_proposed():
            why = f"#{number} of {self._repo} was merged by bypassing Orderkit, without {lacking}"
            self._deliver("delivered without approval", bypassed=why)
            # another time gives another branch: the one that was merged is not proposed again
            return Settled("delivered", lacking, self.pull)
        waiting = changed(
            self.waiting, since=self.platform.clock.now().isoformat(timespec="microseconds")
        )
        write_ledger(
            self.platform,
            {entry.application_path: None, entry.waiting_path: waiting.to_yaml()},
            _operation(waiting, "refuse", "was merged without approval: taken back"),
            base=self.snapshot,
        )
        text = f"It was merged without {plain_line(lacking)}. Orderkit took it back."
        self.platform.forge.comment(self._repo, number, text, marker="orderkit/bypassed")
        with suppress(OrderkitError):  # it polls too
            refresh(self.platform.cluster, ledger.team_application(entry.team))
        pull = _ensure_pull(self.platform, self.live, waiting, self.needs)
        return Settled("waiting", lacking, pull)


def _operation(waiting: WaitingOrder, verb: str, summary: str) -> Operation:
    return Operation(
        f"{verb}-{waiting.order}",
        waiting.requester,
        f"{waiting.order}: {summary}",
        waiting.proof,
        agent_notes(waiting.agent),
    )


def _application(
    platform: Platform,
    live: LiveOrder,
    waiting: WaitingOrder,
    stage: ledger_applications.Stage,
    *,
    refreshes: bool | None = None,
    bypassed: str = "",
    lease: Mapping[str, str] | None = None,
) -> str:
    application = ledger_applications.order_application(
        live.entry,
        kit=waiting.kit,
        forge_url=platform.forge.base_url,
        commit=waiting.commit,
        stage=stage,
        refreshes=knows_retry_refresh(platform.cluster) if refreshes is None else refreshes,
        requester=waiting.requester,
        lease=lease,
    )
    note_bypass(application, bypassed)
    return yaml11.dump(application)


def note_bypass(application: Manifest, why: str) -> None:
    """Let an order's Application say that it is delivered without an agreement; empty: with it."""
    if not why:
        application["metadata"].get("annotations", {}).pop(BYPASSED, None)
        return
    note = shorten(" ".join(why.split()), limit=1_000)
    application["metadata"].setdefault("annotations", {})[BYPASSED] = note


def _ensure_pull(
    platform: Platform,
    live: LiveOrder,
    waiting: WaitingOrder,
    needs: Sequence[Need],
    ledger_files: RepositorySnapshot | None = None,
) -> PullRequest:
    """Make sure that the pull request was opened; return it, in whatever state it is."""
    pull = open_proposal(platform, waiting)
    if pull is not None:
        return pull
    forge, repo, entry = platform.forge, platform.ledger, live.entry
    with suppress(AccessError):  # 'orderkit doctor' reports it
        forge.protect_branch(repo, MAIN, checks=(CONTEXT,))
        if platform.webhook and not forge.has_webhook(repo, platform.webhook):
            forge.ensure_webhook(repo, platform.webhook)
    at: str = waiting.branch
    if forge.head(repo, waiting.branch) is None:
        at = start = (ledger_files or ledger_snapshot(platform)).commit
        forge.ensure_branch(repo, waiting.branch, start)
    stage: ledger_applications.Stage = (
        "living" if live.kit.approval.bypass == "report" else "proposed"
    )
    text = _application(platform, live, waiting, stage)
    file = forge.read(repo, entry.application_path, at)
    operation = replace(
        _operation(waiting, "propose", "waits for approval"),
        id=f"propose-{waiting.branch.rpartition('/')[2]}",
    )
    change = FileChange(entry.application_path, text.encode(), file.sha if file else None)
    forge.write(repo, [change], operation, branch=waiting.branch)
    title = f"{entry.order}: ordered by {waiting.requester}"
    draft = PullDraft(title, _body(platform, live, waiting, needs), waiting.branch, MAIN)
    pull = forge.open_pull(repo, draft, operation)
    agreements.set_approval_status(platform.forge, repo, pull.head_commit, pull, sentence(needs))
    return pull


def _body(platform: Platform, live: LiveOrder, waiting: WaitingOrder, needs: Sequence[Need]) -> str:
    """Return the description: for people only, since others can edit it."""
    xr = read_xr(platform, live, waiting.commit).xr
    proved = "" if waiting.proof else " (not proved)"
    proved += f" through the AI agent '{plain_line(waiting.agent)}'" if waiting.agent else ""
    lines = [
        (
            f"Ordered by {plain_line(waiting.requester)}{proved}: kit {live.kit.name}, team"
            f" {live.entry.team}, {live.repository} at `{short(waiting.commit)}`."
        ),
        "Who has to approve:",
        "\n".join(f"- {plain_line(str(need))}" for need in needs),
        (
            f"'orderkit approve {live.entry.order}' or an approving review of the newest commit"
            " counts; not from whoever ordered it. Then Orderkit merges and delivers it. Closing"
            " this withdraws the order."
        ),
        _code(yaml11.dump({"spec": xr.get("spec") or {}})),
        "\n\n".join(_plan(platform, live, xr)),
    ]
    return "\n\n".join(filter(None, lines))


def _code(text: str) -> str:
    """Return a text as an indented block, which nothing in it can end."""
    cut = text if len(text) <= _XR_MAX else f"{text[:_XR_MAX]}\n…"
    return "\n".join(f"    {line}" for line in cut.splitlines())


def _plan(platform: Platform, live: LiveOrder, xr: Manifest) -> Iterator[str]:
    try:
        plan = plan_new(platform, live.kit, delivered_xr(live, xr), live.pack)
    except OrderkitError as error:
        yield f"No plan: {plain_line(str(error))}"
        return
    yield to_markdown(plan)
