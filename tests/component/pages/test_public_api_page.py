"""The examples of docs/public-api.md run as shown."""

from __future__ import annotations

import os
import re
import signal
import threading
from pathlib import Path
from types import ModuleType

import pytest

from orderkit.controllers import Cluster
from orderkit_standins.testing import trial_platform

ROOT = Path(__file__).parents[3]
EXAMPLES = re.findall(r"```python\n(.*?)```", (ROOT / "docs/public-api.md").read_text(), re.DOTALL)
DEADLINE_S = 120.0


@pytest.fixture
def page() -> ModuleType:
    """All examples of the page as one module."""
    module = ModuleType("public_api_page")
    exec("\n".join(EXAMPLES), vars(module))  # noqa: S102 - our own page
    return module


def test_the_stations_test_passes(page: ModuleType) -> None:
    page.test_the_note_is_text()


def test_the_platform_example_proves_what_it_says(page: ModuleType, tmp_path: Path) -> None:
    page.try_pack(tmp_path, ROOT)


def test_the_controller_counts_and_ends_on_sigterm(page: ModuleType, tmp_path: Path) -> None:
    with trial_platform(tmp_path, ROOT, teams=["ae86"]) as platform:
        stopper = threading.Thread(target=stop_once_counted, args=(platform.cluster, page))
        stopper.start()

        page.main(str(platform.file))
        stopper.join(DEADLINE_S)

        count = platform.cluster.get(page.COUNT)
        assert count is not None
        assert count["data"] == {"garages": "0"}
        lease = platform.cluster.get(page.ObjectKey(page.LEASE, "garage-counter", page.NAMESPACE))
        assert lease is not None
        assert lease["spec"]["holderIdentity"] == "", "the Lease was given up"


def stop_once_counted(cluster: Cluster, page: ModuleType) -> None:
    """Send SIGTERM to this process once the controller has written: its handler is set by then."""
    waiting = threading.Event()
    while cluster.get(page.COUNT) is None:
        waiting.wait(0.05)
    os.kill(os.getpid(), signal.SIGTERM)
