"""
Pull requests on Gitea: open, find, update, close. ``merging`` merges them.

Called through ``client.GiteaForge``; ``ports.pulls.ForgePulls`` documents the contract.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal

from ground.names import CommitSha, RepoId
from orderkit.adapters.forges.calls import (
    CONFLICT,
    Found,
    checked,
    done,
    number_in,
    object_in,
    text_in,
    user_in,
)
from orderkit.adapters.forges.pulls import SharedPulls, split_line
from orderkit.adapters.forges.transport import path_of
from orderkit.adapters.gitea.branches import Branches
from orderkit.adapters.gitea.comments_and_statuses import Notes
from orderkit.ports.forge import OpenPullRef, PullDraft, PullRequest, PullState


class GiteaPulls(Branches, Notes, SharedPulls):
    """The part of the port about pull requests, without merging."""

    def _new_pull(self, repo: RepoId, draft: PullDraft, body: str, doing: str) -> PullRequest:
        new = {"head": draft.head, "base": draft.base, "title": draft.title, "body": body}
        answer = self._http.send("POST", self._path(repo, "pulls"), body=new)
        return self._pull_of(object_in(checked(answer, doing), doing), repo)

    def _edit_pull(
        self, repo: RepoId, number: int, title: str | None, body: str, doing: str
    ) -> PullRequest | None:
        change: dict[str, Any] = {"body": body} | ({"title": title} if title is not None else {})
        path = self._path(repo, "pulls", str(number))
        answer = self._http.send("PATCH", path, body=change)
        if answer.status == CONFLICT and "already changed" in answer.text:
            return None  # Gitea compares the text's version itself, also if the request names none
        return self._pull_of(object_in(checked(answer, doing), doing), repo)

    def _retarget_pull(self, repo: RepoId, number: int, base: str, doing: str) -> bool:
        path = self._path(repo, "pulls", str(number))
        return done(self._http.send("PATCH", path, body={"base": base}), doing)

    def _close_pull(self, repo: RepoId, number: int, doing: str) -> bool:
        path = self._path(repo, "pulls", str(number))
        return done(self._http.send("PATCH", path, body={"state": "closed"}), doing)

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

    def _pull_of(self, entry: Found, repo: RepoId) -> PullRequest:
        number, head = number_in(entry, "number"), entry.get("head") or {}
        body, operation, requester = split_line(str(entry.get("body") or ""))
        merged = bool(entry.get("merged"))
        state: PullState = "open" if entry.get("state") == "open" else "closed"
        return PullRequest(
            number=number,
            title=str(entry.get("title") or ""),
            body=body,
            state="merged" if merged else state,
            draft=bool(entry.get("draft")),
            head=_head_branch(head),
            head_commit=CommitSha(text_in(head, "sha")),
            base=text_in(entry.get("base"), "ref"),
            mergeable=bool(entry.get("mergeable")),
            merge_commit=CommitSha(text_in(entry, "merge_commit_sha")) if merged else None,
            web_url=f"{self.base_url}{path_of(repo.owner, repo.name, 'pulls', str(number))}",
            operation=operation,
            requester=requester,
            author=user_in(entry),
            created=str(entry.get("created_at") or ""),
        )


def _head_branch(head: Found) -> str:
    """Return the branch; after its deletion only the label still names it."""
    ref = text_in(head, "ref")
    label = head.get("label")
    return str(label) if label and ref.startswith("refs/pull/") else ref
