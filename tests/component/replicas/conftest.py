"""
An embedded platform whose garages change directly, with replicas of the service beside it.

``tests/e2e/shared_lab`` takes `add`, `figures` and `replicas` for a `platform` of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from packcopies import copied_pack
from platformsettings import settings_with
from replicas import Replicas, ServedPlatform
from tests.workers import summary

from orderkit.adapters.state_folder import PLATFORM_FILE
from orderkit.cli.connecting import load_settings
from orderkit.core.platform.service_access import AccessSettings
from orderkit.flows.team.teams import add_team
from orderkit_standins.platform import Ports
from orderkit_standins.serve_platform import EmbeddedRunRequest, running

AddTeam = Callable[[str], str]
Figures = list[str]


@pytest.fixture(scope="package")
def figures(pytestconfig: pytest.Config) -> Figures:
    """Lines for the summary of the run."""
    made: Figures = []
    summary(pytestconfig).add("replicas", lambda: made)
    return made


@pytest.fixture(scope="package")
def platform(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedPlatform]:
    pack = copied_pack(tmp_path_factory.mktemp("pack"))
    kit = pack / "templates/garage/kit.yaml"
    kit.write_text(kit.read_text().replace("how: review", "how: direct"))
    state = tmp_path_factory.mktemp("platform") / "state"
    request = EmbeddedRunRequest(state, pack, Ports(0, 0, 0, 0), ("ae86",))
    with running(request, on_step=lambda *_: None) as found:
        yield ServedPlatform(state / PLATFORM_FILE, found.platform)


@pytest.fixture(scope="package")
def replicas(
    platform: ServedPlatform, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Replicas]:
    """Replicas that limit nobody: how much a machine asks in a minute is not their subject."""
    access = AccessSettings(requests_per_minute=1_000_000)
    file = platform.file.with_name("replicas.yaml")
    settings = settings_with(load_settings(str(platform.file)), service__access=access)
    file.write_text(settings.to_yaml())
    found = Replicas(file, tmp_path_factory.mktemp("replicas"))
    yield found
    found.close()


@pytest.fixture
def add(platform: ServedPlatform) -> AddTeam:
    """Add a team; return its name."""

    def added(name: str) -> str:
        add_team(platform.platform, name, requester="user:default/test")
        return name

    return added
