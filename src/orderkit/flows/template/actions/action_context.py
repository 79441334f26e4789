"""
What a scaffolder action works with: workspace, services, and where files come from.

Actions are functions of an `ActionContext` and checked inputs; they return outputs. They change the
workspace, a tree in memory, and reach other systems only through `Services`. A task without a
platform has no `Services`; an action that needs them then fails.

Files come from a path beside template.yaml, or from a URL on the platform's forge (`source_of`).
``../`` and ``/`` lead into the template's repository, as in Backstage for a template that is
registered by URL; outside a repository they are refused, as for a file. A URL has the form of the
forge's pages, such as Gitea's ``<base>/<owner>/<repo>/src/branch/<branch>/<path>``.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Any, Protocol

from ground.errors import InvalidInputError, RefusedError, UsageError
from ground.names import MAIN, CommitSha, RepoId
from orderkit.core.platform.forge_kinds import FILE_PAGE
from orderkit.ports.catalog import Catalog
from orderkit.ports.cluster import Cluster
from orderkit.ports.forge import Forge
from orderkit.ports.portal import Portal
from orderkit.ports.processes import ConfinedRenderer
from softwaretemplates.placeholders import ReadBeside
from softwaretemplates.render import LimitError, SkeletonFile
from softwaretemplates.render.tree import EXECUTABLE_MODE, LINK_MODE, PLAIN_MODE, size_error
from softwaretemplates.size_limit import MIB, SIZE_LIMIT

Files = Mapping[PurePosixPath, bytes]
Inputs = Mapping[str, Any]
Outputs = dict[str, Any]
Schema = dict[str, Any]


@dataclass(frozen=True, slots=True)
class PublishRequest:
    """The request of ``publish:*``: these files in that repository."""

    repo: RepoId
    files: Files
    description: str
    message: str
    private: bool
    requester: str
    proof: str = ""
    agent: str = ""
    executable: frozenset[PurePosixPath] = frozenset()
    """Which of the files are executable."""
    branch: str = MAIN
    """The first branch; an order's is always ``main``."""


Publish = Callable[[PublishRequest], CommitSha]
"""Makes sure that a repository holds the files; returns the commit. Idempotent."""


@dataclass(frozen=True, slots=True)
class Services:
    """What actions may use of the platform."""

    forge: Forge
    catalog: Catalog
    cluster: Cluster
    portal: Portal
    publish: Publish
    confined: ConfinedRenderer
    own_repositories: frozenset[RepoId] = frozenset()
    """Ledger and pack: templates never write to them."""
    size_limit: int = SIZE_LIMIT
    """Most bytes that a task may hold in memory."""


@dataclass(frozen=True, slots=True)
class User:
    """The user who runs the task: a catalog reference, and the entity if the catalog has it."""

    ref: str
    entity: Mapping[str, Any] | None = None
    proof: str = ""
    """The proof of the reference; empty: it is a claim."""
    agent: str = ""
    """The AI agent that runs it on behalf of the user."""


class TemplateFolder(Protocol):
    """The folder of template.yaml. Paths are relative to it and never leave it."""

    @property
    def trusted(self) -> bool:
        """Whether it is trusted; untrusted skeletons are rendered in a confined child."""
        ...

    def tree(self, folder: PurePosixPath) -> Mapping[PurePosixPath, SkeletonFile]:
        """Return every file below a folder by its relative path; empty if there are none."""
        ...

    def read(self, path: PurePosixPath) -> SkeletonFile | None: ...

    def repository(self) -> tuple[TemplateFolder, PurePosixPath] | None:
        """Return the repository that it is in and its path there; None: it is in none."""
        ...


class MemoryFolder:
    """A template's folder in memory, from the platform's own pack."""

    trusted = True

    def __init__(self, files: Mapping[PurePosixPath, bytes | SkeletonFile]) -> None:
        self._files = {
            path: SkeletonFile(file) if isinstance(file, bytes) else file
            for path, file in files.items()
        }

    def tree(self, folder: PurePosixPath) -> Mapping[PurePosixPath, SkeletonFile]:
        return {
            path.relative_to(folder): file
            for path, file in self._files.items()
            if path.is_relative_to(folder)
        }

    def read(self, path: PurePosixPath) -> SkeletonFile | None:
        return self._files.get(path)

    def repository(self) -> None:
        return None


@dataclass(slots=True)
class ActionContext:
    """The state of a task that its steps can read and change."""

    template: TemplateFolder
    template_ref: str
    """The Template's own catalog reference."""
    platform: Services | None
    user: User
    task_id: str
    log: Callable[[str], None]
    confined: ConfinedRenderer
    """Renders untrusted skeletons."""
    dry_run: bool = False
    workspace: dict[PurePosixPath, SkeletonFile] = field(default_factory=dict)
    unseen: set[PurePosixPath] = field(default_factory=set)
    """Where steps that a dry run could not run may have put files."""
    size_limit: int = SIZE_LIMIT
    """Most bytes that the task may hold in memory; files that stay on disk count nothing."""
    is_strict: bool = True
    """Whether a skeleton that prints a value that nobody passed is refused."""
    published: set[RepoId] = field(default_factory=set)
    """Repositories that steps of this task have published."""

    @property
    def services(self) -> Services:
        """
        The platform's services.

        Raises:
            UsageError: The task runs without a platform.
        """
        if self.platform is None:
            raise UsageError(
                "this step needs a platform, and none is connected",
                hint="name one with --platform FILE, or start one with 'orderkit up'",
            )
        return self.platform

    def put(self, path: PurePosixPath, file: SkeletonFile) -> None:
        """
        Put a file into the workspace; it replaces a file of the same name.

        Raises:
            RefusedError: A folder has that name, or one of its folders is a file.
        """
        parent = next((p for p in path.parents if p in self.workspace), None)
        if parent is not None:
            raise RefusedError(f"{path}: '{parent}' is a file in the workspace, not a folder")
        if path not in self.workspace and any(p.is_relative_to(path) for p in self.workspace):
            raise RefusedError(f"{path}: is a folder in the workspace already")
        self.workspace[path] = file

    def check_size(self) -> None:
        """
        Check what the workspace holds in memory.

        Raises:
            LimitError: It is too much; the largest file is named.
        """
        held = sum(file.held_bytes for file in self.workspace.values())
        if held > self.size_limit:
            path, file = max(self.workspace.items(), key=lambda item: item[1].held_bytes)
            raise size_error(
                f"the files of all steps have {held} bytes together, at most {self.size_limit} are "
                f"allowed; the largest is {path} with {file.held_bytes}",
                held,
            )

    def holds(self, path: PurePosixPath) -> bool:
        """Say whether a file or folder of the workspace has this path."""
        return any(p.is_relative_to(path) for p in self.workspace)

    def may_lack(self, path: PurePosixPath) -> bool:
        """Say whether a step that a dry run could not run may have put something there."""
        if any(place.is_relative_to(path) for place in self.unseen):
            return path not in self.workspace
        return not self.holds(path) and any(path.is_relative_to(place) for place in self.unseen)


Run = Callable[[ActionContext, Inputs], Outputs]


@dataclass(frozen=True, slots=True)
class TemplateAction:
    """
    An action: its id, the JSON Schemas of its inputs and outputs, and what it does.

    `dry_run`: the action changes only the workspace, so a dry run runs it too; for other actions
    a dry run uses example outputs made from the schema. `remote`: the action needs a platform for
    all inputs. `check`: what a dry run can say about the inputs without calling anything.
    `renamed`: inputs of older releases, and the names as which they are read. `ignored`: inputs
    that older releases of Backstage took and did not read. `reads` and `writes`:
    paths of the workspace that the action needs there, and where it puts files.
    """

    id: str
    schema: Schema
    run: Run
    outputs: Schema = field(default_factory=dict)
    dry_run: bool = False
    remote: bool = False
    check: Callable[[ActionContext, Inputs], None] = lambda _context, _inputs: None
    renamed: Mapping[str, str] = field(default_factory=dict)
    ignored: tuple[str, ...] = ()
    reads: Callable[[Inputs], Iterable[object]] = lambda _inputs: ()
    writes: Callable[[Inputs], Iterable[object]] = lambda _inputs: ()
    is_known: bool = True
    """False: an action of other modules, which only a dry run takes."""


def is_executable(file: SkeletonFile) -> bool:
    """Say whether a file has git's mode 100755."""
    return file.mode == EXECUTABLE_MODE


def inputs_schema(required: tuple[str, ...], **properties: Schema) -> Schema:
    """Return a closed schema, because an input that nobody reads is a mistake."""
    return {
        "type": "object",
        "additionalProperties": False,
        "required": list(required),
        "properties": properties,
    }


def outputs_schema(**properties: Schema) -> Schema:
    """Return the schema of an action's outputs."""
    return {"type": "object", "properties": properties}


TEXT: Schema = {"type": "string"}
FLAG: Schema = {"type": "boolean"}
NUMBER: Schema = {"type": "number"}
MAP: Schema = {"type": "object"}
TEXTS: Schema = {"type": "array", "items": TEXT}
ANYTHING: Schema = {}


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
        self._forge.read_ahead(self._repo, inside, self._commit)
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
