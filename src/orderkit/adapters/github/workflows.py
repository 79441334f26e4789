"""Required reviews and workflow runs on GitHub, for templates."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ground.errors import InvalidInputError, NotFoundError, RefusedError
from ground.names import CommitSha, RepoId
from orderkit.adapters.forges.calls import (
    FORBIDDEN,
    INVALID,
    MISSING,
    checked,
    done,
    number_in,
    text_in,
)
from orderkit.adapters.forges.retries import settle
from orderkit.adapters.github.calls import GitHubCalls
from orderkit.ports.workflows import ForgeWorkflows, ReviewRules, WorkflowRun

_BY_HAND = "workflow_dispatch"


class Workflows(GitHubCalls):
    """The part of the port that only GitHub has; see `ports.workflows`."""

    @property
    def workflows(self) -> ForgeWorkflows:
        """This part; see the port."""
        return self

    def require_reviews(self, repo: RepoId, branch: str, rules: ReviewRules) -> bool:
        """
        Make sure that a branch is protected. Idempotent. See the port.

        Raises:
            RefusedError: The plan has no protection for this repository.
            NotFoundError: No such repository or branch.
        """
        path = self._path(repo, "branches", branch, "protection")
        doing = f"protect {branch} of {repo}"

        def look(attempted: bool) -> bool | None:  # noqa: FBT001  settle's shape
            answer = self._http.get(path)
            if answer.status == FORBIDDEN:
                raise RefusedError(
                    f"{doing}: {answer.text}",
                    hint="a free plan protects no branches of private repositories: use another"
                    " plan, or repoVisibility: public",
                )
            if answer.status == MISSING:
                return None
            checked(answer, doing)
            return attempted

        def act() -> bool:
            return done(self._http.send("PUT", path, body=_protection(rules)), doing)

        return settle(look, act, doing)

    def dispatch_workflow(
        self, repo: RepoId, workflow: str, ref: str, inputs: Mapping[str, str]
    ) -> None:
        """
        Start a workflow on a branch or tag. See the port.

        Raises:
            NotFoundError: No such repository or workflow.
            InvalidInputError: No such branch or tag, or inputs that it does not take.
        """
        path = self._path(repo, "actions", "workflows", workflow, "dispatches")
        body = {"ref": ref} | ({"inputs": dict(inputs)} if inputs else {})
        answer = self._http.send("POST", path, body=body)
        if answer.status == MISSING:
            raise NotFoundError(
                f"{repo} has no workflow {workflow}",
                hint="write the name of a file of .github/workflows",
            )
        if answer.status == INVALID:
            raise InvalidInputError("branchOrTagName", ref, f"is refused: {answer.text}")
        done(answer, f"start {workflow} of {repo}")

    def workflow_runs(
        self, repo: RepoId, workflow: str, commit: CommitSha
    ) -> tuple[WorkflowRun, ...]:
        """Return the runs of a workflow on a commit that somebody started. See the port."""
        path = self._path(repo, "actions", "workflows", workflow, "runs")
        query = {"event": _BY_HAND, "head_sha": commit}
        doing = f"list the runs of {workflow} of {repo}"
        return tuple(
            WorkflowRun(number_in(run, "id"), text_in(run, "url"), text_in(run, "html_url"))
            for run in self._pages(path, query, doing, inside="workflow_runs")
        )


def _protection(rules: ReviewRules) -> dict[str, Any]:
    return {
        "required_status_checks": {
            "strict": rules.is_up_to_date,
            "contexts": list(rules.checks),
        },
        "enforce_admins": rules.holds_admins,
        "required_pull_request_reviews": {
            "required_approving_review_count": rules.approvals,
            "require_code_owner_reviews": rules.by_code_owners,
            "dismiss_stale_reviews": rules.dismisses_stale,
            "require_last_push_approval": rules.after_last_push,
        },
        "restrictions": None,
        "required_conversation_resolution": rules.resolves_conversations,
        "required_linear_history": rules.is_linear,
    }
