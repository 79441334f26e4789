"""An embedded platform that the attacks share, its forge's users, and commands against it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from orderkit.adapters.embedded.platform import Ports
from orderkit.adapters.folders.pack_folder import reference_pack
from orderkit.cli.serving.embedded_platform import EmbeddedRunRequest, Running, running


@pytest.fixture(scope="package")
def platform(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """Run the reference pack with team ae86."""
    state = tmp_path_factory.mktemp("attacked") / "state"
    request = EmbeddedRunRequest(state, reference_pack(), Ports(0, 0, 0, 0), ("ae86",))
    with running(request, on_step=lambda *_: None) as started:
        yield started
