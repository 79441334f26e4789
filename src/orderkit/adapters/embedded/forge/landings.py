"""
The end of a pull request: its merge is noted before the base branch moves, and after.

Before a merge moves the base branch, the commit it will point to is kept as the pull
request's *landing*. A process killed in between leaves a landing that the branch itself
judges: the base contains the commit, so the pull request is merged; it does not, so the
merge never happened. `repair` judges all at start, `settle` one when it is read.

Called by ``merging``, by the endpoints and by ``EmbeddedForge``.
"""

from __future__ import annotations

import json

from orderkit.adapters.embedded.forge import gitmerge, gitread, pullgit
from orderkit.adapters.embedded.forge.issues import Issues
from orderkit.adapters.embedded.forge.pullgit import Landed, Pull
from orderkit.adapters.embedded.forge.pulls import PullFilter, Pulls
from orderkit.adapters.embedded.forge.registry import RepoRow
from orderkit.adapters.embedded.forge.store import Store, timestamp


class Landings:
    """Merges of pull requests in the store."""

    def __init__(self, store: Store, issues: Issues, pulls: Pulls) -> None:
        self._store, self._issues, self._pulls = store, issues, pulls

    def begin(self, repo: RepoRow, pull: Pull, landed: Landed) -> None:
        """Note what the base branch is about to point to. Hold the repository's lock."""
        note = json.dumps({"commit": landed.commit, "by": landed.by, "at": landed.at})
        self._store.change(
            "UPDATE pulls SET landing = ?, merge_base = ? WHERE issue_id = ?",
            note,
            pullgit.merge_base(repo.path, pull),
            pull.id,
        )

    def abandon(self, pull: Pull) -> None:
        """Forget a landing: the base branch did not move."""
        self._store.change("UPDATE pulls SET landing = '' WHERE issue_id = ?", pull.id)

    def finish(self, repo: RepoRow, pull: Pull, landed: Landed) -> Pull:
        """Make a pull request merged and closed, both or nothing."""
        issue = self._issues.find(repo.id, pull.number)
        with self._store.transaction():
            self._store.change(
                "UPDATE pulls SET landing = '', merge_commit = ?, merged = ?, merger_id = ?"
                " WHERE issue_id = ?",
                landed.commit,
                landed.at,
                landed.by,
                pull.id,
            )
            self._store.change("DELETE FROM auto_merges WHERE issue_id = ?", pull.id)
            if issue is not None:
                self._issues.edit(issue, closed=True)
        return self._pulls.by_id(pull.id)

    def detect(self, repo: RepoRow, base: str, before: str, *, by: int) -> list[Pull]:
        """
        Mark as merged what a push brought into a base branch, and return it.

        Call only where the repository wants it (``autodetect_manual_merge``).
        """
        git = gitread.open_repository(repo.path)
        found = []
        for pull in self._pulls.index(repo.id, PullFilter(state="open", base=base)):
            tips = pullgit.tips(repo.path, pull)
            if tips.head and gitmerge.is_ancestor(git, tips.head, tips.base):
                start = gitmerge.merge_base_of(git, before, tips.head) if before else ""
                self._pulls.note_merge_base(pull, start or tips.head)
                commit = gitmerge.merge_between(git, tips.head, tips.base) or tips.head
                found.append(self.finish(repo, pull, Landed(commit, by, timestamp())))
        return found

    def settle(self, repo: RepoRow, pull: Pull) -> Pull:
        """Finish or forget an interrupted merge, unless one is going on right now."""
        if pull.landing is None:
            return pull
        lock = self._pulls.lock(repo.id)
        if not lock.acquire(blocking=False):
            return pull
        try:
            return self._judge(repo, self._pulls.by_id(pull.id))
        finally:
            lock.release()

    def _judge(self, repo: RepoRow, pull: Pull) -> Pull:
        if pull.landing is None or pull.merged:
            return pull
        git = gitread.open_repository(repo.path)
        base = gitread.branch_commit(git, pull.base)
        if base is not None and gitmerge.is_ancestor(git, pull.landing.commit, str(base.id)):
            return self.finish(repo, pull, pull.landing)
        self.abandon(pull)
        return self._pulls.by_id(pull.id)

    def repair(self, repo: RepoRow) -> None:
        """Finish what a killed process left in the middle. Call at start."""
        for pull in self._pulls.index(repo.id, PullFilter()):
            self._judge(repo, pull)
        self._pulls.catch_up(repo)
