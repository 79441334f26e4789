"""``orderkit bootstrap``: set a platform up, or show the steps that this takes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from orderkit.cli.options import (
    adopt_option,
    json_option,
    platform_option,
    requester_option,
    timeout_option,
)
from orderkit.cli.output import say

if TYPE_CHECKING:
    from collections.abc import Sequence

    from orderkit.flows.install.bootstrapping import StepDone

_PLANNED = {
    "done": "already so",
    "create": "would create",
    "change": "would change",
    "wait": "would wait",
    "skip": "left out",
    "fail": "fails",
}
_MADE = {**_PLANNED, "create": "created", "change": "changed", "wait": "waited"}


@click.command("bootstrap")
@platform_option
@click.option(
    "--pack", "pack_folder", metavar="DIR", help="The pack to publish. Default: the reference pack."
)
@click.option("--plan", "plan_only", is_flag=True, help="Show each step. Nothing is changed.")
@click.option("--no-probe", is_flag=True, help="Do not place a probe order at the end.")
@click.option(
    "--replace-pack", is_flag=True, help="Overwrite another pack, or the pack of another platform."
)
@click.option(
    "--move-ledger",
    is_flag=True,
    help="Copy the present ledger to the one that platform.yaml names, and archive it.",
)
@adopt_option
@requester_option
@timeout_option("600s")
@json_option
def bootstrap_command(
    platform_file: str | None,
    pack_folder: str | None,
    plan_only: bool,
    no_probe: bool,
    replace_pack: bool,
    move_ledger: bool,
    adopted: tuple[str, ...],
    requester: str,
    timeout_s: float,
    as_json: bool,
) -> int:
    """
    Set the platform up so that it serves the pack, from the forge to a probe order.

    Repeating it completes an interrupted run and otherwise changes nothing.

    Example: orderkit bootstrap --platform platform.yaml --plan
    """
    from ground.errors import OrderkitError
    from orderkit.cli.output import Progress
    from orderkit.cli.serving.bootstrap_ports import BootstrapOptions, prepared
    from orderkit.flows.install import bootstrapping

    bootstrap_options = BootstrapOptions(
        platform_file,
        pack_folder,
        requester,
        timeout_s,
        probe=not no_probe,
        replace_pack=replace_pack,
        adopted=adopted,
        move_ledger=move_ledger,
    )
    with prepared(bootstrap_options) as (platform, request):
        if plan_only:
            return _show_plan(platform.name, list(bootstrapping.plan(platform, request)), as_json)
        steps: list[StepDone] = []
        progress = Progress(enabled=None if as_json else True)
        try:
            bootstrapping.bootstrap(platform, request, on_step=progress, on_done=steps.append)
        except OrderkitError as error:
            if not as_json:
                raise
            _emit(platform.name, "run", steps)
            return error.exit_code
        if as_json:
            _emit(platform.name, "run", steps)
        else:
            _show_steps(platform.name, steps)
    return 0


def _show_plan(name: str, steps: Sequence[StepDone], as_json: bool) -> int:
    failed = any(step.verdict == "fail" for step in steps)
    if as_json:
        _emit(name, "plan", steps)
        return int(failed)
    from orderkit.cli.output import emit_table

    rows = [(step.step, _PLANNED[step.verdict], step.detail) for step in steps]
    emit_table(("STEP", "PLAN", "DETAIL"), rows)
    for step in steps:
        if step.advice:
            say(f"\n{step.step}: {step.advice}")
    return int(failed)


def _show_steps(name: str, steps: Sequence[StepDone]) -> None:
    written_steps = [step for step in steps if step.verdict in {"create", "change"}]
    say(f"{name}: {len(steps)} steps done, {len(written_steps)} of them changed something now")
    for step in steps:
        if step.verdict == "skip":
            say(f"{step.step} left out: {step.detail}. {step.advice}")


def _emit(name: str, mode: str, steps: Sequence[StepDone]) -> None:
    from orderkit.cli.output import emit_json

    words = _PLANNED if mode == "plan" else _MADE
    rows: list[dict[str, Any]] = [
        {
            "step": step.step,
            "verdict": words[step.verdict],
            "detail": step.detail,
            "advice": step.advice,
            "seconds": step.seconds,
        }
        for step in steps
    ]
    ok = all(step.verdict != "fail" for step in steps)
    emit_json("orderkit.bootstrap/v1", {"platform": name, "mode": mode, "ok": ok, "steps": rows})
