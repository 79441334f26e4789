"""
Repair a repository whose first commit git holds and Gitea's database does not know.

When the client of a repository's very first commit goes away (killed, timed out), Gitea 1.26
cancels the push it makes inside. Then git may hold the commit while the database says that the
repository is empty: its branch is a 404, or a 500 because Gitea stumbles over it, reading says
"empty", writing says "already exists", for good (observed). Any further push has it look. So this
makes one: a commit that changes nothing, with an operation id of its own, made once.

Called by ``reading`` and ``writing``.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from orderkit.adapters.gitea.calls import Calls, Found, checked, list_in, object_in, text_in
from orderkit.core.names import CommitSha, RepoId
from orderkit.ports.forge import Operation

BROKEN = 500
"""What Gitea answers when it stumbles over the branch of a repository it takes to be empty."""
_SUFFIX = "-noted"


def says_empty(forge: Calls, repo: RepoId) -> bool:
    """Say whether the forge takes an existing repository to be empty."""
    repository = forge._optional(forge._path(repo), f"read {repo}")  # noqa: SLF001  one package
    return repository is not None and repository.get("empty") is True


def push_again_after_first_commit(
    forge: Calls, repo: RepoId, branch: str, operation: Operation
) -> bool:
    """
    Make the forge look at a branch whose first commit it does not know. Idempotent.

    Returns:
        False if the repository is not in that state; nothing was written then.

    Raises:
        OrderkitError: What the refusal of a request means.
    """
    if not says_empty(forge, repo) or not (head := _git_head(forge, repo, branch)):
        return False
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


def _git_head(forge: Calls, repo: RepoId, branch: str) -> CommitSha | None:
    """Return what git itself has as the head of a branch."""
    ref_name = f"refs/heads/{branch}"
    answer = forge._http.get(forge._path(repo, "git", *ref_name.split("/")))  # noqa: SLF001
    if not answer.ok:
        return None
    refs = {ref.get("ref"): ref.get("object") for ref in list_in(answer.json())}
    return CommitSha(text_in(refs[ref_name], "sha")) if ref_name in refs else None


def _unchanged_entry(forge: Calls, repo: RepoId, head: CommitSha) -> dict[str, Any]:
    """Return an entry that gives the smallest file of a commit the content it has."""
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
    """Return the files of a commit's first page: enough to find one."""
    tree = _get(forge, repo, "trees", head, recursive=1)
    return [entry for entry in list_in(tree.get("tree")) if entry.get("type") == "blob"]


def _get(forge: Calls, repo: RepoId, kind: str, sha: str, **query: int) -> Found:
    answer = forge._http.get(forge._path(repo, "git", kind, sha), query)  # noqa: SLF001
    doing = f"read {kind} of {repo}"
    return object_in(checked(answer, doing), doing)
