"""
``orderkit demo``: run the whole cycle on this machine, prove each stage, leave nothing behind.

Order, assemble, change through Git (by hand, a conflict, a refusal, a pull request), repair, end.
Every stage prints one line with its time and what it proved. The first expectation that fails
ends the demo with exit code 1.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from orderkit.cli.options import json_option
from orderkit.cli.output import say
from orderkit_standins.commands.up import forge_option

if TYPE_CHECKING:
    from orderkit.core.platform.forge_kinds import ForgeKind
    from orderkit_standins.demo.narration import Story


@click.command("demo")
@click.option("--keep", is_flag=True, help="Keep the state folder and say where it is.")
@forge_option
@json_option
def demo_command(keep: bool, as_json: bool, forge_kind: ForgeKind | None) -> None:
    """
    Run order, change, repair and end of a stage kit on a fresh embedded platform.

    Example: orderkit demo
    """
    import signal
    import tempfile
    from pathlib import Path

    from orderkit_standins.demo.narration import Story
    from orderkit_standins.demo.story import tell

    signal.signal(signal.SIGTERM, signal.default_int_handler)
    narrate = _say_nothing if as_json else say
    if keep:
        story = Story(Path(tempfile.mkdtemp(prefix="orderkit-demo-")), narrate, forge_kind)
        tell(story)
        narrate(
            f"kept: {story.folder}; continue with: orderkit up --state {story.folder / 'state'}"
        )
    else:
        with tempfile.TemporaryDirectory(prefix="orderkit-demo-") as name:
            story = Story(Path(name), narrate, forge_kind)
            tell(story)
    if as_json:
        _emit(story, kept=keep)


def _say_nothing(_: str) -> None:
    """With --json, stdout carries the one object at the end."""


def _emit(story: Story, *, kept: bool) -> None:
    from orderkit.cli.output import emit_json

    stages = [
        {"name": stage.name, "proved": stage.proof, "seconds": round(stage.duration_s, 3)}
        for stage in story.stages
    ]
    state = str(story.folder / "state") if kept else None
    seconds = round(story.elapsed_s, 3)
    emit_json("orderkit.demo/v1", {"stages": stages, "seconds": seconds, "state": state})
