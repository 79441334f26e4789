"""
The environment in which the real ``git`` runs: nothing of the user or the machine is read.

Called by the modules that start git.
"""

from __future__ import annotations

import os
from collections.abc import Mapping


def environment(config: Mapping[str, str]) -> dict[str, str]:
    """Return an environment with this git configuration and no other."""
    found = {
        "PATH": os.environ.get("PATH", os.defpath),
        "HOME": "/nonexistent",
        "LC_ALL": "C",
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_CONFIG_COUNT": str(len(config)),
    }
    for number, (key, value) in enumerate(config.items()):
        found[f"GIT_CONFIG_KEY_{number}"] = key
        found[f"GIT_CONFIG_VALUE_{number}"] = value
    return found
