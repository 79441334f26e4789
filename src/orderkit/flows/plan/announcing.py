"""
Report on the forge what merging a change would do: by a commit status and one comment.

The status `CONTEXT` is success if the change may be merged, failure if it would be refused, error
if no plan could be made. It is set when the answer is known and never pending, so that a killed
process leaves nothing behind. The comment is found by its marker and updated in place. Both writes
are idempotent and read back before a failure is reported (``ports.pulls``).

Find open pull requests of orders without a plan: the service missed them or failed.

A forge does not repeat a delivery while the service is down, and the service's queue is lost when
it ends. Writes nothing.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from ground.errors import NotFoundError, shorten
from ground.names import MAIN, CommitSha, RepoId
from orderkit.core.inheriting_threads import InheritingThreads
from orderkit.core.order import ledger
from orderkit.core.order.order_state import short
from orderkit.core.plan import Plan
from orderkit.core.plan.graph import graph_of
from orderkit.core.plan.graph_mermaid import to_mermaid
from orderkit.core.plan.plan_markdown import plain_line, to_markdown
from orderkit.flows.platform import Platform, ledger_snapshot
from orderkit.ports.forge import CommitStatus, PullRequest, StatusState
from orderkit.ports.pulls import PLAN_CONTEXT

CONTEXT = MARKER = PLAN_CONTEXT
ACCEPT_LOSS = "Accept-Loss: yes"
"""The line of a pull request's text that accepts that data is deleted."""
_DESCRIPTION_MAX = 140
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
    platform: Platform, repo: RepoId, commit: CommitSha, judged: JudgedPlan, url: str
) -> None:
    """
    Make sure that a commit's status says what its plan is. Idempotent.

    Raises:
        NotFoundError, RemoteError: The forge.
    """
    description = shorten(judged.summary, limit=_DESCRIPTION_MAX).strip()
    platform.forge.set_status(repo, commit, CommitStatus(CONTEXT, judged.state, description, url))


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
        numbers = pool.map(lambda repo: _numbers(platform, repo), selected)
        return [
            (repo, n)
            for repo, open_numbers in zip(selected, numbers, strict=True)
            for n in open_numbers
        ]


def _numbers(platform: Platform, repo: RepoId) -> list[int]:
    try:
        pulls = list(platform.forge.pulls(repo, base=MAIN))
        return sorted(pull.number for pull in pulls if not _has_plan(platform, repo, pull))
    except NotFoundError:
        return []  # its repository went, or a head with it


def _has_plan(platform: Platform, repo: RepoId, pull: PullRequest) -> bool:
    statuses = platform.forge.statuses(repo, pull.head_commit)
    return any(status.context == CONTEXT and status.state != "error" for status in statuses)
