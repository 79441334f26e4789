"""
Say how two commits of a repository are related.

While a flow waits for a commit, other people commit too: a later commit that contains it counts as
well. A history that somebody replaced has nothing in common with the one before.
"""

from __future__ import annotations

from ground.errors import NotFoundError, TooManyCommitsError
from ground.names import RepoId
from orderkit.ports.forge import Forge


class Ancestry:
    """Ancestry of one repository's commits; asks the forge each question once."""

    def __init__(self, forge: Forge, repository: RepoId) -> None:
        self._forge, self._repository = forge, repository
        self._known: dict[tuple[str, str], bool | None] = {}

    def contains(self, revision: str, commit: str) -> bool:
        """
        Say whether `revision` is `commit` or has it among its ancestors.

        A revision that is not a commit of the repository (Argo CD shows a branch's name where it
        could not read it) contains nothing.
        """
        if revision == commit:
            return True
        if len(revision) != len(commit):
            return False
        # Gitea lists no commits between unrelated histories, whichever comes first
        return self.has_more(commit, revision) is False and bool(self.has_more(revision, commit))

    def are_unrelated(self, one: str, other: str) -> bool:
        """
        Say whether two commits that the repository has share no history.

        Gitea shows no commits between those, in neither direction; GitHub finds nothing to compare.
        """
        return one != other and not (self.has_more(one, other) or self.has_more(other, one))

    def has_more(self, commit: str, than: str) -> bool | None:
        """Say whether a commit has ancestors that another lacks; None: nothing can be compared."""
        pair = commit, than
        if pair not in self._known:
            self._known[pair] = self._ask(commit, than)
        return self._known[pair]

    def _ask(self, commit: str, than: str) -> bool | None:
        try:
            return bool(self._forge.compare(self._repository, than, commit))
        except TooManyCommitsError:
            return True
        except NotFoundError:
            return None
