"""
Pull requests, their comments and statuses, each safe to repeat: what forges share.

`SharedPulls` opens, finds, updates and closes pull requests. A hidden line at the end of the body
carries operation and requester, so that a repeated command recognises its own pull request even
after it was merged.

`SharedNotes` keeps comments and commit statuses that are there once. Forges allow duplicate
comments and only ever add statuses, so each method reads first: a hidden line identifies our
comment, and the context identifies our status.
"""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Iterator
from typing import ClassVar, Literal

from ground.errors import ConflictError, NotFoundError, RefusedError
from ground.names import CommitSha, RepoId
from orderkit.adapters.forges.answers import ForgeResponse, settle
from orderkit.adapters.forges.calls import (
    CONFLICT,
    MISSING,
    ForgeCalls,
    Found,
    checked,
    done,
    number_in,
    object_in,
    text_in,
    user_in,
)
from orderkit.adapters.forges.transport import Query, path_of
from orderkit.ports.forge import Commit, CommitStatus, Operation, PullDraft, PullRequest, PullState

AskedState = Literal["open", "closed", "all"]
_MARKER = re.compile(r"[A-Za-z0-9._:/-]+")


class SharedNotes(ForgeCalls):
    """The part of the port about comments and statuses that no forge differs in."""

    @abstractmethod
    def user(self) -> str: ...

    @abstractmethod
    def _statuses(self, repo: RepoId, commit: CommitSha, doing: str) -> Iterator[Found]:
        """Yield all statuses of a commit, each with ``id``."""

    @abstractmethod
    def _status_of(self, entry: Found) -> CommitStatus: ...

    @abstractmethod
    def _comments(self, repo: RepoId, number: int, doing: str) -> list[Found]:
        """
        Return all comments, each with ``id``, ``body`` and its author.

        Raises:
            NotFoundError: No such pull request or issue.
        """

    def _comments_path(self, repo: RepoId, number: int) -> str:
        return self._path(repo, "issues", str(number), "comments")

    def _comment_path(self, repo: RepoId, _number: int, comment: Found, /) -> str:
        return self._path(repo, "issues", "comments", str(number_in(comment, "id")))

    def _comment_author(self, comment: Found) -> str:
        return text_in(comment.get("user"), "login")

    def _new_comment(self, repo: RepoId, number: int, body: str, doing: str) -> None:
        path = self._comments_path(repo, number)
        done(self._http.send("POST", path, body={"body": body}), doing)

    @abstractmethod
    def _post_status(
        self, repo: RepoId, commit: CommitSha, status: CommitStatus, doing: str
    ) -> bool:
        """Add the status, once."""

    def statuses(self, repo: RepoId, commit: CommitSha) -> tuple[CommitStatus, ...]:
        """
        Return the newest status of each context, sorted by context. See the port.

        Raises:
            NotFoundError: No such repository or commit.
        """
        doing = f"read the statuses of {commit[:8]} in {repo}"
        newest: dict[str, tuple[int, CommitStatus]] = {}
        for entry in self._statuses(repo, commit, doing):
            number, status = number_in(entry, "id"), self._status_of(entry)
            if status.context not in newest or number > newest[status.context][0]:
                newest[status.context] = number, status
        return tuple(newest[context][1] for context in sorted(newest))

    def comment(self, repo: RepoId, number: int, text: str, *, marker: str) -> None:
        """
        Make sure exactly one comment of ours with `marker` says `text`. Idempotent. See the port.

        Raises:
            NotFoundError: No such pull request or issue.
        """
        if not _MARKER.fullmatch(marker) or "--" in marker:
            raise ValueError(f"marker {marker!r} holds more than letters, digits and ._:/-")
        line = f"<!-- orderkit-comment: {marker} -->"
        body, doing = f"{text.rstrip()}\n\n{line}\n", f"comment on {repo}#{number}"
        ours: list[Found] = []

        def look(_: bool) -> bool | None:  # noqa: FBT001  settle's shape
            ours[:] = self._our_comments(repo, number, line)
            texts = [str(comment.get("body")).strip() for comment in ours]
            return True if texts == [body.strip()] else None

        def act() -> None:
            for double in ours[1:]:
                self._at_comment("DELETE", self._comment_path(repo, number, double), doing)
            if ours:
                path = self._comment_path(repo, number, ours[0])
                self._at_comment(self.edit_verb, path, doing, {"body": body})
                return
            self._new_comment(repo, number, body, doing)

        settle(look, act, doing)  # read again after each try: another process may comment too

    def _at_comment(self, verb: str, path: str, doing: str, body: Found | None = None) -> None:
        """Change or delete a comment; one that is gone is fine."""
        answer = self._http.send(verb, path, body=body)
        if answer.status != MISSING:
            done(answer, doing)

    def _our_comments(self, repo: RepoId, number: int, line: str) -> list[Found]:
        """Return the comments of our account that end in `line`, oldest first."""
        doing = f"read the comments of {repo}#{number}"
        comments = self._comments(repo, number, doing)
        comments = [
            comment for comment in comments if str(comment.get("body")).rstrip().endswith(line)
        ]
        me = self.user().lower() if comments else ""
        mine = [comment for comment in comments if self._comment_author(comment).lower() == me]
        return sorted(mine, key=lambda comment: number_in(comment, "id"))

    def set_status(self, repo: RepoId, commit: CommitSha, status: CommitStatus) -> None:
        """
        Make sure the newest status of that context is `status`. Idempotent. See the port.

        Raises:
            NotFoundError: No such repository or commit.
        """
        doing = f"set status {status.context} of {commit[:8]} in {repo}"

        def look(_: bool) -> bool | None:  # noqa: FBT001  settle's shape
            return True if status in self.statuses(repo, commit) else None

        settle(look, lambda: self._post_status(repo, commit, status, doing), doing)


_LINE = re.compile(r"\s*<!-- orderkit-operation: (\S+) requester: (.*?) -->\s*\Z")


class SharedPulls(ForgeCalls):
    """The part of the port about pull requests that no forge differs in."""

    pulls_name: ClassVar[str] = "pulls"
    """Where pull requests are below a repository."""
    pull_key: ClassVar[str] = "id"
    """The field that tells pull requests of a repository apart."""
    head_field: ClassVar[str] = "head"
    base_field: ClassVar[str] = "base"
    body_field: ClassVar[str] = "body"
    merged_field: ClassVar[str] = "merged_at"
    closing: ClassVar[Found] = {"state": "closed"}
    """The change that closes a pull request."""

    @abstractmethod
    def compare(self, repo: RepoId, base: str, head: str) -> tuple[Commit, ...]: ...

    @abstractmethod
    def _pull_query(self, repo: RepoId, state: AskedState, base: str, head: str, /) -> Query:
        """Return what asks for pull requests, newest first; "": any branch."""

    def _is_asked(self, _entry: Found, _state: AskedState, _head: str, /) -> bool:
        """Say whether an entry of a list is what was asked for, where the forge gives more."""
        return True

    def _refuse_archived(self, repo: RepoId, status: int, doing: str) -> None:
        """
        Name an archived repository as the cause of a refusal, where the forge does not.

        Raises:
            RefusedError: It is archived.
        """

    def _pull_path(self, repo: RepoId, number: int, *segments: str) -> str:
        return self._path(repo, self.pulls_name, str(number), *segments)

    def _pull_object(self, repo: RepoId, number: int) -> Found | None:
        path = self._pull_path(repo, number)
        return self._optional(path, f"read pull request {repo}#{number}")

    def pull(self, repo: RepoId, number: int) -> PullRequest | None:
        """Return a pull request, or None if the number does not exist; see the port."""
        entry = self._pull_object(repo, number)
        return self._pull_of(entry, repo) if entry is not None else None

    def pull_between(self, repo: RepoId, base: str, head: str) -> PullRequest | None:
        """Return a pull request between two branches, an open one first; see the port."""
        found: PullRequest | None = None
        try:
            for pull in self.pulls(repo, state="all", base=base, head=head):
                if pull.state == "open":
                    return pull
                found = found or pull
        except NotFoundError:
            return None
        return found

    def pulls(
        self,
        repo: RepoId,
        *,
        state: AskedState = "open",
        base: str | None = None,
        head: str | None = None,
    ) -> Iterator[PullRequest]:
        """Yield pull requests, newest first; see the port."""
        query = self._pull_query(repo, state, base or "", head or "")
        path, doing = self._path(repo, self.pulls_name), f"list pulls of {repo}"
        for entry in self._pages(path, query, doing, key=self.pull_key):
            if self._is_asked(entry, state, head or ""):
                pull = self._pull_of(entry, repo)
                if head in (None, pull.head) and base in (None, pull.base):
                    yield pull

    def _new_pull(self, repo: RepoId, draft: PullDraft, body: str, doing: str) -> PullRequest:
        new = {
            self.head_field: draft.head,
            self.base_field: draft.base,
            "title": draft.title,
            self.body_field: body,
        }
        answer = self._http.send("POST", self._path(repo, self.pulls_name), body=new)
        self._refuse_archived(repo, answer.status, doing)
        return self._pull_of(object_in(checked(answer, doing), doing), repo)

    def _change_pull(self, repo: RepoId, number: int, change: Found) -> ForgeResponse:
        return self._http.send(self.edit_verb, self._pull_path(repo, number), body=change)

    def open_pull(self, repo: RepoId, draft: PullDraft, operation: Operation) -> PullRequest:
        """
        Make sure a pull request is open from ``draft.head`` into ``draft.base``. See the port.

        Raises:
            RefusedError: `head` has no commit that `base` lacks.
            NotFoundError: No such repository or branch.
        """
        doing = f"open a pull request from {draft.head} in {repo}"

        def look(_: bool) -> PullRequest | None:  # noqa: FBT001  settle's shape
            return self._pull_between(repo, draft, operation)

        def create() -> PullRequest:
            if not self.compare(repo, draft.base, draft.head):
                raise RefusedError(
                    f"{doing}: {draft.base} has all its commits already",
                    hint="there is nothing to merge; write a change to the branch first",
                )
            pull = self._new_pull(repo, draft, with_line(draft.body, operation), doing)
            return self._one_pull(repo, pull)

        existing = settle(look, create, doing)
        if existing.state != "open":
            return existing
        return self.update_pull(
            repo, existing.number, operation, title=draft.title, body=draft.body, current=existing
        )

    def _one_pull(self, repo: RepoId, pull: PullRequest) -> PullRequest:
        """Close our new pull request if another process opened one first; return the one to use."""
        open_pulls = self.pulls(repo, base=pull.base, head=pull.head)
        first = min(open_pulls, key=lambda candidate: candidate.number, default=pull)
        if first.number < pull.number:  # Gitea 1.26.0 can miss a duplicate that is opened at once
            self.close_pull(repo, pull.number)
            return first
        return pull

    def _pull_between(
        self, repo: RepoId, draft: PullDraft, operation: Operation
    ) -> PullRequest | None:
        """Return the open pull request between two branches, or one that this operation opened."""
        pull = self.pull_between(repo, draft.base, draft.head)
        if pull is None or pull.state == "open" or pull.operation == operation.id:
            return pull
        for candidate in self.pulls(repo, state="all", base=draft.base, head=draft.head):
            if candidate.state == "open" or candidate.operation == operation.id:
                return candidate
        return None

    def update_pull(
        self,
        repo: RepoId,
        number: int,
        operation: Operation,
        *,
        title: str | None = None,
        body: str | None = None,
        current: PullRequest | None = None,
    ) -> PullRequest:
        """
        Set title or body. Idempotent. See the port.

        Args:
            current: The pull request if it was just read; saves one request.

        Raises:
            NotFoundError: No such pull request.
        """
        first = [current] if current else []

        def look(_: bool) -> PullRequest | None:  # noqa: FBT001  settle's shape
            now = first.pop() if first else self._pull_or_raise(repo, number)
            up_to_date = (
                title in (None, now.title)
                and (body is None or body.rstrip() == now.body)
                and now.operation == operation.id
            )
            return now if up_to_date else None

        def patch() -> PullRequest | None:
            return self._patch(repo, number, operation, title=title, body=body)

        return settle(look, patch, f"update pull request {repo}#{number}")

    def _patch(
        self,
        repo: RepoId,
        number: int,
        operation: Operation,
        *,
        title: str | None,
        body: str | None,
    ) -> PullRequest | None:
        """Send the change; None if the forge lost a race against another writer of the text."""
        text = body if body is not None else self._pull_or_raise(repo, number).body
        doing = f"update pull request {repo}#{number}"
        change = {self.body_field: with_line(text, operation)}
        answer = self._change_pull(
            repo, number, change if title is None else {**change, "title": title}
        )
        # Gitea compares the text's version itself, also if the request names none
        if answer.status == CONFLICT and "already changed" in answer.text:
            return None
        return self._pull_of(object_in(checked(answer, doing), doing), repo)

    def retarget_pull(self, repo: RepoId, number: int, base: str) -> bool:
        """
        Give an open pull request another base. Idempotent. See the port.

        Raises:
            NotFoundError: No such pull request.
            ConflictError: It is not open.
        """
        doing = f"let pull request {repo}#{number} go to {base}"

        def look(attempted: bool) -> bool | None:  # noqa: FBT001  settle's shape
            now = self._pull_or_raise(repo, number)
            if now.state != "open":
                raise ConflictError(f"{doing}: it is {now.state}", hint="open a new one")
            return attempted if now.base == base else None

        change = {self.base_field: base}
        return settle(look, lambda: done(self._change_pull(repo, number, change), doing), doing)

    def close_pull(self, repo: RepoId, number: int) -> bool:
        """
        Close a pull request without merging it. Idempotent. See the port.

        Raises:
            NotFoundError: No such pull request.
            ConflictError: It was merged.
        """
        doing = f"close pull request {repo}#{number}"

        def look(attempted: bool) -> bool | None:  # noqa: FBT001  settle's shape
            now = self._pull_or_raise(repo, number)
            if now.state == "merged":
                raise ConflictError(f"{doing}: it was merged", hint="revert it by a new change")
            return attempted if now.state == "closed" else None

        return settle(
            look, lambda: done(self._change_pull(repo, number, self.closing), doing), doing
        )

    def _pull_of(self, entry: Found, repo: RepoId) -> PullRequest:
        """Read a pull request as Gitea and GitHub show it."""
        number, head = number_in(entry, "number"), entry.get("head") or {}
        body, operation, requester = split_line(str(entry.get("body") or ""))
        merged = bool(entry.get(self.merged_field))
        place = (repo.owner, repo.name, self.capabilities.pages.pull.rstrip("/"))
        state: PullState = "open" if entry.get("state") == "open" else "closed"
        return PullRequest(
            number=number,
            title=str(entry.get("title") or ""),
            body=body,
            state="merged" if merged else state,
            draft=bool(entry.get("draft")),
            head=self._head_branch(head),
            head_commit=CommitSha(text_in(head, "sha")),
            base=text_in(entry.get("base"), "ref"),
            mergeable=bool(entry.get("mergeable")),
            merge_commit=CommitSha(text_in(entry, "merge_commit_sha")) if merged else None,
            web_url=f"{self.base_url}{path_of(*place, str(number))}",
            operation=operation,
            requester=requester,
            author=user_in(entry),
            created=str(entry.get("created_at") or ""),
        )

    def _head_branch(self, head: Found) -> str:
        return text_in(head, "ref")

    def _pull_or_raise(self, repo: RepoId, number: int) -> PullRequest:
        pull = self.pull(repo, number)
        if pull is None:
            raise NotFoundError(f"{repo} has no pull request {number}")
        return pull


def with_line(text: str, operation: Operation) -> str:
    """Return the body of a pull request with the hidden line of its operation."""
    line = f"<!-- orderkit-operation: {operation.id} requester: {operation.requester} -->"
    return f"{text.rstrip()}\n\n{line}\n".lstrip("\n")


def split_line(text: str) -> tuple[str, str, str]:
    """Return the body without its hidden line, and the operation and requester that it names."""
    text = text.replace("\r\n", "\n")
    line = _LINE.search(text)
    if line is None:
        return text.rstrip(), "", ""
    return text[: line.start()].rstrip(), line[1], line[2]
