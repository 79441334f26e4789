"""
What a scaffolder action works with: the task's workspace, and the platform's services.

Actions are functions of an `ActionContext` and checked inputs; they return outputs. They
change the workspace, a tree in memory, and reach other systems only through `Services`. A task
without a platform has no `Services`; an action that needs them then fails.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Any, Protocol

from ground.errors import RefusedError, UsageError
from ground.names import MAIN, CommitSha, RepoId
from orderkit.ports.catalog import Catalog
from orderkit.ports.cluster import Cluster
from orderkit.ports.forge import Forge
from orderkit.ports.portal import Portal
from orderkit.ports.processes import ConfinedRenderer
from softwaretemplates.render import SkeletonFile
from softwaretemplates.render.tree import EXECUTABLE_MODE, size_error
from softwaretemplates.size_limit import SIZE_LIMIT

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
