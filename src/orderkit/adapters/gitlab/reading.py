"""
Read from GitLab: our account, branches, trees, files and history.

Source: doc/api/repositories.md, repository_files.md, commits.md, branches.md, tags.md, users.md.

`judge_gitlab` says what a version text of a GitLab tells. The client never decides by it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import PurePosixPath

from ground.errors import NotFoundError
from ground.names import MAIN, BlobSha, CommitSha, RepoId
from orderkit.adapters.forges.answers import ForgeResponse
from orderkit.adapters.forges.calls import (
    MISSING,
    Found,
    bytes_in,
    checked,
    is_commit_id,
    list_in,
    object_in,
    text_in,
)
from orderkit.adapters.forges.reading import SharedReading, TreeEntry, misleading, refused_name
from orderkit.adapters.forges.transport import Query
from orderkit.adapters.gitlab.transport import PAGE, GitLabCalls
from orderkit.core.platform.neighbours import ReleaseVerdict
from orderkit.ports.forge import Commit, FileRevision

OLDEST = (18, 0)
"""The first release with deletion in every tier as the client expects it (epic 17208)."""
_NUMBER = re.compile(r"(\d+)\.(\d+)\.")


def judge_gitlab(version: str) -> ReleaseVerdict:
    """Return how well a server with this version text is known: no suite ran against a GitLab."""
    number = _NUMBER.match(version)
    if version.endswith("+orderkit"):
        return ReleaseVerdict(version, "embedded", f"GitLab {version}: the embedded forge")
    if number is None:
        return ReleaseVerdict(version, "unknown", f"GitLab {version[:40]}: the version is unclear")
    if (int(number[1]), int(number[2])) < OLDEST:
        detail = f"GitLab {version} is older than 18.0, the oldest that Orderkit expects"
        return ReleaseVerdict(version, "too old", detail, "install GitLab 18.0 or newer")
    detail = f"GitLab {version}: read from GitLab's description; no suite ran against a GitLab"
    return ReleaseVerdict(version, "unknown", detail, "try it in a group of its own first")


_FEW = 4
"""Files that are asked for one by one; for more, the tree costs less."""


class GitLabReading(GitLabCalls, SharedReading):
    """The part of the port that only reads."""

    def version(self) -> str:
        """
        Return the server's version text; see `ports.forge.Forge`.

        Raises:
            NotFoundError: No GitLab answers at that address.
        """
        doing = f"ask {self._http.base_url} for its version"
        answer = self._http.get("/version")
        if answer.status == MISSING:
            raise NotFoundError(
                f"{doing}: 404, there is no GitLab at that address",
                hint="is a path missing in forge.url, or does the group belong into forge.group?",
            )
        return text_in(object_in(checked(answer, doing), doing), "version")

    def judge_release(self) -> ReleaseVerdict:
        """Return how well this server's release is known; see the port."""
        return judge_gitlab(self.version())

    def user(self) -> str:
        """Return the login name behind our credentials; see the port."""
        return text_in(self._object("/user", "read who we are"), "username")

    @cached_property
    def identity(self) -> tuple[str, str]:
        """Name and address of our account, as GitLab gives them to its commits."""
        found = self._object("/user", "read who we are")
        address = found.get("commit_email") or found.get("email")
        return text_in(found, "username"), str(address or f"{found.get('username')}@localhost")

    def _project_object(self, repo: RepoId, doing: str) -> Found | None:
        """Return a project, None if there is none or if it is scheduled for deletion."""
        entry = self._optional(self._path(repo), doing)
        return None if entry is None or entry.get("marked_for_deletion_on") else entry

    def _get(self, repo: RepoId, *segments: str, **query: str | int) -> ForgeResponse:
        return self._http.get(self._path(repo, *segments), query or None)

    def head(self, repo: RepoId, branch: str = MAIN) -> CommitSha | None:
        """Return the commit a branch points to, or None; see the port."""
        doing = f"read branch {branch} of {repo}"
        answer = self._get(repo, "repository", "branches", branch)
        if answer.status == MISSING:
            return None
        return CommitSha(text_in(object_in(checked(answer, doing), doing).get("commit"), "id"))

    def _all_entries(self, repo: RepoId, commit: CommitSha) -> Iterator[TreeEntry]:
        return self._entries(repo, commit)

    def _children(
        self, repo: RepoId, commit: CommitSha, path: PurePosixPath, _sha: str, /
    ) -> Iterator[TreeEntry]:
        """Yield the direct entries of a folder, by their names."""
        place = {"path": str(path)} if path.parts else {}
        for entry in self._entries(repo, commit, recursive="false", **place):
            yield TreeEntry(PurePosixPath(entry.path).name, entry.sha, entry.mode)

    def _entries(
        self, repo: RepoId, commit: CommitSha, *, recursive: str = "true", **place: str
    ) -> Iterator[TreeEntry]:
        """Yield what a commit or one of its folders holds, a page of 100 at a time."""
        query: dict[str, str | int] = {"ref": commit, "recursive": recursive, "per_page": PAGE}
        page = "1"
        while page:
            answer = self._get(repo, "repository", "tree", **query, **place, page=page)
            if answer.status == MISSING:
                raise NotFoundError(f"{repo} has no commit {commit}")
            for entry in list_in(checked(answer, f"read the tree of {repo}").json() or []):
                path, mode = text_in(entry, "path"), int(text_in(entry, "mode"), 8)
                yield TreeEntry(path, text_in(entry, "id"), mode)
            page = answer.headers.get("x-next-page", "")

    def blobs(
        self, repo: RepoId, commit: CommitSha, paths: Sequence[PurePosixPath]
    ) -> Mapping[PurePosixPath, BlobSha]:
        """
        Return the blob ids of those of `paths` that exist at a commit.

        Raises:
            NotFoundError: No such repository or commit.
        """
        if len(paths) > _FEW or self.trees.remembered(repo, commit) is not None:
            tree = self.tree(repo, commit)
            return {path: tree[path] for path in paths if path in tree}
        files = {path: self._file(repo, path, commit) for path in paths}
        return {p: BlobSha(text_in(entry, "blob_id")) for p, entry in files.items() if entry}

    def _file(self, repo: RepoId, path: PurePosixPath, ref: str) -> Found | None:
        """Return GitLab's entry of a file; None if it does not exist or is a folder."""
        doing = f"read {path} of {repo}"
        answer = self._get(repo, "repository", "files", str(path), ref=ref_of(ref))
        if answer.status == MISSING:
            return None
        entry = object_in(checked(answer, doing), doing)
        if is_commit_id(ref) and entry.get("commit_id") != ref:
            raise refused_name(repo, ref)
        return entry

    def read(self, repo: RepoId, path: PurePosixPath, ref: str) -> FileRevision | None:
        """Return a file at a branch or full commit id, or None; see the port."""
        is_commit = is_commit_id(ref)  # whose files never change
        if (kept := self.trees.file(repo, ref, path)) or self.trees.lacks(repo, ref, path):
            return kept
        entry = self._file(repo, path, ref)
        if entry is None:
            return None
        file = FileRevision(path, bytes_in(entry), BlobSha(text_in(entry, "blob_id")))
        if is_commit:
            self.trees.keep_file(repo, ref, file)
        return file

    def _history_of(self, repo: RepoId, ref: str, size: int) -> tuple[str, Query]:
        query: Query = {"ref_name": ref_of(ref), "per_page": size}
        return self._path(repo, "repository", "commits"), query

    def _commit_of(self, entry: Found) -> Commit:
        parents = entry.get("parent_ids")
        name = entry.get("author_name") or ""
        return Commit(
            CommitSha(text_in(entry, "id")),
            str(entry.get("message") or ""),
            tuple(CommitSha(str(p)) for p in parents) if isinstance(parents, list) else (),
            author=f"{name} <{entry.get('author_email') or ''}>" if name else "",
            when=str(entry.get("authored_date") or ""),
        )

    def blocking_rule(self, repo: RepoId, branch: str) -> str:
        """
        Return the rule that keeps us from pushing to a branch, "" if none does; see the port.

        Raises:
            NotFoundError: No such repository or branch.
        """
        doing = f"read {branch} of {repo}"
        answer = checked(self._get(repo, "repository", "branches", branch), doing)
        entry = object_in(answer, doing)
        return branch if entry.get("protected") and not entry.get("can_push") else ""

    def names_like(self, repo: RepoId, branch: str) -> tuple[str, ...]:
        """Return refs that may be taken for a branch; see the port."""
        refs: set[str] = set()
        for kind, prefix in (("branches", "refs/heads/"), ("tags", "refs/tags/")):
            path, doing = self._path(repo, "repository", kind), f"read the refs of {repo}"
            found = self._pages(path, {"search": branch}, doing, key="name")
            refs |= {prefix + text_in(item, "name") for item in found}
        return misleading(branch, refs)


def ref_of(ref: str) -> str:
    """Return a name that git cannot take for a tag: a commit id, or the full name of a branch."""
    return ref if is_commit_id(ref) else f"refs/heads/{ref}"
