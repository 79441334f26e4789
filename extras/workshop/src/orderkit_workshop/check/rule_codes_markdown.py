"""
The rules as a table for people and for SARIF: ``docs/kit-check.md`` is written from it.

``scripts/kit_check_docs.py`` writes it; ``make check`` fails if it is stale.
"""

from __future__ import annotations

from collections.abc import Iterable

from orderkit_workshop.check.pipeline_rule_codes import PipelineRule
from orderkit_workshop.check.rule_codes import Coded, KitRule
from orderkit_workshop.check.since_rule_codes import SinceRule


def descriptions() -> dict[str, str]:
    """Return what each rule says, by code."""
    return {str(rule): rule.says for rule in rules()}


def rules() -> tuple[Coded, ...]:
    """Return every rule, in the order of the table."""
    return (*KitRule, *PipelineRule, *SinceRule)


def markdown(table: Iterable[Coded]) -> str:
    """Return rules as a Markdown table."""
    rows = [
        f"| `{rule}` | {rule.severity} | {_cell(rule.says)} | {_cell(rule.advice)} |"
        for rule in table
    ]
    return "\n".join(["| Code | Weight | What it says | What to do |", "|---|---|---|---|", *rows])


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("<", "&lt;").replace(">", "&gt;")
