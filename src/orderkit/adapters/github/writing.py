"""
Commit files on GitHub: one commit on the head that was read, or none.

The head is read, every entry is compared with its tree, and GitHub compares the head again when it
commits (``createCommitOnBranch``, ``expectedHeadOid``): one request, signed by GitHub. A change of
an executable is made of git objects and a branch update without force.
The first commit of an empty repository is pushed: GitHub's API cannot make one of several files.
Background work is pushed too, because no limit of content counts it.
``forges.writing`` has the rounds. A request that GitHub carries out late finds another head.
"""

from __future__ import annotations

import base64
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from ground.errors import (
    ConflictError,
    MovedError,
    NotFoundError,
    OrderkitError,
    RemoteError,
    TooFastError,
    UnreachableError,
)
from ground.names import CommitSha, RepoId
from orderkit.adapters.forges.answers import GarbledError, LostAnswerError, ServerError, archived
from orderkit.adapters.forges.calls import (
    CONFLICT,
    INVALID,
    checked,
    object_in,
    text_in,
)
from orderkit.adapters.forges.pushing import Push, PushedWrite, StaleHeadError, push_commit
from orderkit.adapters.forges.writing import SharedWriting, WriteFailure
from orderkit.adapters.github.repositories import Repositories
from orderkit.adapters.github.rulesets import Rulesets
from orderkit.ports.forge import EXECUTABLE, PLAIN, FileChange, Operation, Written

COMMIT = """mutation($input:CreateCommitOnBranchInput!)
{createCommitOnBranch(input:$input){commit{oid}}}"""


class Writing(Repositories, Rulesets, SharedWriting):
    """The part of the port that commits files."""

    def _new_write(
        self, repo: RepoId, changes: Sequence[FileChange], operation: Operation, branch: str
    ) -> _Write:
        return _Write(self, repo, changes, operation, branch)

    def note_write(self, repo: RepoId, branch: str, old: CommitSha, new: CommitSha) -> None:
        """Remember that a head was replaced, in case GitHub shows the old one for a while."""
        self._replaced[repo, branch, old] = (new, time.monotonic())
        while len(self._replaced) > 500:  # noqa: PLR2004  a bound, whatever is written
            del self._replaced[next(iter(self._replaced))]


@dataclass(slots=True)
class _Write(PushedWrite[Writing]):
    """One write to GitHub."""

    way_past: ClassVar[str] = "let our account bypass it"

    @property
    def reads_first(self) -> bool:
        """True: GitHub compares the head of the branch."""
        return True

    def _send(self, changes: Sequence[FileChange], *, last: bool) -> Written | WriteFailure:  # noqa: ARG002  as the others
        if (outcome := self._push(changes)) is not None:
            return outcome
        self.request_sent, self.refused = True, False
        self.doubtful.append(frozenset(change.path for change in changes))
        try:
            commit = self._commit(changes)
        except (LostAnswerError, ServerError, GarbledError) as error:
            return self._find_commit() or WriteFailure(error, again=True)
        except OrderkitError as error:
            return self._refused(error)
        self._remember(changes, commit)
        return Written(commit, changed=True, parent=self.head)

    def _refused(self, error: OrderkitError) -> Written | WriteFailure:
        """Return what an error means after which our request is not under way any more."""
        if isinstance(error, (StaleHeadError, UnreachableError, MovedError)):
            self.doubtful.pop()  # GitHub's own word, or never sent, or a redirect instead
            return WriteFailure(error, again=not isinstance(error, MovedError))
        # A proxy may have refused although GitHub carried the request out: always read.
        found = self._find_commit()
        self.doubtful.pop()
        if found is not None:
            return found
        is_limit = isinstance(error, TooFastError)
        return WriteFailure(error, again=False) if is_limit else self._judge(error)

    def _commit(self, changes: Sequence[FileChange]) -> CommitSha:
        """
        Make the commit, by what the head and the changes allow.

        Raises:
            StaleHeadError: The branch moved; nothing was written.
            OrderkitError: As the class says.
        """
        message = self._message({change.path for change in changes}, int(time.time()))
        # GitHub's API cannot make a first commit of several files
        if self.head is None:
            return push_commit(self.forge, Push(self.repo, self.branch, None, changes, message))
        special = self.forge.special_files(self.repo, self.head)
        # createCommitOnBranch takes no modes of files
        if any(c.data is not None and (c.executable or c.path in special) for c in changes):
            return self._commit_objects(self.head, changes, message)
        return self._commit_contents(self.head, changes, message)

    def _commit_contents(
        self, head: CommitSha, changes: Sequence[FileChange], message: str
    ) -> CommitSha:
        headline, _, body = message.partition("\n")
        additions = [
            {"path": str(change.path), "contents": base64.b64encode(change.data).decode()}
            for change in changes
            if change.data is not None
        ]
        deletions = [{"path": str(change.path)} for change in changes if change.data is None]
        branch = {"repositoryNameWithOwner": str(self.repo), "branchName": self.branch}
        commit = {
            "branch": branch,
            "message": {"headline": headline, "body": body.strip()},
            "fileChanges": {"additions": additions, "deletions": deletions},
            # GitHub compares the head when it commits
            "expectedHeadOid": head,
        }
        doing = f"write to {self.repo}"
        data = self.forge.graphql(self.repo.owner, COMMIT, {"input": commit}, doing)
        made = data.get("createCommitOnBranch") or {}
        return CommitSha(text_in(made.get("commit"), "oid"))

    def _commit_objects(
        self, head: CommitSha, changes: Sequence[FileChange], message: str
    ) -> CommitSha:
        """Make the commit of git objects, which keep the modes of files."""
        base = self._git("GET", f"commits/{head}").get("tree")
        tree = {"base_tree": text_in(base, "sha"), "tree": [self._item(c, head) for c in changes]}
        body = {
            "message": message,
            "tree": text_in(self._git("POST", "trees", tree), "sha"),
            "parents": [head],
        }
        commit = text_in(self._git("POST", "commits", body), "sha")
        # without force: the update fails if the branch has moved
        self._git("PATCH", f"refs/heads/{self.branch}", {"sha": commit, "force": False})
        return CommitSha(commit)

    def _item(self, change: FileChange, head: CommitSha) -> dict[str, Any]:
        special = self.forge.special_files(self.repo, head).get(change.path)
        is_executable = change.executable or (special is not None and special.mode & 0o111)
        mode = EXECUTABLE if is_executable else PLAIN
        item: dict[str, Any] = {"path": str(change.path), "mode": f"{mode:06o}", "type": "blob"}
        if change.data is None:
            return {**item, "sha": None}
        content = base64.b64encode(change.data).decode()
        blob = self._git("POST", "blobs", {"content": content, "encoding": "base64"})
        return {**item, "sha": text_in(blob, "sha")}

    def _git(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> Any:
        address = self.forge._path(self.repo, "git", *path.split("/", 1))  # noqa: SLF001  one module
        doing = f"write to {self.repo}"
        if method == "GET":
            return object_in(checked(self.forge.http.get(address), doing), doing)
        answer = self.forge.http.send(method, address, body=body)
        if method == "PATCH" and answer.status in (CONFLICT, INVALID):
            raise StaleHeadError(f"{doing}: {answer.text}", hint="repeat the command")
        return object_in(checked(answer, doing), doing)

    def _judge(self, problem: OrderkitError) -> WriteFailure:
        """Return what a refusal means after our commit was not found."""
        repository = self.forge.repo(self.repo)
        if repository is not None and repository.archived:
            return WriteFailure(archived(str(self.repo)), again=False)
        if (
            isinstance(problem, ConflictError)
            or self.forge.head(self.repo, self.branch) != self.head
        ):
            return WriteFailure(ConflictError(f"{self.repo}: {problem}"), again=True)
        may_be_rule = isinstance(problem, RemoteError) and not isinstance(problem, NotFoundError)
        rule = self._protected(problem) if may_be_rule else None
        return WriteFailure(rule or problem, again=False)
