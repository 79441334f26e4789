"""An order that a real Backstage placed, as the journeys look at it."""

from __future__ import annotations

from dataclasses import dataclass

from published import Kit
from scaffolderapi import Task

from ground.names import RepoId

TEMPLATE = "garage"


@dataclass(frozen=True)
class Ordered:
    """The team that ordered, the kit with what was filled in, and Backstage's task."""

    team: str
    kit: Kit
    task: Task

    @property
    def name(self) -> str:
        return f"garage-{self.team}"

    @property
    def repository(self) -> RepoId:
        return RepoId(self.team, self.name)
