"""
``orderkit demo``: run the whole cycle on this machine, prove each stage, leave nothing behind.

Order, assemble, change through Git (by hand, a conflict, a refusal, a pull request), repair, end.
Every stage prints one line with its time and what it proved. The first expectation that fails
ends the demo with exit code 1.
"""

from __future__ import annotations

import click


@click.command("demo")
@click.option("--keep", is_flag=True, help="Keep the state folder and say where it is.")
def demo_command(keep: bool) -> None:
    """
    Run order, change, repair and end of a stage kit on a fresh embedded platform.

    Example: orderkit demo
    """
    import signal
    import tempfile
    from pathlib import Path

    from orderkit.cli.demo.narration import Story
    from orderkit.cli.demo.story import tell

    signal.signal(signal.SIGTERM, signal.default_int_handler)
    if keep:
        folder = Path(tempfile.mkdtemp(prefix="orderkit-demo-"))
        tell(Story(folder, click.echo))
        click.echo(f"kept: {folder}; continue with: orderkit up --state {folder / 'state'}")
        return
    with tempfile.TemporaryDirectory(prefix="orderkit-demo-") as name:
        tell(Story(Path(name), click.echo))
