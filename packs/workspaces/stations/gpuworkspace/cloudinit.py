"""
What the machine does when it first boots, as cloud-init's data.

Everything is an object, written as JSON, which is YAML. The version of OpenCV is a line in a file
that pip reads, and commands are lists: no value is ever part of a shell's text.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

USER = "developer"
_HOME = "/opt/workspace"
_REQUIREMENTS = f"{_HOME}-requirements.txt"


def cloud_config(spec: Mapping[str, Any]) -> str:
    """Return the user data: the developer's account, and OpenCV in an environment of its own."""
    config = {
        "users": [
            "default",
            {
                "name": USER,
                "shell": "/bin/bash",
                "lock_passwd": True,
                "ssh_authorized_keys": [spec["publicKey"]],
            },
        ],
        "package_update": True,
        "packages": ["python3-pip", "python3-venv"],
        "write_files": [
            {
                "path": _REQUIREMENTS,
                "permissions": "0644",
                # AWS's images have no display; the contrib package includes the main modules.
                "content": f"opencv-contrib-python-headless=={spec['opencvVersion']}.*\n",
            }
        ],
        "runcmd": [
            ["python3", "-m", "venv", _HOME],
            [f"{_HOME}/bin/pip", "install", "--requirement", _REQUIREMENTS],
            ["chown", "--recursive", f"{USER}:{USER}", _HOME],
        ],
    }
    return "#cloud-config\n" + json.dumps(config, indent=1)
