"""
Tell webhooks what happened: each method here is called after a change was made.

They return at once and raise nothing: a payload is built only if an active webhook receives the
event, and sent by ``deliveries``. An exception in here is logged, never the writer's problem.

Called by ``api.branchupdates``, ``api.merging`` and the endpoints that change something.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import islice

import pygit2
from pygit2.enums import DeltaStatus, SortMode

from orderkit.adapters.embedded.forge import gitread
from orderkit.adapters.embedded.forge.accounts import Account
from orderkit.adapters.embedded.forge.api.access import Right
from orderkit.adapters.embedded.forge.api.shapes import Json, Shapes
from orderkit.adapters.embedded.forge.deliveries import Deliveries, prepared
from orderkit.adapters.embedded.forge.issues import Comment, Issue
from orderkit.adapters.embedded.forge.repositories import Repository
from orderkit.adapters.embedded.forge.statuses import Status
from orderkit.adapters.embedded.forge.webhooks import Webhooks

log = logging.getLogger(__name__)

COMMITS_SHOWN = 5
"""A push names its newest commits; ``total_commits`` counts them all."""
NEW_BRANCH_MAX = 10
"""A new branch counts at most these, of those that no other branch has."""
NO_COMMIT = "0" * 40


@dataclass(frozen=True, slots=True)
class ReferenceMove:
    """One reference that moved; `before` or `after` is `NO_COMMIT` where there is nothing."""

    repo: Repository
    ref: str
    before: str
    after: str

    @property
    def name(self) -> str:
        return self.ref.removeprefix(gitread.HEADS).removeprefix(gitread.TAGS)

    @property
    def is_branch(self) -> bool:
        return not self.ref.startswith(gitread.TAGS)


@dataclass(frozen=True, slots=True)
class WebhookEvents:
    """Builds payloads and hands them to the deliveries."""

    webhooks: Webhooks
    deliveries: Deliveries
    shapes: Shapes

    def reference_moved(self, move: ReferenceMove, *, by: Account) -> None:
        """Tell that a branch or tag was created, moved or deleted."""
        appeared, gone = move.before == NO_COMMIT, move.after == NO_COMMIT
        kind = {"ref": move.name, "ref_type": "branch" if move.is_branch else "tag"}

        def created() -> Json:
            return {
                "sha": move.after,
                **kind,
                "repository": self._repository(move.repo, Right.NONE),
            }

        def pushed() -> Json:
            return {**self._push(move), "pusher": self.shapes.account(by)}

        events: list[tuple[str, Callable[[], Json]]] = []
        if not gone or not move.is_branch:
            events.append(("push", pushed))
        if appeared:  # Gitea tells of a branch before its push, of a tag after
            events.insert(0 if move.is_branch else len(events), ("create", created))
        if gone:
            events.append(("delete", lambda: {**kind, "pusher_type": "user"}))
        for event_type, payload in events:
            self._tell(move.repo, event_type, payload, by, ref=move.ref)

    def repository_changed(self, repo: Repository, action: str, *, by: Account) -> None:
        """A repository was ``created`` or is about to be ``deleted``; its row must still exist."""
        self._tell(
            repo,
            "repository",
            lambda: {"action": action, "organization": self.shapes.account_by_id(repo.owner_id)},
            by,
        )

    def status_set(
        self, repo: Repository, commit: pygit2.Commit, status: Status, *, by: Account
    ) -> None:
        """A commit got a status."""

        def payload() -> Json:
            shape = self.shapes.status(repo, status)
            commit_shape = self._commit(repo, commit)
            return shape | {"commit": commit_shape, "sha": status.sha, "state": status.state}

        self._tell(repo, "status", payload, by)

    def pull_changed(
        self,
        repo: Repository,
        pull_id: int,
        action: str,
        *,
        by: Account,
        event_type: str = "pull_request",
        changes: Json | None = None,
    ) -> None:
        """
        A pull request was opened, edited, closed, ….

        Args:
            repo: Its repository.
            pull_id: The id of its issue.
            action: ``opened``, ``edited``, ``closed``, ``reopened``, ``synchronized``.
            by: Who did it.
            event_type: Which switch of a webhook decides: ``pull_request``, ``pull_request_sync``.
            changes: What an edit replaced.
        """

        def payload() -> Json:
            shape = self.shapes.pull(repo, pull_id, Right.ADMIN)
            replaced = {} if changes is None else {"changes": changes}
            return {
                "action": action,
                "number": shape["number"],
                **replaced,
                "pull_request": shape,
            }

        self._tell(repo, event_type, payload, by)

    def issue_changed(self, repo: Repository, issue: Issue, action: str, *, by: Account) -> None:
        """An issue or pull request was opened, edited, closed or reopened as an issue."""
        if issue.is_pull:
            self.pull_changed(repo, issue.id, action, by=by)
            return
        self._tell(
            repo,
            "issues",
            lambda: {
                "action": action,
                "number": issue.number,
                "issue": self.shapes.issue(repo, issue),
            },
            by,
        )

    def commented(self, repo: Repository, comment: Comment, action: str, *, by: Account) -> None:
        """A comment was ``created``, ``edited`` or ``deleted``."""
        issue = self.shapes.issues.by_id(comment.issue_id)

        def payload() -> Json:
            shape = {
                "action": action,
                "issue": self.shapes.issue(repo, issue),
                "comment": self.shapes.comment(repo, comment),
                "is_pull": issue.is_pull,
            }
            if issue.is_pull:
                shape["pull_request"] = self.shapes.pull(repo, issue.id, Right.ADMIN)
            return shape

        self._tell(repo, "pull_request_comment" if issue.is_pull else "issue_comment", payload, by)

    def _tell(
        self,
        repo: Repository,
        event_type: str,
        payload: Callable[[], Json],
        by: Account,
        *,
        ref: str = "",
    ) -> None:
        try:
            receivers = self.webhooks.receivers(repo, event_type, ref)
            if receivers:
                common = {"repository": self._repository(repo), "sender": self.shapes.account(by)}
                text = json.dumps(common | payload(), indent=2, ensure_ascii=False)
                for webhook in receivers:
                    self.deliveries.add(prepared(webhook, event_type, text))
        except Exception:
            log.exception("webhooks of %s were not told of %s", repo.full_name, event_type)

    def _repository(self, repo: Repository, right: Right = Right.ADMIN) -> Json:
        return self.shapes.repository(repo, right)

    def _commit(self, repo: Repository, commit: pygit2.Commit) -> Json:
        return {**self.shapes.pushed_commit(repo, commit), **_changed_files(commit)}

    def _push(self, move: ReferenceMove) -> Json:
        git = gitread.open_repository(move.repo.path)
        head = None if move.after == NO_COMMIT else git[move.after].peel(pygit2.Commit)
        commits = _new_commits(git, move, head) if head is not None and move.is_branch else []
        return {
            "ref": move.ref,
            "before": move.before,
            "after": move.after,
            "compare_url": f"{self.shapes.root_url}/{_comparison(move, commits)}",
            "commits": [self._commit(move.repo, commit) for commit in commits[:COMMITS_SHOWN]],
            "total_commits": len(commits),
            "head_commit": None if head is None else self._commit(move.repo, head),
        }


def _changed_files(commit: pygit2.Commit) -> dict[str, list[str]]:
    changed: dict[str, list[str]] = {"added": [], "removed": [], "modified": []}
    if len(commit.parents) <= 1:
        for delta in gitread.changes(commit).deltas:
            key = {DeltaStatus.ADDED: "added", DeltaStatus.DELETED: "removed"}.get(delta.status)
            changed[key or "modified"].append(delta.new_file.path)
    return changed


def _new_commits(
    git: pygit2.Repository, move: ReferenceMove, head: pygit2.Commit
) -> list[pygit2.Commit]:
    """Return the commits of a push, newest first."""
    walker = git.walk(head.id, SortMode.TOPOLOGICAL)
    if move.before != NO_COMMIT:
        walker.hide(pygit2.Oid(hex=move.before))
        return list(walker)
    for name in gitread.branch_names(git):
        tip = gitread.branch_commit(git, name)
        if name != move.name and tip is not None:
            walker.hide(tip.id)
    return list(islice(walker, NEW_BRANCH_MAX))


def _comparison(move: ReferenceMove, commits: Sequence[pygit2.Commit]) -> str:
    """Return the path of the comparison page, empty where there is nothing to compare."""
    old = move.before
    if move.is_branch and old == NO_COMMIT:
        if commits and commits[-1].parent_ids:
            old = str(commits[-1].parent_ids[0])
        elif move.name != move.repo.default_branch:
            old = move.repo.default_branch
    if move.after == NO_COMMIT or (move.is_branch and old == NO_COMMIT):
        return ""
    return f"{move.repo.full_name}/compare/{old}...{move.after}"
