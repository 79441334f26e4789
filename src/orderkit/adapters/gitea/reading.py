"""
Read from Gitea: our account, branches, trees, files and history.

Reads need no protection against lost answers; writes do, in ``writing`` and ``forges.answers``.

`judge_gitea` says what a version text of a server tells. The client never decides by it; it reads
the behaviour that it relies on (`ServerBehaviour`) from the server's answers. Releases and their
support are in ``core.platform.neighbours``; docs/forge.md prints the rules.

`ports.forge.Forge` documents the contract.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import PurePosixPath

from ground.errors import NotFoundError, RefusedError, RemoteError
from ground.names import BlobSha, CommitSha, RepoId
from orderkit.adapters.forges.answers import ForgeResponse, refusal
from orderkit.adapters.forges.calls import (
    BAD,
    CONFLICT,
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
from orderkit.adapters.forges.transport import Query, path_of
from orderkit.adapters.gitea.calls import BROKEN, Calls, git_head, says_empty
from orderkit.core.platform.neighbours import GITEA, ReleaseVerdict, judge_release
from orderkit.ports.forge import LINK, PLAIN, FileRevision, Repository, SpecialFile


@dataclass(frozen=True, slots=True)
class ServerBehaviour:
    """A situation that safe writes depend on, and the answer of Gitea 1.26.0."""

    situation: str
    answer: str


RULES = (
    ServerBehaviour("an entry's sha is not the file's", "422"),
    ServerBehaviour("an update without sha in a commit of many files", "accepted"),
    ServerBehaviour("a create on an existing path", "422"),
    ServerBehaviour("an update or delete of a missing path", "404"),
    ServerBehaviour("another writer moved the branch", "403 with git's text"),
    ServerBehaviour("the same bytes again", "an empty commit"),
    ServerBehaviour("an archived repository", "423"),
    ServerBehaviour("a branch from an unknown commit", "500"),
    ServerBehaviour("a merge that is still checked, or conflicts, or is empty", "405"),
    ServerBehaviour("a merge at another head", "409"),
    ServerBehaviour("two open pull requests of one pair at once", "both accepted"),
    ServerBehaviour("a new secret for a webhook", "ignored"),
    ServerBehaviour("a comment on a missing issue", "500"),
    ServerBehaviour("a status for an unknown commit", "500"),
)


def judge_gitea(version: str) -> ReleaseVerdict:
    """Return how well a server with this version text is known, and its known holes."""
    if "gitea-" in version or "forgejo" in version.lower():
        detail = (
            f"Forgejo {version[:40]}: its description of December 2024 has all requests of Orderkit"
            " for Gitea; no suite ran against it"
        )
        hint = "try it in an organisation of its own: orderkit forge check --live --organisation X"
        return ReleaseVerdict(version, "unknown", detail, hint)
    return judge_release(GITEA, version)


TREE_PAGE = 1000
"""The most that Gitea gives as it is installed (`default_git_trees_per_page`)."""
_FILE = SpecialFile(PLAIN, "")
DEFAULT_BRANCH = "main"


_FILES_AT_ONCE = 30
"""What Gitea sends at most, as it is installed (``DEFAULT_PAGING_NUM``; read in 1.27)."""


class GiteaReading(Calls, SharedReading):
    """The part of the port that only reads."""

    _reads_many = True
    """Not known to lack the call that reads several files."""

    def version(self) -> str:
        """
        Return the server's version text; see `ports.forge.Forge`.

        Raises:
            NotFoundError: No Gitea answers at that address.
        """
        answer = self._http.get("/version")
        doing = f"ask {self.base_url} for its version"
        if answer.status == MISSING:
            raise NotFoundError(
                f"{doing}: 404, there is no Gitea at that address",
                hint="is a path missing in the base URL, such as /gitea?",
            )
        if answer.status == BAD and "https" in answer.text.lower():
            raise NotFoundError(f"{doing}: {answer.text}", hint="use https:// in the base URL")
        found = object_in(checked(answer, doing), doing).get("version")
        if not isinstance(found, str):
            raise NotFoundError(
                f"{doing}: the answer has no version, so this is no Gitea",
                hint="forge.url in platform.yaml has to be the address of a Gitea; another forge"
                " has its own forge.kind",
            )
        return found

    def judge_release(self) -> ReleaseVerdict:
        """Return how well this server's release is known; see the port."""
        return judge_gitea(self.version())

    def user(self) -> str:
        """Return the login name behind our credentials; see the port."""
        return text_in(self._object("/user", "read who we are"), "login")

    def repo(self, repo: RepoId) -> Repository | None:
        """Return the repository, or None if missing or hidden; see the port."""
        entry = self._optional(self._path(repo), f"read repository {repo}")
        return self._repository(entry, repo) if entry is not None else None

    def _repository(self, entry: Found, repo: RepoId) -> Repository:
        web_url = f"{self.base_url}{path_of(repo.owner, repo.name)}"
        rights, owner = entry.get("permissions") or {}, entry.get("owner") or {}
        source = str(entry.get("original_url") or "of another repository")
        return Repository(
            id=repo,
            default_branch=str(entry.get("default_branch") or DEFAULT_BRANCH),
            empty=bool(entry.get("empty")),
            archived=bool(entry.get("archived")),
            private=bool(entry.get("private")),
            description=str(entry.get("description") or ""),
            web_url=web_url,
            clone_url=f"{web_url}.git",
            can_write=bool(rights.get("push")),
            can_admin=bool(rights.get("admin")),
            may_squash=bool(entry.get("allow_squash_merge")),
            number=int(entry.get("id") or 0),
            owner=str(owner.get("login") or ""),
            mirror_of=source if entry.get("mirror") else "",
        )

    def head(self, repo: RepoId, branch: str = DEFAULT_BRANCH) -> CommitSha | None:
        """Return the commit a branch points to, or None; see the port."""
        doing = f"read branch {branch} of {repo}"
        answer = self._http.get(self._path(repo, "branches") + path_of(branch))
        if answer.status == MISSING or (answer.status == BROKEN and says_empty(self, repo)):
            return None
        if _is_unshown(answer):
            return git_head(self, repo, branch)
        return CommitSha(text_in(object_in(checked(answer, doing), doing).get("commit"), "id"))

    @property
    def _most_of_small(self) -> int:
        return TREE_PAGE

    def _all_entries(self, repo: RepoId, commit: str) -> list[TreeEntry]:
        return self._entries(repo, commit, recursive=True)

    def _children(
        self, repo: RepoId, _commit: CommitSha, _path: PurePosixPath, sha: str, /
    ) -> list[TreeEntry]:
        return self._entries(repo, sha, recursive=False)

    def _entries(self, repo: RepoId, sha: str, *, recursive: bool) -> list[TreeEntry]:
        """Return the entries of a folder or commit, the direct ones or all."""
        entries: list[TreeEntry] = []
        page, pages = 1, 1
        while page <= pages:
            found, pages = self._tree_page(repo, sha, page, recursive=recursive)
            entries += map(_tree_entry, found)
            page += 1
        return entries

    def _tree_page(
        self, repo: RepoId, commit: str, page: int, *, recursive: bool = True
    ) -> tuple[list[Found], int]:
        """Return the files, folders and submodules of one page, and the number of pages."""
        query: dict[str, str | int] = {"page": page, "per_page": TREE_PAGE}
        answer = self._http.get(
            self._path(repo, "git", "trees", commit),
            {**query, "recursive": 1} if recursive else query,
        )
        doing = f"read the tree of {repo}"
        if answer.status in (BAD, MISSING):
            raise NotFoundError(f"{repo} has no commit {commit}")
        tree = object_in(checked(answer, doing), doing)
        entries = list_in(tree.get("tree") or [])
        pages = -(-int(tree.get("total_count") or 0) // TREE_PAGE) if entries else page
        return entries, pages

    def blobs(
        self, repo: RepoId, commit: CommitSha, paths: Sequence[PurePosixPath]
    ) -> Mapping[PurePosixPath, BlobSha]:
        """
        Return the blob ids of those of `paths` that exist at a commit.

        Needs one request, unless the repository has more than one page of files.

        Raises:
            NotFoundError: No such repository or commit.
        """
        if len(paths) == 1:
            return self._blobs_one_by_one(repo, commit, paths)
        entries, pages = self._tree_page(repo, commit, 1)
        # fewer requests than the other pages of the tree would need
        if pages - 1 > len(paths):
            return self._blobs_one_by_one(repo, commit, paths)
        for page in range(2, pages + 1):
            entries += self._tree_page(repo, commit, page)[0]
        requested = set(paths)
        files = filter(_is_file, entries)
        existing = ((PurePosixPath(text_in(entry, "path")), entry) for entry in files)
        return {
            path: BlobSha(text_in(entry, "sha")) for path, entry in existing if path in requested
        }

    def _blobs_one_by_one(
        self, repo: RepoId, commit: CommitSha, paths: Sequence[PurePosixPath]
    ) -> Mapping[PurePosixPath, BlobSha]:
        contents = ((path, self._contents(repo, path, commit)) for path in paths)
        return {
            path: BlobSha(text_in(entry, "sha")) for path, entry in contents if entry is not None
        }

    def read(self, repo: RepoId, path: PurePosixPath, ref: str) -> FileRevision | None:
        """Return a file at a branch or full commit id, or None; see the port."""
        is_commit = is_commit_id(ref)  # whose files never change
        if (kept := self.trees.file(repo, ref, path)) or self.trees.lacks(repo, ref, path):
            return kept
        entry = self._contents(repo, path, ref)
        if is_commit:
            self._check_commit(repo, path, CommitSha(ref), entry)
        if entry is None:
            return None
        has_content = isinstance(entry.get("content"), str)
        data = bytes_in(entry) if has_content else self._large(repo, path, ref)
        file = FileRevision(path, data, BlobSha(text_in(entry, "sha")))
        if is_commit:
            self.trees.keep_file(repo, ref, file)
        return file

    def read_ahead(self, repo: RepoId, paths: Iterable[PurePosixPath], commit: CommitSha) -> None:
        """Get files with a request for each thirty; what it does not bring, `read` asks for."""
        blobs = self.tree(repo, commit)
        lacking = (p for p in paths if p in blobs and not self.trees.file(repo, commit, p))
        while len(asked := list(islice(lacking, _FILES_AT_ONCE))) > 1 and self._reads_many:
            query = {"ref": commit, "body": json.dumps({"files": list(map(str, asked))})}
            try:
                answer = self._http.get(self._path(repo, "file-contents"), query)
            except RemoteError:
                return  # such as: together they are larger than an answer may be
            if not answer.ok:
                self._reads_many = answer.status != MISSING  # an older Gitea
                return
            for path, entry in zip(asked, list_in(answer.json()), strict=False):
                found = entry or {}
                is_file = found.get("type") == "file" and found.get("sha") == blobs[path]
                if is_file and isinstance(found.get("content"), str):
                    file = FileRevision(path, bytes_in(found), blobs[path])
                    self.trees.keep_file(repo, commit, file)

    def _check_commit(
        self, repo: RepoId, path: PurePosixPath, commit: CommitSha, entry: Found | None
    ) -> None:
        """
        Check that a file is the commit's.

        Raises:
            RefusedError: It is not.
        """
        # Gitea prefers a branch or tag of the commit's name; trees are read by the id itself
        blob = self.tree(repo, commit).get(path)
        is_shown = entry is not None and entry.get("sha") == blob
        is_missing = entry is None and (
            blob is None or self.special_files(repo, commit).get(path, _FILE).mode == LINK
        )
        if not (is_shown or is_missing):
            raise refused_name(repo, commit)

    def _contents(self, repo: RepoId, path: PurePosixPath, ref: str) -> Found | None:
        """Return the forge's entry of a file; None if it does not exist or is a folder."""
        answer = self._http.get(self._path(repo, "contents", *path.parts), {"ref": ref})
        if answer.status == MISSING:
            return None
        document = checked(answer, f"read {path} of {repo}").json()
        return document if isinstance(document, dict) and document.get("type") == "file" else None

    def _large(self, repo: RepoId, path: PurePosixPath, ref: str) -> bytes:
        """Read a file that is too large for the contents call."""
        answer = self._http.get(self._path(repo, "raw", *path.parts), {"ref": ref})
        if not answer.ok:
            raise refusal(answer, f"read {path} of {repo}")
        return answer.body

    def blocking_rule(self, repo: RepoId, branch: str) -> str:
        """
        Return the rule that keeps us from pushing to a branch, "" if none does; see the port.

        Raises:
            NotFoundError: No such repository or branch.
            RefusedError: Its newest commit cannot be shown.
        """
        doing = f"read {branch} of {repo}"
        answer = self._http.get(self._path(repo, "branches", branch))
        if _is_unshown(answer):
            raise _unshown(repo, branch)
        entry = object_in(checked(answer, doing), doing)
        if entry.get("user_can_push") or not entry.get("protected"):
            return ""
        return str(entry.get("effective_branch_protection_name") or branch)

    def names_like(self, repo: RepoId, branch: str) -> tuple[str, ...]:
        """Return refs that may be taken for a branch; see the port."""
        folders = (("tags",), ("heads", "heads"), ("heads", "refs"), ("heads", branch))
        answers = (self._http.get(self._path(repo, "git", "refs", *path)) for path in folders)
        refs = (
            str(ref.get("ref"))
            for answer in answers
            if answer.status != MISSING
            for ref in list_in(checked(answer, f"read the refs of {repo}").json() or [])
        )
        return misleading(branch, refs)

    def _history_of(self, repo: RepoId, ref: str, size: int) -> tuple[str, Query]:
        query: Query = {
            "sha": ref if is_commit_id(ref) else f"refs/heads/{ref}",  # no tag of that name
            "stat": "false",
            "files": "false",
            "verification": "false",
            "limit": size,
        }
        return self._path(repo, "commits"), query

    def _ends_history(self, answer: ForgeResponse, repo: RepoId, ref: str, /) -> bool:
        if _is_unshown(answer):
            raise _unshown(repo, ref)
        is_empty = answer.status == CONFLICT and "empty" in answer.text
        return is_empty or super()._ends_history(answer, repo, ref)


def _is_unshown(answer: ForgeResponse) -> bool:
    """Say whether a success has no body."""
    # Gitea 1.27 cannot write a commit that is not UTF-8
    return answer.ok and not answer.body


def _unshown(repo: RepoId, ref: str) -> RefusedError:
    return RefusedError(
        f"{repo}: the forge cannot show a commit of {ref}: its author or message is not UTF-8",
        hint=f"push a {ref} without that commit: git push --force",
    )


def _is_file(entry: Found) -> bool:
    return entry.get("type") == "blob"


def _tree_entry(entry: Found) -> TreeEntry:
    return TreeEntry(text_in(entry, "path"), text_in(entry, "sha"), int(text_in(entry, "mode"), 8))
