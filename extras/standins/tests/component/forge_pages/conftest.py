"""The embedded forge served over HTTP, for tests that look at its pages."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from forgedesk import GUEST, OWNER, TOKEN, Desk

from orderkit.adapters.gitea import GiteaForge
from orderkit.web.serving import HttpServer, bind
from orderkit_standins.forge import EmbeddedForge


@pytest.fixture(scope="package")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desk]:
    forge = EmbeddedForge(tmp_path_factory.mktemp("forge"))
    server = HttpServer(forge.app, bind("forge", 0))
    server.start()
    forge.set_base_url(server.url)
    forge.ensure_user(*OWNER, admin=True)
    forge.ensure_token(OWNER[0], "t", TOKEN, ["all"])
    forge.ensure_user(*GUEST)
    client = GiteaForge(server.url, token=TOKEN)
    yield Desk(forge, client, server.url)
    client.close()
    server.stop()
    forge.close()
