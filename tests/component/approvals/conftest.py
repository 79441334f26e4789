"""A platform whose garage asks for approval."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from approvaldesk import Desk, approval_pack, new_desk
from commands import Command, in_process
from forgeusers import ForgeUser, embedded_admin

from orderkit.flows.platform import Platform
from orderkit_standins.platform import Ports
from orderkit_standins.serve_platform import EmbeddedRunRequest, Running, running


@pytest.fixture(scope="package")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    folder = tmp_path_factory.mktemp("approvals")
    pack = approval_pack(folder / "pack")
    request = EmbeddedRunRequest(folder / "state", pack, Ports(0, 0, 0, 0), ())
    with running(request, on_step=lambda *_: None) as started:
        yield started


@pytest.fixture
def platform(site: Running) -> Platform:
    return site.platform


@pytest.fixture(scope="package")
def forge_admin(site: Running) -> ForgeUser:
    """Return the forge's site admin, who is also the platform's account."""
    return embedded_admin(site.settings.forge.url, site.embedded.state.folder)


@pytest.fixture
def desk(site: Running, forge_admin: ForgeUser) -> Iterator[Desk]:
    """A team of its own, whose people are of the platform team for one test at most."""
    made = new_desk(site.platform, forge_admin)
    yield made
    for each in (made.eve, made.frank, made.carol):
        forge_admin.call("DELETE", f"/repos/{made.platform.ledger}/collaborators/{each.login}")


@pytest.fixture
def orderkit(site: Running, capsys: pytest.CaptureFixture[str]) -> Command:
    """Run ``orderkit ARGUMENTS`` against the platform."""
    return in_process(site.embedded.state.folder / "platform.yaml", capsys)
