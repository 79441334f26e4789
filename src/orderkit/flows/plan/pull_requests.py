"""
Plan a pull request of an order, and report on the forge what merging it would do.

`plan_pull` plans also one that was opened by hand. The plan shows what merging would do: the
branch's edits since it left main, applied to the current main. A plan may be about the order's own
XR only, within what the team may have. The checks are those of a change, except for the kit's
``who``, because the person who pushed is unknown. So the XRD with its transition rules, the kit's
changes and the team's limits apply, and data is deleted only if the pull request's text has a line
``Accept-Loss: yes``. Everything is read from the forge; titles, branches and files are untrusted.
The stations that run are the platform's own, whatever the branch contains.

`publish` reports a plan by one comment and a commit status. The status `CONTEXT` is success if the
change may be merged, failure if it would be refused, error if no plan could be made. It is set when
the answer is known and never pending, so that a killed process leaves nothing behind. The comment
is found by its marker and updated in place. Both writes are idempotent and read back before a
failure is reported (``ports.pulls``).

`unplanned` finds open pull requests without a plan: the service missed them or failed. A forge does
not repeat a delivery while the service is down, and the service's queue is lost when it ends.
`plan_pull` and `unplanned` write nothing.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from pathlib import PurePosixPath

from ground.argocd.sync_rules import HINT, steering_annotations
from ground.errors import (
    NotFoundError,
    OrderkitError,
    RefusedError,
    RemoteError,
    SeveralProblemsError,
    UsageError,
    shorten,
)
from ground.names import MAIN, CommitSha, RepoId
from ground.objects.kube_objects import Kind, Manifest, metadata
from kubeschema.validate import Reason, Validator
from orderkit.core.inheriting_threads import InheritingThreads
from orderkit.core.kit.compositions import choice_findings
from orderkit.core.order import ledger, team_limits
from orderkit.core.order.change import differences, judge_rules
from orderkit.core.order.change.differences import merged
from orderkit.core.order.order_file import MANIFESTS
from orderkit.core.order.order_state import short
from orderkit.core.plan import Code, Fault, Plan
from orderkit.core.plan.graph import graph_of, to_mermaid
from orderkit.core.plan.judging import OutcomeRule
from orderkit.core.plan.plan_markdown import plain_line, to_markdown
from orderkit.flows.order import cost_limit
from orderkit.flows.order.live_order import (
    ANOTHER_XR,
    LiveOrder,
    XrFile,
    check_name,
    delivered_xr,
    find_living,
    hook_refusals,
    main_head,
    read_xr,
)
from orderkit.flows.plan.order_plan import USUAL, Basis, plan_order
from orderkit.flows.platform import Platform, ledger_snapshot
from orderkit.ports.forge import Commit, CommitStatus, Forge, PullRequest, StatusState
from orderkit.ports.pulls import PLAN_CONTEXT

CONTEXT = MARKER = PLAN_CONTEXT
ACCEPT_LOSS = "Accept-Loss: yes"
"""The line of a pull request's text that accepts that data is deleted."""
_DESCRIPTION_MAX = 140
"""GitHub refuses a longer description of a status."""
_GRAPH_MAX, _NODES_MAX = 20_000, 60
"""Characters, and resources, up to which a graph is drawn in a comment."""


@dataclass(frozen=True, slots=True)
class JudgedPlan:
    """A plan and what it means for the change."""

    plan: Plan | None
    refused: tuple[str, ...] = ()
    """Why it must not be merged, besides the plan's own faults."""
    failed: str = ""
    """Why there is no plan."""

    @property
    def state(self) -> StatusState:
        """What the status says."""
        if self.failed or (self.plan is None and not self.refused):
            return "error"
        faults = self.plan.faults if self.plan else ()
        return "failure" if self.refused or faults else "success"

    @property
    def summary(self) -> str:
        """Return it on one line."""
        if self.failed:
            return f"no plan: {self.failed}"
        if self.refused:
            return f"refused: {self.refused[0]}"
        if self.plan is None:
            return "no plan"
        if self.plan.faults:
            return f"refused: {self.plan.faults[0].message}"
        changes = self.plan.changes or self.plan.fields
        return self.plan.summary if changes else "nothing changes"


def set_plan_status(
    forge: Forge, repo: RepoId, commit: CommitSha, judged: JudgedPlan, url: str
) -> None:
    """
    Make sure that a commit's status says what its plan is. Idempotent.

    Raises:
        NotFoundError, RemoteError: The forge.
    """
    description = shorten(judged.summary, limit=_DESCRIPTION_MAX).strip()
    forge.set_status(repo, commit, CommitStatus(CONTEXT, judged.state, description, url))


def comment_text(judged: JudgedPlan, head: CommitSha, notes: tuple[str, ...] = ()) -> str:
    """Return the comment of a pull request; it can neither mention people nor contain HTML."""
    parts = [f"Plan of `{short(head)}`, made by Orderkit; it follows the branch."]
    if judged.failed:
        parts.append(f"**No plan.** {plain_line(judged.failed)}")
    if judged.refused:
        rows = "\n".join(f"- {plain_line(text)}" for text in judged.refused)
        parts.append(f"**It would be refused:**\n\n{rows}")
    if judged.plan is not None:
        parts.append(to_markdown(judged.plan))
    parts += [f"- {plain_line(note)}" for note in notes]
    parts += _graph(judged.plan) if judged.plan is not None else []
    return "\n\n".join(parts)


def _graph(plan: Plan) -> list[str]:
    if not plan.changes or len({*plan.before.resources, *plan.after.resources}) > _NODES_MAX:
        return []
    text = to_mermaid(graph_of(plan))
    if len(text) > _GRAPH_MAX:
        return []
    return [f"<details><summary>Graph</summary>\n\n```mermaid\n{text}```\n\n</details>"]


Place = tuple[RepoId, int]


def unplanned(platform: Platform, targets: Collection[str | RepoId] = ()) -> list[Place]:
    """
    Return the pull requests into main whose head has no plan, by team, order and number.

    Args:
        targets: Teams or repositories; none: every living order.

    Raises:
        NotFoundError: There is no ledger. RemoteError: the forge.
    """
    repositories = [entry.repository for entry in ledger.entries(ledger_snapshot(platform).blobs)]
    selected = [repo for repo in repositories if not targets or {repo, repo.owner} & set(targets)]
    with InheritingThreads(thread_name_prefix="missed") as pool:
        numbers = pool.map(lambda repo: _numbers(platform.forge, repo), selected)
        return [
            (repo, n)
            for repo, open_numbers in zip(selected, numbers, strict=True)
            for n in open_numbers
        ]


def _numbers(forge: Forge, repo: RepoId) -> list[int]:
    try:
        pulls = list(forge.pulls(repo, base=MAIN))
        return sorted(pull.number for pull in pulls if not _has_plan(forge, repo, pull))
    except NotFoundError:
        return []  # its repository went, or a head with it


def _has_plan(forge: Forge, repo: RepoId, pull: PullRequest) -> bool:
    statuses = forge.statuses(repo, pull.head_commit)
    return any(status.context == CONTEXT and status.state != "error" for status in statuses)


def check_same(live: LiveOrder, old: Manifest, new: Manifest) -> None:
    """
    Check that both are the order's XR.

    Raises:
        RefusedError: The new one has another kind, name or namespace.
    """
    old_kind, new_kind = Kind.of(old), Kind.of(new)
    names = [metadata(manifest).get("name") for manifest in (old, new)]
    homes = [metadata(delivered_xr(live, xr)).get("namespace") for xr in (old, new)]
    if (old_kind.group, old_kind.kind) != (new_kind.group, new_kind.kind) or names[0] != names[1]:
        raise RefusedError(
            f"{new_kind} {names[1]} is not the XR of {live.entry.order}, {old_kind} {names[0]}",
            hint="an XR of another name or kind is another order",
        )
    if homes[0] != homes[1]:
        raise RefusedError(
            f"{live.entry.order}: metadata.namespace is '{homes[1]}', not '{homes[0]}'",
            hint=f"restore the namespace: {ANOTHER_XR.format('in another one')}",
        )


def within_limits(platform: Platform, live: LiveOrder, old: Manifest, plan: Plan) -> Plan:
    """Return the plan with what the team may not have, as a change would be refused for it."""
    try:
        team_limits.check_kit(live.team, live.kit.name)
        spec, before = plan.after.xr.get("spec") or {}, old.get("spec") or {}
        team_limits.check_values(live.team, live.kit, spec, before=before)
        if not plan.faults:
            cost_limit.check_change(platform, live, old, plan.after.input_xr or plan.after.xr)
    except (RefusedError, SeveralProblemsError) as error:
        faults = [
            Fault("", str(problem), "spec", problem.hint, code=OutcomeRule.LIMIT)
            for problem in error.problems
        ]
        return replace(plan, after=replace(plan.after, faults=(*plan.after.faults, *faults)))
    return plan


_ACCEPTED = re.compile(rf"^[ \t]*{ACCEPT_LOSS}[ \t\r]*$", re.MULTILINE | re.IGNORECASE)
_FILES_TOLD = 10
_ROUNDS = 4
_PAUSE_S = 1.0


@dataclass(frozen=True, slots=True)
class PullPlan:
    """What a pull request would do if its head were merged now."""

    order: str
    pull: PullRequest
    judged: JudgedPlan
    notes: tuple[str, ...] = ()
    """What it changes besides the order's XR."""

    @property
    def head(self) -> CommitSha:
        """The commit that was planned."""
        return self.pull.head_commit

    @property
    def text(self) -> str:
        """The comment."""
        return comment_text(self.judged, self.head, self.notes)


def plan_pull(platform: Platform, repo: RepoId, number: int, *, basis: Basis = USUAL) -> PullPlan:
    """
    Return the plan of an open pull request into main. Writes nothing.

    Errors in the order's files are part of the plan; they raise nothing.

    Raises:
        NotFoundError: It is not a live order's repository, or there is no such pull request.
        RefusedError: It is not open, or goes into another branch: merging it delivers nothing.
        RemoteError: The forge.
    """
    entry = ledger.living_order(ledger_snapshot(platform).blobs, repo.name)
    if entry is None or entry.repository != repo:
        raise NotFoundError(
            f"{repo} is not an order's repository",
            hint="only pull requests of orders can be planned",
        )
    pull = platform.forge.pull(repo, number)
    if pull is None:
        raise NotFoundError(f"{repo} has no pull request {number}")
    if pull.state != "open" or pull.base != MAIN:
        why = f"is {pull.state}" if pull.state != "open" else f"goes into '{pull.base}'"
        raise RefusedError(
            f"{repo}#{number} {why}: merging it delivers nothing",
            hint=f"only open pull requests into {MAIN} can be planned",
        )
    return _Pull(platform, entry.order, pull, basis).planned()


def plan_open_pull(platform: Platform, live: LiveOrder, pull: PullRequest) -> PullPlan:
    """Return the plan of an open pull request into main that was read with its order."""
    return _Pull(platform, live.entry.order, pull, USUAL, live).planned()


def keep_planned(platform: Platform, repo: RepoId, number: int) -> PullPlan:
    """
    Plan a pull request and report it on the forge, until the planned head is the current one.

    Idempotent: after a crash, the same call updates status and comment.

    Raises:
        What `plan_pull` says; NotFoundError, RemoteError: also where nothing could be said.
    """
    for number_of_try in range(1, _ROUNDS + 1):
        pull_plan = plan_pull(platform, repo, number)
        if pull_plan.judged.failed and number_of_try < _ROUNDS:
            platform.clock.sleep(_PAUSE_S * number_of_try)
            continue
        publish(platform.forge, repo, pull_plan)
        now = platform.forge.pull(repo, number)
        if now is None or now.head_commit == pull_plan.head:
            break
    return pull_plan


def say_failed(forge: Forge, repo: RepoId, number: int, why: str) -> None:
    """
    Set the status of a pull request's head to error: no plan of it could be made. Idempotent.

    Raises:
        NotFoundError, RemoteError: The forge.
    """
    pull = forge.pull(repo, number)
    if pull is not None and pull.state == "open" and pull.base == MAIN:
        set_plan_status(forge, repo, pull.head_commit, JudgedPlan(None, failed=why), pull.web_url)


def publish(forge: Forge, repo: RepoId, pull_plan: PullPlan) -> None:
    """
    Keep the one comment, then set the status of the planned commit. Idempotent.

    Raises:
        NotFoundError, RemoteError: The forge failed; repeat the call.
    """
    try:
        # first: the status never appears without its explanation
        forge.comment(repo, pull_plan.pull.number, pull_plan.text, marker=MARKER)
    finally:
        set_plan_status(forge, repo, pull_plan.head, pull_plan.judged, pull_plan.pull.web_url)


@dataclass(frozen=True, slots=True)
class _Pull:
    platform: Platform
    order: str
    pull: PullRequest
    basis: Basis
    live: LiveOrder | None = None

    def planned(self) -> PullPlan:
        try:
            return self._planned()
        except (RemoteError, UnicodeError) as error:
            # no plan could be made: status error
            return self._result(JudgedPlan(None, failed=str(error)))
        except OrderkitError as error:
            # it would be refused: status failure
            return self._result(JudgedPlan(None, (_sentence(error),)))

    def _result(self, judged: JudgedPlan, notes: tuple[str, ...] = ()) -> PullPlan:
        return PullPlan(self.order, self.pull, judged, notes)

    def _planned(self) -> PullPlan:
        live = self.live or find_living(self.platform, self.order)
        main = main_head(self.platform, live.repository)
        start = self._split(live, main)
        old, new = self._read(live, main), self._read(live, self.pull.head_commit)
        split = old if start == main else self._read(live, start)
        notes = tuple(self._other_files(live, start, {split.path, new.path}))
        check_name(live, new)
        hooks = hook_refusals(self.platform.forge, live, self.pull.head_commit)
        if hooks:
            return self._result(JudgedPlan(None, (f"{hooks[0]} ({HINT})",)), notes)
        notes += tuple(f"{new.path}: {found}." for found in steering_annotations(new.xr))
        check_same(live, old.xr, new.xr)
        merged_xr, conflicts = merged(split.xr, old.xr, new.xr)
        refused = (*map(str, conflicts), *_judge(live, old.xr, merged_xr))
        try:
            plan = plan_order(self.platform, live, old.xr, merged_xr, basis=self.basis)
        except RemoteError:
            raise
        except OrderkitError as error:
            return self._result(JudgedPlan(None, refused, "" if refused else str(error)), notes)
        plan = within_limits(self.platform, live, old.xr, plan)
        return self._result(JudgedPlan(plan, (*refused, *self._losses(plan))), notes)

    def _read(self, live: LiveOrder, commit: CommitSha) -> XrFile:
        return read_xr(self.platform, live, commit)

    def _split(self, live: LiveOrder, main: CommitSha) -> CommitSha:
        """Return the commit at which the branch left main or last merged it."""
        head = self.pull.head_commit
        commits = self.platform.forge.compare(live.repository, main, head)
        return next(_outside(commits), main)

    def _other_files(
        self, live: LiveOrder, split: CommitSha, xrs: set[PurePosixPath]
    ) -> Iterator[str]:
        """Yield a note for each other changed file; none is planned, some are delivered."""
        old, new = (
            self.platform.forge.tree(live.repository, commit)
            for commit in (split, self.pull.head_commit)
        )
        changed = {path for path in old.keys() | new.keys() if old.get(path) != new.get(path)}
        other_files = sorted(changed - xrs)
        yield from (_file_note(path) for path in other_files[:_FILES_TOLD])
        if len(other_files) > _FILES_TOLD:
            yield f"{len(other_files) - _FILES_TOLD} more files are changed."

    def _losses(self, plan: Plan) -> tuple[str, ...]:
        losses = [danger.message for danger in plan.dangers if danger.code is Code.DATA_LOSS]
        if not losses or _ACCEPTED.search(self.pull.body):
            return ()
        way = f"to accept the loss, add a line '{ACCEPT_LOSS}' to the pull request's text"
        return (f"{'; '.join(losses)}: {way}",)


def _outside(commits: tuple[Commit, ...]) -> Iterator[CommitSha]:
    """Yield the parents that are not commits of the branch, the last merged one first."""
    ids = {commit.id for commit in commits}
    return (parent for commit in commits for parent in commit.parents if parent not in ids)


def _file_note(path: PurePosixPath) -> str:
    if path.is_relative_to(MANIFESTS):
        return f"{path} changes too; it is delivered as it is and is not in this plan."
    return f"{path} changes too; it is not delivered."


def _judge(live: LiveOrder, old: Manifest, new: Manifest) -> Iterator[str]:
    """Yield what forbids the step: transition rules and the kit's changes."""
    validator = Validator(live.kit.xrd)
    yield from (f"{found.path}: {found.message}" for found in choice_findings(live.kit, new, old))
    told = {(f.rule, f.message) for xr in (old, new) for f in validator.check(xr).findings}
    for finding in validator.check(new, old).findings:
        if finding.reason is Reason.TRANSITION and (finding.rule, finding.message) not in told:
            yield f"{finding.path}: {finding.message}"
    old_spec, new_spec = (xr.get("spec") or {} for xr in (old, new))
    try:
        judge_rules(live.kit, differences(old_spec, new_spec))
    except (RefusedError, UsageError) as error:
        yield from map(_sentence, error.problems)


def _sentence(error: OrderkitError) -> str:
    return f"{error} ({error.hint})" if error.hint else str(error)
