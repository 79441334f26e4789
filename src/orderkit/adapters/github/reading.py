"""
Read from GitHub: who we are, branches, trees, files and history.

Files are read through the tree of a commit and by their blob id, so a tag or branch with a
misleading name cannot stand for another one, and nothing is read twice.

Argo CD reads an organisation as a second App, which may only read contents (`GitHubReaders`).
GitHub makes no accounts by its API. Argo CD knows Apps itself (``githubAppID`` and so on in a
Secret) and renews their tokens. The App of platform.yaml, ``forge.argocdApp``, reads every
organisation where it is installed: narrower per team is only another App for each.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path, PurePosixPath

from ground.errors import AccessError, NotFoundError, RefusedError
from ground.names import BlobSha, CommitSha, RepoId
from ground.secrets import register
from orderkit.adapters.forges.answers import ForgeResponse
from orderkit.adapters.forges.calls import (
    CONFLICT,
    INVALID,
    MISSING,
    Found,
    bytes_in,
    checked,
    is_commit_id,
    list_in,
    object_in,
    text_in,
)
from orderkit.adapters.forges.reading import SharedReading, TreeEntry, misleading
from orderkit.adapters.forges.transport import Query, path_of
from orderkit.adapters.github.transport import GitHubCalls
from orderkit.core.platform.neighbours import ReleaseVerdict, read_release
from orderkit.core.platform.settings import ForgeApp
from orderkit.ports.forge import LINK, Commit, FileRevision, ReaderAccount

DEFAULT_BRANCH = "main"
_NEWER_S = 20.0
"""How long a head that we replaced is taken for ours: GitHub may show the old one for a while."""
_OLDEST = (3, 17)


class GitHubReading(GitHubCalls, SharedReading):
    """The part of the port that only reads."""

    _replaced: dict[tuple[RepoId, str, str], tuple[CommitSha, float]]
    """By repository, branch and old head: the commit that we put there, and when."""

    def version(self) -> str:
        """Return the server's version text; see `ports.forge.Forge`."""
        if self._http.is_cloud:
            return "GitHub.com"
        doing = f"ask {self.base_url} for its version"
        answer = self._http.get("/meta")
        if answer.status == MISSING:
            raise NotFoundError(
                f"{doing}: 404, there is no GitHub at that address",
                hint="forge.url is the address of the server, without /api/v3",
            )
        return text_in(object_in(checked(answer, doing), doing), "installed_version")

    def judge_release(self) -> ReleaseVerdict:
        """Return how well this server's release is known; see the port."""
        version = self.version()
        if version.endswith("+orderkit"):
            return ReleaseVerdict(version, "embedded", f"embedded forge, as GitHub ({version})")
        if self._http.is_cloud:
            detail = "GitHub.com: read from its descriptions, no suite ran against it"
            return ReleaseVerdict(version, "supported", detail)
        release = read_release(version)
        if release is not None and release.series < _OLDEST:
            detail = f"GitHub Enterprise Server {version[:40]} is older than 3.17"
            return ReleaseVerdict(version, "too old", detail, "upgrade it to 3.17 or newer")
        detail = f"GitHub Enterprise Server {version[:40]}: read from its description"
        return ReleaseVerdict(version, "supported", detail)

    def user(self) -> str:
        """Return the login name behind our credentials; see the port."""
        if self._http.app is not None:
            return f"{text_in(self._http.as_app('GET', '/app'), 'slug')}[bot]"
        return text_in(self._object("/user", "read who we are"), "login")

    @cached_property
    def identity(self) -> tuple[str, str]:
        """Name and address of our account, as GitHub gives them to its commits."""
        login = self.user()
        number = "" if self._http.app else self._object("/user", "read who we are").get("id")
        address = f"{number}+{login}" if number else login
        return login, f"{address}@users.noreply.github.com"

    def head(self, repo: RepoId, branch: str = DEFAULT_BRANCH) -> CommitSha | None:
        """Return the commit a branch points to, or None; see the port."""
        doing = f"read branch {branch} of {repo}"
        answer = self._http.get(self._path(repo, "git", "ref", f"heads/{branch}"))
        if answer.status in (MISSING, CONFLICT):  # 409: the repository is empty
            return None
        ref = object_in(checked(answer, doing), doing)
        return self._newest(repo, branch, CommitSha(text_in(ref.get("object"), "sha")))

    def _newest(self, repo: RepoId, branch: str, head: CommitSha) -> CommitSha:
        """Return the head, or what we put in its place a moment ago."""
        while (entry := self._replaced.get((repo, branch, head))) is not None:
            if time.monotonic() - entry[1] > _NEWER_S:
                del self._replaced[repo, branch, head]
                break
            head = entry[0]
        return head

    def _all_entries(self, repo: RepoId, commit: str) -> list[TreeEntry]:
        entries, is_whole = self._entries(repo, commit, recursive=True)
        return entries if is_whole else list(self._walked(repo, commit, PurePosixPath()))

    def _walked(self, repo: RepoId, sha: str, folder: PurePosixPath) -> Iterator[TreeEntry]:
        """Yield all entries of a tree that GitHub cuts off."""
        for entry in self._direct(repo, sha):
            path = folder / entry.path
            yield TreeEntry(str(path), entry.sha, entry.mode)
            if entry.is_folder:
                yield from self._walked(repo, entry.sha, path)

    def _children(
        self, repo: RepoId, _commit: CommitSha, _path: PurePosixPath, sha: str, /
    ) -> list[TreeEntry]:
        return self._direct(repo, sha)

    def _direct(self, repo: RepoId, sha: str) -> list[TreeEntry]:
        """
        Return the direct entries of a commit or folder.

        Raises:
            RefusedError: GitHub cuts off even these, and has no second page.
        """
        entries, is_whole = self._entries(repo, sha, recursive=False)
        if not is_whole:
            raise RefusedError(
                f"{repo}: folder {sha[:8]} has more entries than GitHub lists (100,000, or 7 MB)",
                hint="spread its files over several folders, or split the repository",
            )
        return entries

    def _entries(self, repo: RepoId, sha: str, *, recursive: bool) -> tuple[list[TreeEntry], bool]:
        """Return the entries of a tree, and whether they are all."""
        query = {"recursive": "1"} if recursive else None
        answer = self._http.get(self._path(repo, "git", "trees", sha), query)
        doing = f"read the tree of {repo}"
        if answer.status in (MISSING, CONFLICT, INVALID):
            raise NotFoundError(f"{repo} has no commit {sha}")
        tree = object_in(checked(answer, doing), doing)
        entries = [
            TreeEntry(text_in(item, "path"), text_in(item, "sha"), int(text_in(item, "mode"), 8))
            for item in list_in(tree.get("tree") or [])
        ]
        # cut off at 100,000 entries or 7 MB
        return entries, not tree.get("truncated")

    def blobs(
        self, repo: RepoId, commit: CommitSha, paths: Sequence[PurePosixPath]
    ) -> Mapping[PurePosixPath, BlobSha]:
        """
        Return the blob ids of those of `paths` that exist at a commit.

        Raises:
            NotFoundError: No such repository or commit.
        """
        tree = self.tree(repo, commit)
        return {path: tree[path] for path in paths if path in tree}

    def read(self, repo: RepoId, path: PurePosixPath, ref: str) -> FileRevision | None:
        """Return a file at a branch or full commit id, or None; see the port."""
        commit = CommitSha(ref) if is_commit_id(ref) else self.head(repo, ref)
        if commit is None:
            return None
        if kept := self.trees.file(repo, commit, path):
            return kept
        try:
            sha = self.tree(repo, commit).get(path)
        except NotFoundError:
            return None
        special = self.special_files(repo, commit).get(path)
        if sha is None or (special is not None and special.mode == LINK):
            return None
        file = self.trees.file(repo, commit, path) or FileRevision(path, self._blob(repo, sha), sha)
        self.trees.keep_file(repo, commit, file)
        return file

    def _blob(self, repo: RepoId, sha: BlobSha) -> bytes:
        doing = f"read blob {sha[:8]} of {repo}"
        return bytes_in(self._object(self._path(repo, "git", "blobs", sha), doing))

    def names_like(self, repo: RepoId, branch: str) -> tuple[str, ...]:
        """Return refs that may be taken for a branch; see the port."""
        short_names = (branch, f"heads/{branch}", f"refs/heads/{branch}")
        prefixes = [f"tags/{name}" for name in short_names]
        prefixes += [f"heads/{name}" for name in short_names[1:]]
        refs: set[str] = set()
        for prefix in prefixes:
            answer = self._http.get(self._path(repo, "git", "matching-refs", prefix))
            if answer.status == CONFLICT:  # the repository is empty
                return ()
            found = checked(answer, f"read the refs of {repo}").json()
            refs |= {str(ref.get("ref")) for ref in list_in(found or [])}
        return misleading(branch, refs)

    def _history_of(self, repo: RepoId, ref: str, size: int) -> tuple[str, Query] | None:
        start = ref if is_commit_id(ref) else self.head(repo, ref)
        query: Query = {"sha": start or "", "per_page": size}
        return (self._path(repo, "commits"), query) if start else None

    def _ends_history(self, answer: ForgeResponse, _: RepoId, _ref: str, /) -> bool:
        return answer.status in (MISSING, CONFLICT, INVALID)

    def _commit_of(self, entry: Found) -> Commit:
        commit = super()._commit_of(entry)
        # GitHub's answers lack the last line end that git has
        is_cut = commit.message and not commit.message.endswith("\n")
        return replace(commit, message=f"{commit.message}\n") if is_cut else commit


class GitHubReaders(GitHubCalls):
    """The part of the port about credentials that read one organisation."""

    _argocd_app: ForgeApp | None

    def add_reader(self, org: str) -> ReaderAccount:
        """
        Return the App that platform.yaml names for Argo CD; nothing is made. See the port.

        Raises:
            NotFoundError: No such organisation, or the App's key cannot be read.
            AccessError: platform.yaml names no such App.
        """
        app = self._argocd_app
        if app is None:
            raise AccessError(
                f"add an account that reads {org}: GitHub makes none by its API",
                hint="name a GitHub App that may read (forge.argocdApp in platform.yaml), or a"
                " folder with a token for each team: forge.teamTokenFolder",
            )
        if self._optional(path_of("orgs", org), f"look for organisation {org}") is None:
            raise NotFoundError(f"there is no organisation {org}")
        secret = app_secret(app, self._http.base_url, self._http.api_url)
        return ReaderAccount(f"github-app-{app.id}", "", secret)

    def remove_reader(self, org: str, name: str) -> None:
        """Do nothing: the App is the owner's, and Argo CD's Secret goes. See the port."""


def app_secret(app: ForgeApp, base_url: str, api_url: str) -> dict[str, str]:
    """
    Return the entries of Argo CD's Secret for a GitHub App (Argo CD, "Private Repositories").

    Args:
        base_url: Where people find GitHub.
        api_url: Where its API is; "/PATH" means below `base_url`.

    Raises:
        NotFoundError: The App's key cannot be read.
    """
    try:
        key = Path(app.private_key_file).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise NotFoundError(
            f"the key of GitHub App {app.id} cannot be read from {app.private_key_file}",
            hint="check forge.argocdApp.privateKeyFile in platform.yaml",
        ) from error
    register(key)
    secret = {"githubAppID": str(app.id), "githubAppPrivateKey": key}
    if app.installation:
        secret["githubAppInstallationID"] = str(app.installation)
    url = f"{base_url}{api_url}" if api_url.startswith("/") else api_url
    if url != "https://api.github.com":
        secret["githubAppEnterpriseBaseUrl"] = url
    return secret
