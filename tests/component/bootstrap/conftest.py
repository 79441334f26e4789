"""An embedded platform that nobody has bootstrapped, and commands against it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from commands import Command, in_process
from platformsettings import settings_with

from orderkit.adapters.folders.pack_folder import reference_pack
from orderkit.cli.connecting import connect
from orderkit.core.platform.installation import Installation, PlatformTarget
from orderkit.core.platform.settings import PlatformSettings
from orderkit.flows.platform import Platform
from orderkit_standins.platform import EmbeddedPlatform, Ports


@dataclass(frozen=True)
class Bare:
    """A platform whose parts run; nothing is published on it. No service runs."""

    folder: Path
    settings: PlatformSettings
    platform: Platform

    def written(self, file: str, **changes: Any) -> Path:
        """Write another platform.yaml for the same platform; return its path."""
        path = self.folder / f"{file}.yaml"
        path.write_text(settings_with(self.settings, **changes).to_yaml())
        return path


def bare(folder: Path) -> Iterator[Bare]:
    """Start the parts of a platform, and stop them."""
    embedded = EmbeddedPlatform(
        folder / "state", pack=reference_pack(), ports=Ports(0, 0, 0, 0), teams=("ae86",)
    )
    try:
        settings = settings_with(embedded.start(), Installation(PlatformTarget.CLUSTER))
        embedded.service_socket.close()  # nobody serves there
        yield Bare(folder, settings, connect(settings))
    finally:
        embedded.stop()


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bare]:
    """One platform for a module, used as one on a cluster would be."""
    yield from bare(tmp_path_factory.mktemp("bare"))


@pytest.fixture
def orderkit(site: Bare, capsys: pytest.CaptureFixture[str]) -> Command:
    """Run ``orderkit ARGUMENTS`` against it."""
    return in_process(site.written("platform"), capsys)
