"""The JSON Schemas of files that people write, for their editors: ``orderkit schema``."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from orderkit.core.campaign.definition import Campaign
from orderkit.core.documents import document_schema
from orderkit.core.kit.kit_file import kit_schema
from orderkit.core.order.team_file import TeamFile
from orderkit.core.plan.price_table import KINDS, PriceFile
from orderkit.core.platform.settings import PlatformSettings

EDITOR_SCHEMAS: Mapping[str, tuple[str, Callable[[], Mapping[str, Any]]]] = {
    "kit": ("kit.yaml of an Orderkit pack", kit_schema),
    "platform": (
        "platform.yaml of Orderkit",
        lambda: document_schema(PlatformSettings, ("Platform",), "name"),
    ),
    "team": (
        "team.yaml of Orderkit's ledger",
        lambda: document_schema(TeamFile, ("Team",), "team"),
    ),
    "campaign": (
        "campaigns/<name>.yaml of Orderkit's ledger",
        lambda: document_schema(Campaign, ("Campaign",), "name"),
    ),
    "prices": (
        "gitops/prices.yaml of an Orderkit pack",
        lambda: document_schema(PriceFile, KINDS, "name"),
    ),
}
"""Title and schema of each file, by what `orderkit schema` calls it."""


def editor_schema(name: str) -> str:
    """Return one of `EDITOR_SCHEMAS` as JSON; raises KeyError for another name."""
    title, schema = EDITOR_SCHEMAS[name]
    head = {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": title}
    return json.dumps({**head, **schema()}, indent=2) + "\n"
