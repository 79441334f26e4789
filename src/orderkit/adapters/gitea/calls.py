"""
What all parts of the Gitea client share: paths, paged lists, and the repair of a first commit.

`push_again_after_first_commit` repairs a repository whose first commit is in git but not in Gitea's
database. When the client of a repository's very first commit disconnects (killed, timed out), Gitea
1.26 cancels its internal push. Then git may have the commit while the database says that the
repository is empty. This state is permanent (observed): the branch is a 404 or a 500, reads say
"empty", and writes say "already exists". Any further push makes Gitea update its database. So it
makes one commit that changes nothing, under its own operation id.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar

from ground.names import CommitSha, RepoId
from orderkit.adapters.forges.answers import ForgeResponse
from orderkit.adapters.forges.calls import ForgeCalls, Found, checked, list_in, object_in, text_in
from orderkit.adapters.forges.transport import path_of
from orderkit.ports.forge import Operation


class Calls(ForgeCalls):
    """The shared part: paths and lists of Gitea's API."""

    page_size_key: ClassVar[str] = "limit"
    total_header: ClassVar[str] = "x-total-count"

    def _path(self, repo: RepoId, *segments: str) -> str:
        return path_of("repos", repo.owner, repo.name, *segments)

    def _page_after(self, _answer: ForgeResponse, page: int, missing: int, /) -> int:
        return 0 if missing > 0 else page + 1

    def _items(self, answer: ForgeResponse, inside: str, _doing: str, /) -> list[Found]:
        # some endpoints wrap the list in an object
        document = answer.json()
        if isinstance(document, dict):
            keys = (inside, "data", "statuses")
            document = next((document[key] for key in keys if key in document), document)
        return list_in(document or [])


BROKEN = 500
"""Gitea's status for the branch of a repository that it wrongly takes to be empty."""
_SUFFIX = "-noted"


def says_empty(forge: Calls, repo: RepoId) -> bool:
    """Say whether the repository exists and the forge reports it as empty."""
    repository = forge._optional(forge._path(repo), f"read {repo}")  # noqa: SLF001  one package
    return repository is not None and repository.get("empty") is True


def push_again_after_first_commit(
    forge: Calls, repo: RepoId, branch: str, operation: Operation
) -> bool:
    """
    Make the forge register a branch whose first commit it missed. Idempotent.

    Returns:
        False if the repository is not in that state; nothing was written then.

    Raises:
        OrderkitError: The forge refused a request; the class says why.
    """
    if not says_empty(forge, repo) or not (head := git_head(forge, repo, branch)):
        return False
    # any further push makes Gitea update its database
    body = _unchanged_entry(forge, repo, head) | {
        "branch": branch,
        "message": _repair_operation(operation).message,
    }
    answer = forge._http.send("POST", forge._path(repo, "contents"), body=body)  # noqa: SLF001
    checked(answer, f"push again after the first commit of {repo}")
    return True


def _repair_operation(operation: Operation) -> Operation:
    """Return the operation of the commit that changes nothing."""
    summary = "Have Gitea note the commit before this one"
    return replace(operation, id=operation.id + _SUFFIX, summary=summary)


def git_head(forge: Calls, repo: RepoId, branch: str) -> CommitSha | None:
    """Return the head of a branch in git itself, not in Gitea's database."""
    ref_name = f"refs/heads/{branch}"
    answer = forge._http.get(forge._path(repo, "git", *ref_name.split("/")))  # noqa: SLF001
    if not answer.ok:
        return None
    refs = {ref.get("ref"): ref.get("object") for ref in list_in(answer.json())}
    return CommitSha(text_in(refs[ref_name], "sha")) if ref_name in refs else None


def _unchanged_entry(forge: Calls, repo: RepoId, head: CommitSha) -> dict[str, Any]:
    """Return a request body that rewrites the smallest file of a commit with the same content."""
    file = min(_files(forge, repo, head), key=lambda item: int(item.get("size") or 0))
    sha = text_in(file, "sha")
    blob = _get(forge, repo, "blobs", sha)
    entry = {
        "operation": "update",
        "path": text_in(file, "path"),
        "sha": sha,
        "content": blob.get("content") or "",
    }
    return {"files": [entry]}


def _files(forge: Calls, repo: RepoId, head: CommitSha) -> list[Found]:
    """Return the files on the first page of a commit's tree; any one of them will do."""
    tree = _get(forge, repo, "trees", head, recursive=1)
    return [entry for entry in list_in(tree.get("tree")) if entry.get("type") == "blob"]


def _get(forge: Calls, repo: RepoId, kind: str, sha: str, **query: int) -> Found:
    answer = forge._http.get(forge._path(repo, "git", kind, sha), query)  # noqa: SLF001
    doing = f"read {kind} of {repo}"
    return object_in(checked(answer, doing), doing)
