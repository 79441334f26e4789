"""Pull requests on GitHub: open, find, update, close. ``merging`` merges them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from ground.errors import NotFoundError
from ground.names import CommitSha, RepoId
from orderkit.adapters.forges.calls import (
    FORBIDDEN,
    Found,
    checked,
    done,
    list_in,
    number_in,
    object_in,
    text_in,
    user_in,
)
from orderkit.adapters.forges.pulls import SharedPulls, split_line
from orderkit.adapters.forges.transport import path_of
from orderkit.adapters.github.branches import Branches
from orderkit.adapters.github.notes import Notes
from orderkit.ports.forge import OpenPullRef, PullDraft, PullRequest, PullState

OPEN = """query($org:String!,$after:String){organization(login:$org){
repositories(first:50,after:$after){pageInfo{hasNextPage endCursor}nodes{name
pullRequests(states:OPEN,first:100){nodes{number updatedAt}}}}}}"""


class GitHubPulls(Branches, Notes, SharedPulls):
    """The part of the port about pull requests, without merging."""

    def _new_pull(self, repo: RepoId, draft: PullDraft, body: str, doing: str) -> PullRequest:
        new = {"head": draft.head, "base": draft.base, "title": draft.title, "body": body}
        answer = self._http.send("POST", self._path(repo, "pulls"), body=new)
        if answer.status == FORBIDDEN:
            self._refuse_archived(repo, doing)
        return self._pull_of(object_in(checked(answer, doing), doing), repo)

    def _edit_pull(
        self, repo: RepoId, number: int, title: str | None, body: str, doing: str
    ) -> PullRequest | None:
        change = {"body": body} | ({"title": title} if title is not None else {})
        answer = self._http.send("PATCH", self._path(repo, "pulls", str(number)), body=change)
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

    def _pull_object(self, repo: RepoId, number: int) -> Found | None:
        path = self._path(repo, "pulls", str(number))
        return self._optional(path, f"read pull request {repo}#{number}")

    def pull_between(self, repo: RepoId, base: str, head: str) -> PullRequest | None:
        """Return a pull request between two branches, an open one first; see the port."""
        try:
            found = list(self.pulls(repo, state="all", base=base, head=head))
        except NotFoundError:
            return None
        return next((pull for pull in found if pull.state == "open"), next(iter(found), None))

    def pulls(
        self,
        repo: RepoId,
        *,
        state: Literal["open", "closed", "all"] = "open",
        base: str | None = None,
        head: str | None = None,
    ) -> Iterator[PullRequest]:
        """Yield pull requests, newest first; see the port."""
        query = {"state": state, "sort": "created", "direction": "desc"}
        query |= {"base": base} if base else {}
        query |= {"head": f"{repo.owner}:{head}"} if head else {}
        for item in self._pages(self._path(repo, "pulls"), query, f"list pulls of {repo}"):
            pull = self._pull_of(item, repo)
            if head in (None, pull.head) and base in (None, pull.base):
                yield pull

    def open_pulls(self, org: str) -> Iterator[OpenPullRef]:
        """Yield the open pull requests of an organisation; see the port."""
        doing, after = f"list the open pull requests of {org}", None
        while True:
            data = self.graphql(org, OPEN, {"org": org, "after": after}, doing)
            found = (data.get("organization") or {}).get("repositories") or {}
            for entry in list_in(found.get("nodes") or []):
                repo = RepoId(org, text_in(entry, "name"))
                pulls = list_in((entry.get("pullRequests") or {}).get("nodes") or [])
                for pull in pulls:
                    updated = str(pull.get("updatedAt") or "")
                    yield OpenPullRef(repo, number_in(pull, "number"), updated)
            page = found.get("pageInfo") or {}
            if not page.get("hasNextPage"):
                return
            after = page.get("endCursor")

    def _pull_of(self, entry: Found, repo: RepoId) -> PullRequest:
        number, head = number_in(entry, "number"), entry.get("head") or {}
        body, operation, requester = split_line(str(entry.get("body") or ""))
        merged = bool(entry.get("merged_at"))
        state: PullState = "open" if entry.get("state") == "open" else "closed"
        return PullRequest(
            number=number,
            title=str(entry.get("title") or ""),
            body=body,
            state="merged" if merged else state,
            draft=bool(entry.get("draft")),
            head=text_in(head, "ref"),
            head_commit=CommitSha(text_in(head, "sha")),
            base=text_in(entry.get("base"), "ref"),
            mergeable=bool(entry.get("mergeable")),
            merge_commit=CommitSha(text_in(entry, "merge_commit_sha")) if merged else None,
            web_url=f"{self.base_url}{path_of(repo.owner, repo.name, 'pull', str(number))}",
            operation=operation,
            requester=requester,
            author=user_in(entry),
            created=str(entry.get("created_at") or ""),
        )
