"""
Reviews of pull requests, and the events that matter to them: pushes and new base branches.

As in Gitea, only the last approval or request for changes of a reviewer is official, and only if
the reviewer may write at that moment; a later change of the base branch leaves it official.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

from orderkit_standins.forge.store import Store, fine_timestamp, load

VERDICTS = ("APPROVED", "REQUEST_CHANGES")


@dataclass(frozen=True, slots=True)
class Review:
    """A review; `sha` is the commit that was looked at."""

    id: int
    reviewer_id: int
    state: str
    body: str
    sha: str
    official: bool
    dismissed: bool
    submitted: str


@dataclass(frozen=True, slots=True)
class PullEvent:
    """``pull_push`` with its commits, or ``change_target_branch``, as Gitea's timeline has it."""

    id: int
    doer_id: int
    kind: str
    body: str
    created: str


class Reviews:
    """The reviews and events of one forge."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def add(
        self, pull_id: int, reviewer_id: int, *, state: str, body: str, sha: str, official: bool
    ) -> Review:
        """Add a review; an earlier verdict of the same reviewer is official no more."""
        with self._store.transaction():
            if state in VERDICTS:
                self._store.change(
                    "UPDATE reviews SET official = 0 WHERE issue_id = ? AND reviewer_id = ?",
                    pull_id,
                    reviewer_id,
                )
            self._store.insert(
                "reviews",
                issue_id=pull_id,
                reviewer_id=reviewer_id,
                state=state,
                body=body,
                sha=sha,
                official=official,
                submitted=fine_timestamp(),
            )
            return self.of_pull(pull_id)[-1]

    def of_pull(self, pull_id: int) -> list[Review]:
        """Return the reviews of a pull request, oldest first."""
        rows = self._store.rows("SELECT * FROM reviews WHERE issue_id = ? ORDER BY id", pull_id)
        return [load(Review, row) for row in rows]

    def approvals(self, pull_id: int) -> int:
        """Count the approvals that a rule of the base branch counts."""
        return sum(
            review.state == "APPROVED" and review.official and not review.dismissed
            for review in self.of_pull(pull_id)
        )

    def dismiss(self, review: Review) -> None:
        """Let a review count no more."""
        self._store.update("reviews", review.id, dismissed=True)

    def note_push(self, pull_id: int, doer_id: int, commits: Sequence[str]) -> None:
        """Note who pushed commits."""
        body = json.dumps({"is_force_push": False, "commit_ids": list(commits)})
        self._note(pull_id, doer_id, "pull_push", body)

    def note_retarget(self, pull_id: int, doer_id: int) -> None:
        """Note who changed the base branch; as in Gitea, all pushers are forgotten."""
        sql = "DELETE FROM pull_events WHERE issue_id = ? AND kind = 'pull_push'"
        self._store.change(sql, pull_id)
        self._note(pull_id, doer_id, "change_target_branch", "")

    def _note(self, pull_id: int, doer_id: int, kind: str, body: str) -> None:
        ids = {"issue_id": pull_id, "doer_id": doer_id}
        self._store.insert("pull_events", **ids, kind=kind, body=body, created=fine_timestamp())

    def events(self, pull_id: int) -> list[PullEvent]:
        """Return the events of a pull request, oldest first."""
        rows = self._store.rows("SELECT * FROM pull_events WHERE issue_id = ? ORDER BY id", pull_id)
        return [load(PullEvent, row) for row in rows]
