"""
Pull requests on Gitea: open, find, update, close. ``merging`` merges them.

A hidden line at the end of the body carries operation and requester, so that a repeated
command recognises its own pull request even after it was merged.

Called through ``client.GiteaForge``; ``ports.pulls.ForgePulls`` documents the contract.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Literal

from ground.errors import ConflictError, NotFoundError, RefusedError
from ground.names import CommitSha, RepoId
from orderkit.adapters.gitea.branches import Branches
from orderkit.adapters.gitea.calls import (
    CONFLICT,
    Found,
    checked,
    done,
    number_in,
    object_in,
    text_in,
    user_in,
)
from orderkit.adapters.gitea.comments_and_statuses import Notes
from orderkit.adapters.gitea.retries import settle
from orderkit.adapters.gitea.transport import path_of
from orderkit.ports.forge import OpenPullRef, Operation, PullDraft, PullRequest, PullState

_LINE = re.compile(r"\s*<!-- orderkit-operation: (\S+) requester: (.*?) -->\s*\Z")


class GiteaPulls(Branches, Notes):
    """The part of the port about pull requests, without merging."""

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
            body = {
                "head": draft.head,
                "base": draft.base,
                "title": draft.title,
                "body": _with_line(draft.body, operation),
            }
            answer = self._http.send("POST", self._path(repo, "pulls"), body=body)
            pull = self._pull_of(object_in(checked(answer, doing), doing), repo)
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

    def pull(self, repo: RepoId, number: int) -> PullRequest | None:
        """Return a pull request, or None if the number does not exist; see the port."""
        entry = self._pull_object(repo, number)
        return self._pull_of(entry, repo) if entry is not None else None

    def pull_between(self, repo: RepoId, base: str, head: str) -> PullRequest | None:
        """Return a pull request between two branches; see the port."""
        path = self._path(repo, "pulls") + path_of(base, head)
        entry = self._optional(path, f"look for a pull request from {head}")
        return self._pull_of(entry, repo) if entry is not None else None

    def _pull_object(self, repo: RepoId, number: int) -> Found | None:
        path = self._path(repo, "pulls", str(number))
        return self._optional(path, f"read pull request {repo}#{number}")

    def pulls(
        self,
        repo: RepoId,
        *,
        state: Literal["open", "closed", "all"] = "open",
        base: str | None = None,
        head: str | None = None,
    ) -> Iterator[PullRequest]:
        """Yield pull requests, newest first; see the port."""
        query = {"state": state, "sort": "newest"} | ({"base_branch": base} if base else {})
        for item in self._pages(self._path(repo, "pulls"), query, f"list pulls of {repo}"):
            pull = self._pull_of(item, repo)
            if head in (None, pull.head) and base in (None, pull.base):
                yield pull

    def open_pulls(self, org: str) -> Iterator[OpenPullRef]:
        """Yield the open pull requests of an organisation; see the port."""
        query = {"owner": org, "type": "pulls", "state": "open"}
        doing = f"list the open pull requests of {org}"
        for item in self._pages("/repos/issues/search", query, doing):
            repo = RepoId(org, text_in(item.get("repository"), "name"))
            yield OpenPullRef(repo, number_in(item, "number"), str(item.get("updated_at") or ""))

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
        change: dict[str, Any] = {"body": _with_line(text, operation)}
        if title is not None:
            change["title"] = title
        doing = f"update pull request {repo}#{number}"
        path = self._path(repo, "pulls", str(number))
        answer = self._http.send("PATCH", path, body=change)
        if answer.status == CONFLICT and "already changed" in answer.text:
            return None  # Gitea compares the text's version itself, also if the request names none
        return self._pull_of(object_in(checked(answer, doing), doing), repo)

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

        def close() -> bool:
            path = self._path(repo, "pulls", str(number))
            return done(self._http.send("PATCH", path, body={"state": "closed"}), doing)

        return settle(look, close, doing)

    def _pull_or_raise(self, repo: RepoId, number: int) -> PullRequest:
        pull = self.pull(repo, number)
        if pull is None:
            raise NotFoundError(f"{repo} has no pull request {number}")
        return pull

    def _pull_of(self, entry: Found, repo: RepoId) -> PullRequest:
        number, head = number_in(entry, "number"), entry.get("head") or {}
        text = str(entry.get("body") or "").replace("\r\n", "\n")
        line = _LINE.search(text)
        merged = bool(entry.get("merged"))
        state: PullState = "open" if entry.get("state") == "open" else "closed"
        return PullRequest(
            number=number,
            title=str(entry.get("title") or ""),
            body=(text[: line.start()] if line else text).rstrip(),
            state="merged" if merged else state,
            draft=bool(entry.get("draft")),
            head=_head_branch(head),
            head_commit=CommitSha(text_in(head, "sha")),
            base=text_in(entry.get("base"), "ref"),
            mergeable=bool(entry.get("mergeable")),
            merge_commit=CommitSha(text_in(entry, "merge_commit_sha")) if merged else None,
            web_url=f"{self.base_url}{path_of(repo.owner, repo.name, 'pulls', str(number))}",
            operation=line[1] if line else "",
            requester=line[2] if line else "",
            author=user_in(entry),
            created=str(entry.get("created_at") or ""),
        )


def _head_branch(head: Found) -> str:
    """Return the branch; after its deletion only the label still names it."""
    ref = text_in(head, "ref")
    label = head.get("label")
    return str(label) if label and ref.startswith("refs/pull/") else ref


def _with_line(text: str, operation: Operation) -> str:
    line = f"<!-- orderkit-operation: {operation.id} requester: {operation.requester} -->"
    return f"{text.rstrip()}\n\n{line}\n".lstrip("\n")
