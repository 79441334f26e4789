"""Small template.yaml texts, for tests that run them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import yaml


def template(*steps: Mapping[str, Any], **spec: Any) -> str:
    """Return a Template with these steps; `spec` adds parameters, output, secrets."""
    return yaml.safe_dump(
        {
            "apiVersion": "scaffolder.backstage.io/v1beta3",
            "kind": "Template",
            "metadata": {"name": "t"},
            "spec": {"type": "service", "steps": [dict(step) for step in steps], **spec},
        },
        sort_keys=False,
    )


def step(identifier: str, action: str, **inputs: Any) -> dict[str, Any]:
    """Return a step."""
    return {"id": identifier, "action": action, "input": inputs}


def log(identifier: str, message: str = "ran", **more: Any) -> dict[str, Any]:
    """Return a step that says something; `more` adds if and each."""
    return {**step(identifier, "debug:log", message=message), **more}
