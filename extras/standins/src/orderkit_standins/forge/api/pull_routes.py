"""
Endpoints of pull requests: open, list, show, change, close, merge.

Requested reviewers, assignees, labels, milestones and forks are not kept.

Called through their routes.
"""

from __future__ import annotations

from dataclasses import dataclass

from starlette.responses import Response

from orderkit_standins.forge import git_merge, git_read, pull_request_git
from orderkit_standins.forge.api.access import Access, Right, refuse_archived
from orderkit_standins.forge.api.branch_routes import own_branch
from orderkit_standins.forge.api.calls import ApiError, Call, Fields, json_answer, paged
from orderkit_standins.forge.api.merging import MergeRequest, Merging
from orderkit_standins.forge.api.routes import REPO, route
from orderkit_standins.forge.api.shapes import Json, Shapes
from orderkit_standins.forge.api.webhook_events import WebhookEvents
from orderkit_standins.forge.issues import Issue, Issues, NewIssue
from orderkit_standins.forge.pull_request_git import Pull
from orderkit_standins.forge.pulls import MergeJournal, Pulls
from orderkit_standins.forge.repositories import Repository
from orderkit_standins.forge.reviews import Reviews

NO_CHANGES = "Invalid PullRequest: There are no changes between the head and the base"
MERGED = "cannot change state of this pull request, it was already merged"
_STYLES = ("merge", "rebase", "rebase-merge", "squash", "fast-forward-only", "manually-merged")
"""What Gitea can be asked for; not all are merged with (``api.shapes.MERGE_STYLES``)."""
_PULL = f"{REPO}/pulls/{{number:number}}"


@dataclass(frozen=True, slots=True)
class PullRoutes:
    """Endpoints of pull requests."""

    access: Access
    issues: Issues
    pulls: Pulls
    journal: MergeJournal
    merging: Merging
    events: WebhookEvents
    shapes: Shapes
    reviews: Reviews

    @route("GET", f"{REPO}/pulls", "repository")
    def list_pulls(self, call: Call) -> Response:
        """Return a page of pull requests: ``?state=&base_branch=``, newest first."""
        repo = self.access.repository(call)
        state, base = call.query("state", "all"), call.query("base_branch")
        pulls = self.pulls.listed(repo.id, state=state, base=base)
        return paged(call, pulls, lambda pull: self._settled_shape(call, repo, pull))

    def _settled_shape(self, call: Call, repo: Repository, pull: Pull) -> Json:
        """Finish an interrupted merge; return the pull request as this caller sees it."""
        self.journal.settle(repo, pull)
        return self.shapes.pull(repo, pull.id, self.access.right_on(call.actor, repo))

    def _of_call(self, call: Call) -> tuple[Repository, Pull]:
        """Return the repository and pull request of the path; finish an interrupted merge."""
        repo = self.access.repository(call)
        pull = self.pulls.find(repo.id, call.path_number("number"))
        if pull is None:
            raise ApiError(404)
        return repo, self.journal.settle(repo, pull)

    @route("GET", _PULL, "repository")
    def show(self, call: Call) -> Response:
        return json_answer(self._settled_shape(call, *self._of_call(call)))

    @route("GET", f"{REPO}/pulls/{{base}}/{{head:path}}", "repository")
    def by_branches(self, call: Call) -> Response:
        """Return the *first* pull request ever between two branches, open or not."""
        repo = self.access.repository(call)
        head, base = own_branch(repo, call.param("head")), call.param("base")
        pull = self.pulls.first_between(repo.id, head=head, base=base)
        if pull is None:
            raise ApiError(404)
        return json_answer(self._settled_shape(call, repo, pull))

    @route("POST", f"{REPO}/pulls", "repository")
    def create(self, call: Call) -> Response:
        """Open a pull request; Gitea does not ask whether there is a difference."""
        repo, user = self.access.repository(call), call.user
        refuse_archived(repo)
        body = call.fields()
        head, base, title = (body.required(key) for key in ("head", "base", "title"))
        if head == base:
            raise ApiError(422, NO_CHANGES)
        head = own_branch(repo, head)
        _check_ends(repo, head, base)
        if self.access.right_on(call.actor, repo) < Right.WRITE:
            raise ApiError(403, "user is not a collaborator")
        _refuse_unsupported(body)
        new = NewIssue(user.id, title, body.text("body"), is_pull=True)
        pull = self.pulls.create(repo, new, head=head, base=base)
        git, tips = git_read.open_repository(repo.path), pull_request_git.tips(repo.path, pull)
        commits = git_merge.commits_between(git, tips.base, tips.head)
        self.reviews.note_push(pull.id, user.id, [str(commit.id) for commit in commits])
        shape = self._settled_shape(call, repo, pull)
        self.pulls.checks.start(pull.id)
        self.events.pull_changed(repo, pull.id, "opened", by=user)
        return json_answer(shape, 201)

    @route("PATCH", _PULL, "repository")
    def change(self, call: Call) -> Response:
        """Change title, body, state, base: what is given."""
        repo, pull = self._of_call(call)
        if call.user.id != pull.poster_id and (
            self.access.right_on(call.actor, repo) < Right.WRITE
        ):
            raise ApiError(403)
        body, issue = call.fields(), self.issues.by_id(pull.id)
        _refuse_unsupported(body)
        self._change_text(call, repo, issue, body)
        pull = self._change_state(call, repo, pull, body.optional("state", str))
        self._change_base(call, repo, pull, body.text("base"))
        return json_answer(self._settled_shape(call, repo, pull), 201)

    def _change_text(self, call: Call, repo: Repository, issue: Issue, body: Fields) -> None:
        title, text = body.text("title") or None, body.optional("body", str)
        self.issues.edit(issue, title=title, body=text)
        for key, old, new in (("title", issue.title, title), ("body", issue.body, text)):
            if new not in (None, old):
                changes = {key: {"from": old}}
                self.events.pull_changed(repo, issue.id, "edited", by=call.user, changes=changes)

    def _change_state(self, call: Call, repo: Repository, pull: Pull, state: str | None) -> Pull:
        """
        Close or reopen a pull request, if that is not its state already; tell webhooks.

        Raises:
            ApiError: 412, it is merged, or there is no such state.
        """
        if state is None:
            return pull
        if pull.merged:
            raise ApiError(412, MERGED)
        if state not in ("open", "closed"):
            raise ApiError(412, f"unknown state: {state}")
        closed = state == "closed"
        if closed == pull.closed:
            return pull
        changed = self.pulls.set_closed(repo, pull, closed=closed)
        action = "closed" if closed else "reopened"
        self.events.pull_changed(repo, pull.id, action, by=call.user)
        return changed

    def _change_base(self, call: Call, repo: Repository, pull: Pull, base: str) -> None:
        if not base or pull.merged or base == pull.base:
            return
        if git_read.branch_commit(git_read.open_repository(repo.path), base) is None:
            raise ApiError(404, f"new base '{base}' not exist")
        if pull.closed:
            raise ApiError(422, f"issue is closed [id: {pull.id}, repo_id: {repo.id}]")
        self.pulls.retarget(repo, pull, base)
        self.reviews.note_retarget(pull.id, call.user.id)
        changes = {"ref": {"from": pull.base}}
        self.events.pull_changed(repo, pull.id, "edited", by=call.user, changes=changes)

    @route("POST", f"{_PULL}/merge", "repository")
    def merge(self, call: Call) -> Response:
        """Merge a pull request; success is 200 without a body."""
        user = call.user
        refuse_archived(self.access.repository(call))
        body = call.fields()
        style = body.required("Do")
        if style not in _STYLES:
            raise ApiError(422, "[Do]: In")
        body.refuse_unsupported("merge_when_checks_succeed", "delete_branch_after_merge")
        repo, pull = self._of_call(call)
        request = MergeRequest(
            doer=user,
            style=style,
            title=body.text("MergeTitleField").strip(),
            text=body.text("MergeMessageField").strip(),
            head=body.text("head_commit_id"),
            force=body.flag("force_merge"),
        )
        self.merging.merge(repo, pull, request)
        return Response()


def _refuse_unsupported(body: Fields) -> None:
    body.refuse_unsupported("labels", "assignee", "assignees", "reviewers", "milestone")
    body.refuse_unsupported("content_version")  # ignored, an edit would overwrite another


def _check_ends(repo: Repository, head: str, base: str) -> None:
    git = git_read.open_repository(repo.path)
    for name in (head, base):
        if git_read.branch_commit(git, name) is None:
            raise ApiError(404, f'ref "{name}" does not exist')
