"""
Say whether one commit of a repository contains another.

While a flow waits for a commit, other people commit too: a later commit that contains it counts as
well.
"""

from __future__ import annotations

from ground.errors import NotFoundError
from ground.names import RepoId
from orderkit.ports.forge import Forge


class Ancestry:
    """Ancestry of one repository's commits; asks the forge each question once."""

    def __init__(self, forge: Forge, repository: RepoId) -> None:
        self._forge, self._repository = forge, repository
        self._known: dict[tuple[str, str], bool] = {}

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
        pair = revision, commit
        if pair not in self._known:
            self._known[pair] = self._ask(revision, commit)
        return self._known[pair]

    def _ask(self, revision: str, commit: str) -> bool:
        compare = self._forge.compare
        try:
            if compare(self._repository, revision, commit):
                return False
            # Gitea lists no commits between unrelated histories, whichever comes first
            return bool(compare(self._repository, commit, revision))
        except NotFoundError:
            return False
