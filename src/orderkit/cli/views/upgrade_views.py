"""How plans of upgrades, their results and differences of packs are shown."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import Any

import click

from orderkit.cli.output import emit_json
from orderkit.core.order.order_state import short
from orderkit.core.unified_diff import unified_diff
from orderkit.flows.install.upgrading import FileDifference, Upgraded, UpgradePlan, Wave

_ACTIONS = {(False, True): "new", (True, False): "removed", (True, True): "changed"}


def show_plan(plan: UpgradePlan, *, as_json: bool) -> None:
    """Show what each wave would change."""
    if as_json:
        waves = [_as_data(wave) for wave in plan.differing]
        emit_json("orderkit.platform-upgrade-plan/v1", {"from": plan.commit, "waves": waves})
        return
    if not plan.differing:
        click.echo(f"nothing to do: the platform is up to date at {short(plan.commit)}")
        return
    for number, wave in enumerate(plan.differing, 1):
        waits = " and waits until it is ready" if wave.layer and wave.layer.folder else ""
        click.echo(f"{number}. {wave.name}: {len(wave.differences)} files in one commit{waits}")
        for move in wave.moves:
            click.echo(f"     {move}")
        for one in wave.differences:
            click.echo(f"     {_action(one):<8} {one.path}")


def show_upgraded(done: Upgraded, *, as_json: bool) -> None:
    """Show what an upgrade wrote."""
    if as_json:
        told = {"operation": done.operation, "commits": dict(done.commits)}
        emit_json("orderkit.platform-upgrade/v1", told)
        return
    if not done.commits:
        click.echo("nothing to do: every layer is up to date and ready")
        return
    click.echo(f"upgraded ({done.operation})")
    for name, commit in done.commits.items():
        click.echo(f"  {name:<17} {short(commit)}")


def show_differences(plan: UpgradePlan, *, as_json: bool) -> None:
    """Show how the platform's pack repository differs from what was rendered."""
    found = [one for wave in plan.differing for one in wave.differences]
    if as_json:
        told = {str(one.path): _action(one) for one in sorted(found, key=lambda one: one.path)}
        emit_json("orderkit.platform-difference/v1", {"from": plan.commit, "files": told})
        return
    for one in found:
        click.echo(_diff(one), nl=False)


def _as_data(wave: Wave) -> Mapping[str, Any]:
    return {
        "name": wave.name,
        "moves": [
            {"kind": m.kind, "name": m.name, "before": m.before, "after": m.after}
            for m in wave.moves
        ],
        "files": {str(one.path): _action(one) for one in wave.differences},
    }


def _action(one: FileDifference) -> str:
    return _ACTIONS[one.before is not None, one.after is not None]


def _diff(one: FileDifference) -> str:
    old, new = _name("a", one, one.before), _name("b", one, one.after)
    return unified_diff(one.before, one.after, old, new)


def _name(side: str, one: FileDifference, data: bytes | None) -> str:
    return "/dev/null" if data is None else f"{side}/{PurePosixPath(one.path)}"
