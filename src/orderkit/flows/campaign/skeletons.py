"""
What a kit's skeleton renders for an order: with the pack as it is, and as it was at a commit.

An order's record names the commit of the pack that it was placed from, or brought to later. That is
a commit of the pack's own repository, so the platform's copy is searched for the one that was
published from it.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import PurePosixPath

from ground.names import OrderId, TeamName
from orderkit.core.kit.change_forms import order_data
from orderkit.core.kit.literals import PACK_COMMIT
from orderkit.core.kit.model import Kit
from orderkit.core.order.order_file import OrderFile
from orderkit.flows.platform import Platform, RepositorySnapshot, pack_snapshot
from orderkit.flows.template import scaffolder
from orderkit.flows.template.published_templates import TemplateSource, template_at

_PUBLICATIONS = 500
"""How many publications of the pack are searched for a commit."""
Files = Mapping[PurePosixPath, bytes]


@dataclass
class Skeletons:
    """Renders the skeleton of one kit; reads each version of the pack once."""

    platform: Platform
    kit: Kit
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _by_commit: dict[str, TemplateSource | None] = field(default_factory=dict)
    _present: TemplateSource | None = None

    def now(self, record: OrderFile, order: OrderId, team: TeamName) -> dict[PurePosixPath, bytes]:
        """
        Return the files that the skeleton renders now.

        Raises:
            InvalidInputError: The form refuses the values that the order was placed with.
            NotFoundError: The pack has no template of the kit.
        """
        return self._rendered(self._published(), record, order, team)

    def _published(self) -> TemplateSource | None:
        with self._lock:
            if self._present is None:
                files = pack_snapshot(self.platform)
                self._present = template_at(self.platform, files, self.kit.name)
            return self._present

    def then(
        self, record: OrderFile, order: OrderId, team: TeamName
    ) -> dict[PurePosixPath, bytes] | None:
        """
        Return the files that it rendered at the record's commit; None: nobody knows that commit.

        Raises:
            InvalidInputError: The form refused the values then, too.
        """
        with self._lock:
            if record.pack_commit not in self._by_commit:
                source = self._published_from(record.pack_commit) if record.pack_commit else None
                self._by_commit[record.pack_commit] = source
            source = self._by_commit[record.pack_commit]
        return self._rendered(source, record, order, team) if source else None

    @property
    def commit(self) -> str:
        """The commit of the pack's own repository that is published; empty: not known."""
        return _commit_of(self._published())

    def _published_from(self, commit: str) -> TemplateSource | None:
        forge, repo = self.platform.forge, self.platform.pack_repo
        path = PurePosixPath("templates", self.kit.name, "template.yaml")
        for publication in forge.commits(repo, path=path, limit=_PUBLICATIONS):
            files = RepositorySnapshot(publication.id, forge.tree(repo, publication.id))
            source = template_at(self.platform, files, self.kit.name)
            if _commit_of(source) == commit:
                return source
        return None

    def _rendered(
        self, source: TemplateSource | None, record: OrderFile, order: OrderId, team: TeamName
    ) -> dict[PurePosixPath, bytes]:
        if source is None:
            return {}
        values = order_data(self.kit, record.ordered, order=order, team=team)
        result = scaffolder.run(
            source.template,
            source.template.validate(values),
            files=source.folder,
            services=None,
            user=scaffolder.User(record.requester),
            task_id=f"order-{order}",
            on_step=lambda _: None,
            options=scaffolder.TaskOptions(dry_run=True),
        )
        return {path: file.data for path, file in result.workspace.items()}


def _commit_of(source: TemplateSource | None) -> str:
    """Return the commit that a template was published from."""
    schema = source.template.properties.get(PACK_COMMIT) if source else None
    return str((schema or {}).get("default") or "")
