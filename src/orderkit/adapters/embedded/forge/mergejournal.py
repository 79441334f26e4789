"""
Merges that survive a kill: each is noted before the base branch moves, and finished after.

A process killed in between leaves a note that the branch itself judges: the base contains the
commit, so the pull request is merged; it does not, so the merge never happened. `repair` judges
all at start, `settle` one when it is read.

Called by ``api.merging``, by the endpoints of pull requests and by ``EmbeddedForge``.
"""

from __future__ import annotations

from dataclasses import dataclass

from orderkit.adapters.embedded.forge import gitmerge, gitread, pullgit
from orderkit.adapters.embedded.forge.pullgit import MergeRecord, Pull
from orderkit.adapters.embedded.forge.pulls import PullFilter, Pulls
from orderkit.adapters.embedded.forge.repositories import Repository


@dataclass(frozen=True, slots=True)
class MergeJournal:
    """Merges of pull requests in progress."""

    pulls: Pulls

    def begin(self, repo: Repository, pull: Pull, record: MergeRecord) -> None:
        """Note what the base branch is about to point to. Hold the repository's lock."""
        self.pulls.note_merge_base(pull, pullgit.merge_base(repo.path, pull))
        self.pulls.note_merge_in_progress(pull, record)

    def abandon(self, pull: Pull) -> None:
        """Forget a merge: the base branch did not move."""
        self.pulls.note_merge_in_progress(pull, None)

    def settle(self, repo: Repository, pull: Pull) -> Pull:
        """Finish or forget an interrupted merge, unless one is going on right now."""
        if pull.merge_in_progress is None:
            return pull
        lock = self.pulls.lock(repo.id)
        if not lock.acquire(blocking=False):
            return pull
        try:
            return self._judge(repo, self.pulls.by_id(pull.id))
        finally:
            lock.release()

    def _judge(self, repo: Repository, pull: Pull) -> Pull:
        record = pull.merge_in_progress
        if record is None or pull.merged:
            return pull
        git = gitread.open_repository(repo.path)
        base = gitread.branch_commit(git, pull.base)
        if base is not None and gitmerge.is_ancestor(git, record.commit, str(base.id)):
            return self.pulls.note_merged(pull, record)
        self.abandon(pull)
        return self.pulls.by_id(pull.id)

    def repair(self, repo: Repository) -> None:
        """Finish what a killed process left in the middle. Call at start."""
        for pull in self.pulls.listed(repo.id, PullFilter()):
            self._judge(repo, pull)
        self.pulls.catch_up(repo)
