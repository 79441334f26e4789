"""A platform that runs as a process; its kits as its portal sees them and as ours runs them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

import pytest
import yaml

from ground.names import CommitSha
from orderkit.adapters.processes.confined_rendering import judge_confined
from orderkit.core.kit.pack import Files
from orderkit.core.platform.settings import PlatformSettings
from orderkit.core.portal.profile import natural_path
from orderkit.flows.platform import Platform, pack_files, pack_snapshot
from orderkit.flows.template import scaffolder
from orderkit.flows.template.actions.action_context import PublishRequest
from softwaretemplates.template import Template, parse_template


@dataclass(frozen=True)
class Up:
    """An embedded platform that runs as a process of its own."""

    state: Path
    settings: PlatformSettings
    platform: Platform


@dataclass(frozen=True)
class Kit:
    """A published kit with form values: its natural template and what lies beside it."""

    name: str
    template: Template
    files: Files
    values: Mapping[str, Any]
    source: PurePosixPath

    @property
    def entity(self) -> Mapping[str, Any]:
        """The whole natural template as an object."""
        found: dict[str, Any] = yaml.safe_load(self.files[self.source])
        return found


def read_kit(up: Up, name: str, values: Mapping[str, Any]) -> Kit:
    """Read a kit from the forge; complete the values with the form's defaults, as the form does."""
    files = kit_folder(up.platform, name)
    source = natural_path(PurePosixPath(), files)
    template = parse_template(files[source], name=f"{name}/{source}")
    return Kit(name, template, files, template.validate(values), source)


def kit_folder(platform: Platform, name: str) -> Files:
    """Return the files of a published kit's template, by their paths in its folder."""
    pack, folder = pack_snapshot(platform), PurePosixPath("templates", name)
    paths = [path for path in pack.blobs if path.is_relative_to(folder)]
    files = pack_files(platform, pack.commit, paths)
    return {path.relative_to(folder): data for path, data in files.items()}


class _Seen(Exception):  # noqa: N818 - no error: the run ends here
    """What our interpreter was about to publish."""

    def __init__(self, request: PublishRequest) -> None:
        super().__init__()
        self.request = request


def wanted_repository(up: Up, kit: Kit, *, requester: str) -> PublishRequest:
    """Run a kit's template in our own interpreter as far as its first write, and return that."""

    def publish(request: PublishRequest) -> CommitSha:
        raise _Seen(request)

    platform = up.platform
    services = scaffolder.Services(
        forge=platform.forge,
        catalog=platform.catalog,
        cluster=platform.cluster,
        portal=platform.portal,
        publish=publish,
        confined=judge_confined,
    )
    with pytest.raises(_Seen) as seen:
        scaffolder.run(
            kit.template,
            kit.values,
            files=kit.files,
            services=services,
            user=scaffolder.User(requester),
            task_id="ours",
            on_step=lambda _event: None,
        )
    return seen.value.request
