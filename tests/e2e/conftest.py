"""
Embedded platforms, and a real Backstage on each, as processes: one for each portal profile.

Runs with ``--e2e`` only; ``scripts/backstage.sh --front-end`` installs what is needed.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from changingpack import changing_pack
from commands import Command, as_process
from corpuspack import DOMAIN, whole_pack
from lab.realbackstage import PACKAGES, Backstage
from ordered import TEMPLATE, Ordered
from packcopies import copied_pack
from portalworld import World, portal_world
from published import Up, read_kit
from scaffolderapi import Scaffolder
from wildforms import import_kit

from ground.shapes import changed
from orderkit.cli.main import run

FOLDER = Path(__file__).parent
PACK = Path(__file__).parents[2] / "packs" / "agents"
AGENTS = ("BASE_DOMAIN=apps.example.org:8443", "PROJECT_ID=whisperops-lab")
_TIMEOUT_S = 600


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    wanted = config.getoption("--e2e")
    for item in items:
        if not item.path.is_relative_to(FOLDER):
            continue
        if item.get_closest_marker("timeout") is None:
            item.add_marker(pytest.mark.timeout(_TIMEOUT_S))
        if not wanted:
            item.add_marker(pytest.mark.skip(reason="a whole journey: needs --e2e"))


@pytest.fixture(scope="package")
def service_world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """As a platform is by default: the portal asks the service."""
    with portal_world(tmp_path_factory.mktemp("service"), "service", front_end=True) as found:
        yield found


@pytest.fixture(scope="package")
def natural_world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """Backstage runs the natural steps with its own actions; one kit was imported."""
    folder = tmp_path_factory.mktemp("natural")
    (folder / "pack").mkdir()
    pack = copied_pack(folder / "pack")
    import_kit("Fleet", pack, folder)
    with portal_world(folder, "natural", front_end=False, pack=pack) as found:
        yield found


@pytest.fixture(scope="package")
def plugin_world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """Orderkit's packages are in Backstage; ``scripts/plugins.sh --pack`` packs them."""
    folder = tmp_path_factory.mktemp("plugin")
    pack = changing_pack(folder / "pack")
    assert run(["kit", "generate", "--pack", str(pack)]) == 0
    with portal_world(folder, "plugin", front_end=False, pack=pack, packages=PACKAGES) as found:
        yield found


@pytest.fixture(scope="package")
def changing_world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """A garage whose kit names its changes, in a Backstage as it is: an order's page has links."""
    folder = tmp_path_factory.mktemp("changing")
    pack = changing_pack(folder / "pack")
    assert run(["kit", "generate", "--pack", str(pack)]) == 0
    with portal_world(folder, "service", front_end=True, pack=pack) as found:
        yield found


@pytest.fixture(scope="package")
def cards_world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """A garage whose kit names its changes, and Orderkit's plugin in the front end."""
    folder = tmp_path_factory.mktemp("cards")
    pack = changing_pack(folder / "pack")
    assert run(["kit", "generate", "--pack", str(pack)]) == 0
    more = ("--team", "ae86", "--team", "rx7", "--user", "guest=platform", "--user", "eve=rx7")
    with portal_world(
        folder,
        "plugin",
        front_end=True,
        pack=pack,
        packages=PACKAGES,
        more=more,
        cards=True,
        reread_s=20,
    ) as found:
        yield found


@pytest.fixture(scope="package")
def corpus_world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """Every kit of the corpus, and one that was imported, with 258 values."""
    folder = tmp_path_factory.mktemp("corpus")
    pack = whole_pack(folder / "pack")
    import_kit("Fleet", pack, folder)
    more = ("--team", "ae86", "--value", f"BASE_DOMAIN={DOMAIN}")
    with portal_world(folder, "service", front_end=True, pack=pack, more=more) as found:
        yield found


@pytest.fixture(scope="package")
def agents_world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """The agents' pack, in a portal that looks at registered files every ten seconds or so."""
    folder = tmp_path_factory.mktemp("agents")
    more = ("--team", "ae86", *(part for value in AGENTS for part in ("--value", value)))
    with portal_world(
        folder, "service", front_end=True, pack=PACK, more=more, reread_s=10
    ) as found:
        yield found


@pytest.fixture(scope="module")
def world(request: pytest.FixtureRequest) -> World:
    """The one that a test module names by its `PROFILE`, else the default."""
    profile = getattr(request.module, "PROFILE", "service")
    found: World = request.getfixturevalue(f"{profile}_world")
    return found


@pytest.fixture(scope="module")
def up(world: World) -> Up:
    return world.up


@pytest.fixture(scope="module")
def backstage(world: World) -> Backstage:
    return world.backstage


@pytest.fixture(scope="module")
def scaffolder(backstage: Backstage) -> Iterator[Scaffolder]:
    found = Scaffolder(backstage.url)
    yield found
    found.close()


@pytest.fixture(scope="module")
def ordered(scaffolder: Scaffolder, new_team: Callable[[], str], up: Up) -> Ordered:
    """A stage kit that a task of Backstage's scaffolder ordered for a team of its own."""
    team = new_team()
    kit = read_kit(up, "garage", {"team_name": team, "stage": "stage2"})
    return Ordered(team, kit, scaffolder.run(TEMPLATE, kit.values))


@pytest.fixture(scope="module")
def orderkit(up: Up) -> Command:
    """Run ``orderkit ARGUMENTS`` as a process."""
    return as_process(up.state / "platform.yaml")


@pytest.fixture(scope="module")
def portal_file(up: Up, backstage: Backstage) -> Path:
    """A platform.yaml whose portal is the real Backstage: its catalog, not the embedded one."""
    portal = changed(up.settings.portal, url=backstage.url)
    path = up.state / "with-backstage.yaml"
    path.write_text(changed(up.settings, portal=portal).to_yaml())
    return path


_numbers = itertools.count(1)


@pytest.fixture(scope="module")
def new_team(orderkit: Command) -> Callable[[], str]:
    """Add a team that nobody else uses."""

    def add() -> str:
        team = f"crew-{next(_numbers):03d}"
        done = orderkit("team", "add", team)
        assert done.code == 0, done.err
        return team

    return add
