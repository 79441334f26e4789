"""
Where files come from: a path beside template.yaml, or a URL on the platform's forge.

``../`` and ``/`` lead into the template's repository, as in Backstage for a template that is
registered by URL; outside a repository they are refused, as for a file. A URL has the form of
the forge's pages, such as Gitea's ``<base>/<owner>/<repo>/src/branch/<branch>/<path>``.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath

from ground.errors import InvalidInputError
from ground.names import CommitSha, RepoId
from orderkit.core.platform.forge_kinds import FILE_PAGE
from orderkit.flows.template.actions.action_context import ActionContext, TemplateFolder
from orderkit.ports.forge import Forge
from softwaretemplates.placeholders import ReadBeside
from softwaretemplates.render import LimitError, SkeletonFile
from softwaretemplates.render.tree import LINK_MODE, PLAIN_MODE, size_error
from softwaretemplates.size_limit import MIB, SIZE_LIMIT

FETCHED_FILES_MAX = 5_000
"""Most files of one fetch from the forge: each is a request."""
_SOURCE_URL = re.compile(
    r"(?P<base>https?://.+)/(?P<owner>[^/]+)/(?P<repo>[^/]+)/" + FILE_PAGE + r"/"
    r"(?P<ref>[^/]+)(?:/(?P<path>.*?))?/?\Z"
)


class ForgeFolder:
    """A folder of a repository at one commit."""

    def __init__(
        self,
        forge: Forge,
        repo: RepoId,
        commit: CommitSha,
        root: PurePosixPath,
        *,
        trusted: bool = False,
        size_limit: int = SIZE_LIMIT,
    ) -> None:
        self._forge, self._repo, self._commit, self._root = forge, repo, commit, root
        self.trusted, self._size_limit = trusted, size_limit
        self._modes: Mapping[PurePosixPath, int] | None = None

    def tree(self, folder: PurePosixPath) -> Mapping[PurePosixPath, SkeletonFile]:
        """
        Return every file below a folder by its path relative to it; links as links.

        Raises:
            LimitError: There are too many, or too large together to be held in memory.
        """
        start = self._root / folder
        inside = [
            path for path in self._file_modes() if path.is_relative_to(start) and path != start
        ]
        if len(inside) > FETCHED_FILES_MAX:
            raise LimitError(
                f"{start}: has {len(inside)} files; at most {FETCHED_FILES_MAX} are fetched",
                hint="fetch its folders in steps of their own",
            )
        files: dict[PurePosixPath, SkeletonFile] = {}
        total = 0
        for path in inside:
            file = self._file(path)
            if file is None:
                continue
            total += file.size
            if total > self._size_limit:
                raise size_error(
                    f"{path}: has {file.size} bytes, with which {total} bytes are fetched; at most "
                    f"{self._size_limit} are allowed",
                    total,
                )
            files[path.relative_to(start)] = file
        return files

    def read(self, path: PurePosixPath) -> SkeletonFile | None:
        return self._file(self._root / path)

    def repository(self) -> tuple[ForgeFolder, PurePosixPath]:
        top = PurePosixPath()
        whole = ForgeFolder(
            self._forge,
            self._repo,
            self._commit,
            top,
            trusted=self.trusted,
            size_limit=self._size_limit,
        )
        return whole, self._root

    def _file_modes(self) -> Mapping[PurePosixPath, int]:
        if self._modes is None:
            special = self._forge.special_files(self._repo, self._commit)
            self._modes = {
                path: special[path].mode if path in special else PLAIN_MODE
                for path in self._forge.tree(self._repo, self._commit)
            }
        return self._modes

    def _file(self, path: PurePosixPath) -> SkeletonFile | None:
        mode = self._file_modes().get(path)
        if mode == LINK_MODE:
            return SkeletonFile(b"", symlink="?")  # the target does not matter: links are refused
        revision = None if mode is None else self._forge.read(self._repo, path, self._commit)
        return SkeletonFile(revision.data, mode or PLAIN_MODE) if revision else None


@dataclass(frozen=True, slots=True)
class FetchedPath:
    """The source that a path or URL names: a path in a folder."""

    url: str
    folder: TemplateFolder
    path: PurePosixPath

    def tree(self) -> Mapping[PurePosixPath, SkeletonFile]:
        """
        Return the files below it by paths relative to it, with their modes.

        Raises:
            InvalidInputError: The folder does not exist.
        """
        files = self.folder.tree(self.path)
        if not files:
            raise InvalidInputError(
                "url", self.url, "holds no file", hint="check the folder's name"
            )
        return files

    def file(self) -> SkeletonFile:
        """
        Return the one file with its mode.

        Raises:
            InvalidInputError: The file does not exist.
        """
        file = self.folder.read(self.path)
        if file is None:
            raise InvalidInputError("url", self.url, "is not a file", hint="check its name")
        return file


def source_of(context: ActionContext, url: str) -> FetchedPath:
    """
    Resolve a path or URL to its source.

    Raises:
        InvalidInputError: It leaves the template's folder, or is not on the platform's forge.
    """
    if "://" not in url:
        return _beside(url, context.template)
    repo, commit, path = _on_forge(context, url)
    folder = ForgeFolder(
        context.services.forge, repo, commit, PurePosixPath(), size_limit=context.size_limit
    )
    return FetchedPath(url, folder, path)


def _beside(url: str, folder: TemplateFolder) -> FetchedPath:
    path = PurePosixPath(url)
    if ".." not in path.parts and not path.is_absolute():
        return FetchedPath(url, folder, path)
    repository = folder.repository()
    if repository is None:
        raise InvalidInputError(
            "url",
            url,
            "leaves the folder of template.yaml",
            hint="Backstage refuses it for a template that is a file, and resolves it for one that "
            "is registered by URL: to run it so, name its checkout with --repository DIR",
        )
    whole, place = repository
    start = PurePosixPath() if path.is_absolute() else place
    target = PurePosixPath(posixpath.normpath(start / url.lstrip("/")))
    if ".." in target.parts:
        raise InvalidInputError(
            "url", url, "leaves the template's repository", hint="give the URL of the other one"
        )
    return FetchedPath(url, whole, target)


def reader_beside(folder: TemplateFolder) -> ReadBeside:
    """Return what reads the files that placeholders of a template name, as URLs of steps do."""

    def read(url: str) -> bytes:
        file = _beside(url, folder).file()
        if file.symlink is not None or file.size > MIB:
            raise InvalidInputError("url", url, "is a symbolic link, or has more than 1 MiB")
        return file.data

    return read


def _on_forge(context: ActionContext, url: str) -> tuple[RepoId, CommitSha, PurePosixPath]:
    forge = context.services.forge
    match = _SOURCE_URL.match(url)
    if match is None or match["base"] != forge.base_url:
        raise InvalidInputError(
            "url",
            url,
            "is not a path on this platform's forge",
            hint=f"the form is {forge.base_url}/<owner>/<repo>/src/branch/<branch>/<path>",
        )
    repo = RepoId(match["owner"], match["repo"])
    commit = forge.head(repo, match["ref"])
    if commit is None:
        raise InvalidInputError("url", url, "names a repository or branch that does not exist")
    return repo, commit, PurePosixPath(match["path"] or ".")
