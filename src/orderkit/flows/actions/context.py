"""
What a scaffolder action works with: the task's workspace, and the platform's services.

Actions are functions of an `ActionContext` and checked inputs; they return outputs. They
change the workspace, a tree in memory, and reach the world only through `Services`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Any, Protocol

from orderkit.core.names import CommitSha, RepoId
from orderkit.core.render import SkeletonFile
from orderkit.ports.catalog import Catalog
from orderkit.ports.cluster import Cluster
from orderkit.ports.forge import Forge
from orderkit.ports.portal import Portal

Files = Mapping[PurePosixPath, bytes]
Inputs = Mapping[str, Any]
Outputs = dict[str, Any]
Schema = dict[str, Any]


@dataclass(frozen=True, slots=True)
class PublishRequest:
    """What ``publish:gitea`` asks for: these files in that repository."""

    repo: RepoId
    files: Files
    description: str
    message: str
    private: bool
    requester: str


@dataclass(frozen=True, slots=True)
class Published:
    """Where a published repository is. `contents_url` ends in ``/src/branch/<branch>/``."""

    clone_url: str
    contents_url: str
    commit: CommitSha


class Publish(Protocol):
    """Make sure a repository holds the files; safe to call again. Raises what its maker says."""

    def __call__(self, request: PublishRequest, /) -> Published: ...


@dataclass(frozen=True, slots=True)
class Services:
    """What actions may use of the platform."""

    forge: Forge
    catalog: Catalog
    cluster: Cluster
    portal: Portal
    publish: Publish


@dataclass(frozen=True, slots=True)
class User:
    """Who runs the task: a catalog reference, and the entity if the catalog knows it."""

    ref: str
    entity: Mapping[str, Any] | None = None


@dataclass(slots=True)
class ActionContext:
    """One task's state as its steps see it."""

    template_files: Files
    """The folder of template.yaml, by paths relative to it."""
    services: Services
    user: User
    task_id: str
    log: Callable[[str], None]
    workspace: dict[PurePosixPath, SkeletonFile] = field(default_factory=dict)


Run = Callable[[ActionContext, Inputs], Outputs]


@dataclass(frozen=True, slots=True)
class Action:
    """An action: its id, the JSON Schema of its inputs, and what it does."""

    id: str
    schema: Schema
    run: Run


def inputs_schema(required: tuple[str, ...], **properties: Schema) -> Schema:
    """Return a closed schema: an input that nobody reads is a mistake."""
    return {
        "type": "object",
        "additionalProperties": False,
        "required": list(required),
        "properties": properties,
    }


TEXT: Schema = {"type": "string"}
FLAG: Schema = {"type": "boolean"}
NUMBER: Schema = {"type": "number"}
MAP: Schema = {"type": "object"}
TEXTS: Schema = {"type": "array", "items": TEXT}
ANYTHING: Schema = {}
