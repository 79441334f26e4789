"""A platform of which a test names the ports that it needs."""

from __future__ import annotations

from typing import Any

from ground.names import RepoId
from orderkit.flows.platform import Platform
from orderkit.ports.clock import SystemClock


def platform_of(cluster: Any, **parts: Any) -> Platform:
    """Return a platform without the parts that are not named: whoever needs them fails."""
    ports = "forge catalog portal confined run_program signatures pipeline_functions"
    missing: dict[str, Any] = dict.fromkeys(ports.split())
    ledger, pack = RepoId("platform", "ledger"), RepoId("platform", "pack")
    whole = {"clock": SystemClock(), "pack_repo": pack, "ledger": ledger, **missing, **parts}
    return Platform("test", cluster=cluster, **whole)
