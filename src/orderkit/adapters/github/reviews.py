"""
Reviews of pull requests on GitHub, given and required, rights of people, and workflow runs.

`GitHubReviews` reads reviews and events of pull requests, and rights of people. GitHub does not say
which review counts. Here the last verdict of each reviewer counts, if they may write now and it was
not dismissed.

`Workflows` requires reviews and starts workflow runs, for templates.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ground.errors import InvalidInputError, NotFoundError, RefusedError
from ground.names import CommitSha, RepoId
from orderkit.adapters.forges.answers import settle
from orderkit.adapters.forges.calls import (
    FORBIDDEN,
    INVALID,
    MISSING,
    Found,
    checked,
    done,
    number_in,
    object_in,
    text_in,
    user_in,
)
from orderkit.adapters.forges.transport import path_of
from orderkit.adapters.github.pulls import GitHubPulls
from orderkit.adapters.github.transport import GitHubCalls
from orderkit.ports.forge import ForgeUser, PullEvent, Review
from orderkit.ports.pulls import ReviewState
from orderkit.ports.workflows import ForgeWorkflows, ReviewRules, WorkflowRun

_STATES: Mapping[str, ReviewState] = {
    "APPROVED": "approved",
    "CHANGES_REQUESTED": "rejected",
    "DISMISSED": "approved",
}
_EVENTS: Mapping[ReviewState, str] = {"approved": "APPROVE", "rejected": "REQUEST_CHANGES"}
_LEVELS = {"maintain": "write", "triage": "read"}
_WRITERS = ("write", "admin", "owner")
_APP = "[bot]"
_PUSHES = ("push", "force_push", "branch_creation")


class GitHubReviews(GitHubPulls):
    """The part of the port about reviews."""

    def reviews(self, repo: RepoId, number: int) -> tuple[Review, ...]:
        """Return approvals and rejections, oldest first; see the port."""
        path = self._path(repo, "pulls", str(number), "reviews")
        entries = sorted(
            self._pages(path, {}, f"read the reviews of {repo}#{number}"),
            key=lambda review: int(review.get("id") or 0),
        )
        entries = [entry for entry in entries if entry.get("state") in _STATES and entry["user"]]
        last = {user_in(entry).id: entry.get("id") for entry in entries}
        may_write: dict[str, bool] = {}
        reviews = []
        for entry in entries:
            reviewer, is_dismissed = user_in(entry), entry.get("state") == "DISMISSED"
            counts = last[reviewer.id] == entry.get("id") and not is_dismissed
            if counts and reviewer.login not in may_write:
                found = self.user_with_right(repo, reviewer.login)
                may_write[reviewer.login] = found is not None and found[1] in _WRITERS
            review = Review(
                reviewer=reviewer,
                state=_STATES[str(entry.get("state"))],
                commit=CommitSha(str(entry.get("commit_id") or "")),
                official=counts and may_write[reviewer.login],
                when=str(entry.get("submitted_at") or ""),
                dismissed=is_dismissed,
            )
            reviews.append(review)
        return tuple(reviews)

    def review(
        self, repo: RepoId, number: int, state: ReviewState, *, head: CommitSha, text: str
    ) -> None:
        """
        Approve or reject a pull request at a head; see the port.

        Raises:
            RefusedError: We opened it ourselves, or it is not open.
            NotFoundError: No such pull request, or we may not see it.
        """
        doing, login = f"review {repo}#{number}", self.user().lower()
        path = self._path(repo, "pulls", str(number), "reviews")
        body = {"event": _EVENTS[state], "body": text or state, "commit_id": head}
        wanted = next(name for name, value in _STATES.items() if value == state)

        def look(_: bool) -> bool | None:  # noqa: FBT001  settle's shape
            found = self._pages(path, {}, doing)
            own = [r for r in found if user_in(r).login.lower() == login]
            own = [r for r in own if r.get("state") in _STATES]
            is_there = own and (own[-1].get("state"), own[-1].get("commit_id")) == (wanted, head)
            return True if is_there else None

        def act() -> bool:
            answer = self._http.send("POST", path, body=body)
            if answer.status == INVALID:
                raise RefusedError(f"{doing} is refused: {answer.text}")
            return done(answer, doing)

        settle(look, act, doing)

    def pull_events(self, repo: RepoId, number: int) -> tuple[PullEvent, ...]:
        """Return pushes to its branch and changes of its base, oldest first; see the port."""
        pull = self.pull(repo, number)
        if pull is None:
            raise NotFoundError(f"{repo} has no pull request {number}")
        doing = f"read who pushed to {repo}#{number}"
        query = {"ref": f"refs/heads/{pull.head}", "direction": "asc"}
        moves = self._cursor_pages(self._path(repo, "activity"), query, doing)
        events = [
            PullEvent(
                kind="push",
                by=_actor(move),
                when=str(move.get("timestamp") or ""),
                commits=self._pushed(repo, move, pull.base),
            )
            for move in moves
            if move.get("activity_type") in _PUSHES and move.get("actor")
        ]
        path = self._path(repo, "issues", str(number), "timeline")
        for event in self._pages(path, {}, doing):
            if event.get("event") == "base_ref_changed" and event.get("actor"):
                when = str(event.get("created_at") or "")
                events.append(PullEvent("retarget", by=_actor(event), when=when))
        return tuple(sorted(events, key=lambda event: event.when))

    def _pushed(self, repo: RepoId, move: Found, base: str) -> tuple[CommitSha, ...]:
        """Return the commits that a push added."""
        before, after = str(move.get("before") or ""), str(move.get("after") or "")
        # zeros: the push made the branch, and added what the base lacks
        start = base if not before.strip("0") else before
        try:
            return tuple(commit.id for commit in self.compare(repo, start, after))
        except NotFoundError:  # replaced by force, and removed since
            return (CommitSha(after),)

    def user_with_right(self, repo: RepoId, login: str) -> tuple[ForgeUser, str] | None:
        """Return somebody and their right on a repository, None for an unknown login."""
        answer = self._http.get(self._path(repo, "collaborators", login, "permission"))
        # the account of an App is no collaborator: its rights are the App's, not told here
        if answer.status == MISSING and login.endswith(_APP):
            app = self._optional(path_of("users", login), f"look for {login}")
            return (user_in({"user": app}), "none") if app else None
        if answer.status == MISSING:
            return None
        doing = f"read the right of {login} on {repo}"
        shape = object_in(checked(answer, doing), doing)
        level = text_in(shape, "permission")
        level = _LEVELS.get(level, level)
        if level == "admin" and self._owns(repo.owner, login):
            level = "owner"
        return user_in(shape), level

    def _owns(self, org: str, login: str) -> bool:
        answer = self._http.get(path_of("orgs", org, "memberships", login))
        return answer.ok and object_in(answer, "read a membership").get("role") == "admin"


def _actor(entry: Found) -> ForgeUser:
    return user_in({"user": entry["actor"]})


_BY_HAND = "workflow_dispatch"


class Workflows(GitHubCalls):
    """The part of the port that only GitHub has; see ``ports.workflows``."""

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
