"""An embedded platform whose garages change directly, with replicas of the service beside it."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from packcopies import copied_pack
from platformsettings import settings_with
from replicas import Replicas
from tests.workers import summary

from orderkit.core.platform.service_access import AccessSettings
from orderkit.flows.team.teams import add_team
from orderkit_standins.platform import Ports
from orderkit_standins.serve_platform import EmbeddedRunRequest, Running, running

AddTeam = Callable[[str], str]
Figures = list[str]


@pytest.fixture(scope="package")
def figures(pytestconfig: pytest.Config) -> Figures:
    """Lines for the summary of the run."""
    made: Figures = []
    summary(pytestconfig).add("replicas", lambda: made)
    return made


@pytest.fixture(scope="package")
def platform(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    pack = copied_pack(tmp_path_factory.mktemp("pack"))
    kit = pack / "templates/garage/kit.yaml"
    kit.write_text(kit.read_text().replace("how: review", "how: direct"))
    state = tmp_path_factory.mktemp("platform") / "state"
    request = EmbeddedRunRequest(state, pack, Ports(0, 0, 0, 0), ("ae86",))
    with running(request, on_step=lambda *_: None) as found:
        yield found


@pytest.fixture(scope="package")
def replicas(platform: Running, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Replicas]:
    """Replicas that limit nobody: how much a machine asks in a minute is not their subject."""
    folder = tmp_path_factory.mktemp("replicas")
    access = AccessSettings(requests_per_minute=1_000_000)
    file = platform.embedded.state.folder / "replicas.yaml"
    file.write_text(settings_with(platform.settings, service__access=access).to_yaml())
    found = Replicas(file, folder)
    yield found
    found.close()


@pytest.fixture
def add(platform: Running) -> AddTeam:
    """Add a team; return its name."""

    def added(name: str) -> str:
        add_team(platform.platform, name, requester="user:default/test")
        return name

    return added
