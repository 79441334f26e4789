"""Schemas of Kubernetes' own kinds are made when somebody asks for them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

STARTED = """
import sys
from pathlib import Path
from orderkit.adapters.folders.pack_folder import reference_pack
from orderkit_standins.cluster import kinds
from orderkit_standins.platform import Ports
from orderkit_standins.serve_platform import EmbeddedRunRequest, running

request = EmbeddedRunRequest(Path(sys.argv[1]), reference_pack(), Ports(0, 0, 0, 0), ("ae86",))
with running(request, on_step=lambda *_: None):
    print(kinds._schemas.cache_info().currsize)
"""
KINDS = 8
"""Those of which a platform has objects: Namespaces, ConfigMaps, CRDs, roles, policies."""


def test_a_platform_that_starts_makes_those_of_the_kinds_that_it_writes(tmp_path: Path) -> None:
    command = [sys.executable, "-c", STARTED, str(tmp_path / "state")]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120)

    assert int(done.stdout.split()[-1]) <= KINDS
