"""Read the YAML of an order form for the templates that write the order, which cannot parse."""

from __future__ import annotations

from typing import Any

from ground.errors import InvalidInputError
from orderkit.core.kit.yaml_settings import read_settings, yaml_roots
from orderkit.flows.platform import Platform, published_kit


def answered_settings(platform: Platform, kit_name: str, text: object) -> dict[str, Any]:
    """
    Return the answer to ``POST /v1/kits/{kit}/settings``: the part of ``spec`` that a text sets.

    Raises:
        NotFoundError: The published pack has no such kit.
        InvalidInputError: The kit takes no YAML, or the text sets what it may not set.
    """
    kit = published_kit(platform, kit_name)
    roots = yaml_roots(kit)
    if not roots:
        raise InvalidInputError(
            "kit",
            kit_name,
            "has no yamlFields: its form takes no YAML",
            hint="write yamlFields into kit.yaml, then: orderkit kit generate",
        )
    return {"spec": read_settings(kit, text, roots)}
