"""``orderkit schema``: the JSON Schema of a file that people write."""

from __future__ import annotations

import click

_FILES = ("kit", "platform", "team", "campaign", "prices")
"""A test holds them to `orderkit.core.editor_schemas.EDITOR_SCHEMAS`, whose import takes long."""


@click.command("schema")
@click.argument("file", type=click.Choice(_FILES))
def schema_command(file: str) -> None:
    """
    Print the JSON Schema of kit.yaml, platform.yaml, team.yaml or prices.yaml, for an editor.

    Example: orderkit schema platform > platform.schema.json
    """
    from orderkit.cli.output import say
    from orderkit.core.editor_schemas import editor_schema

    say(editor_schema(file), nl=False)
