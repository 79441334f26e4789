"""How plans of upgrades, their results and differences of packs are shown."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import Any

from ground.unified_diff import unified_diff
from orderkit.cli.output import emit_json, say
from orderkit.core.order.order_state import short
from orderkit.flows.install.upgrading import FileDifference, Upgraded, UpgradePlan, Wave

_ACTIONS = {(False, True): "new", (True, False): "removed", (True, True): "changed"}


def show_plan(plan: UpgradePlan, *, as_json: bool) -> None:
    """Show what each wave would change."""
    if as_json:
        waves = [_as_data(wave) for wave in plan.differing]
        emit_json("orderkit.platform-upgrade-plan/v1", {"from": plan.commit, "waves": waves})
        return
    if not plan.differing:
        say(f"nothing to do: the platform is up to date at {short(plan.commit)}")
        return
    for number, wave in enumerate(plan.differing, 1):
        waits = " and waits until it is ready" if wave.layer and wave.layer.folder else ""
        say(f"{number}. {wave.name}: {len(wave.differences)} files in one commit{waits}")
        for move in wave.moves:
            say(f"     {move}")
        for difference in wave.differences:
            say(f"     {_action(difference):<8} {difference.path}")


def show_upgraded(upgrade: Upgraded, *, as_json: bool) -> None:
    """Show what an upgrade wrote."""
    if as_json:
        report = {"operation": upgrade.operation, "commits": dict(upgrade.commits)}
        emit_json("orderkit.platform-upgrade/v1", report)
        return
    if not upgrade.commits:
        say("nothing to do: every layer is up to date and ready")
        return
    say(f"upgraded ({upgrade.operation})")
    for name, commit in upgrade.commits.items():
        say(f"  {name:<17} {short(commit)}")


def show_differences(plan: UpgradePlan, *, as_json: bool) -> None:
    """Show how the platform's pack repository differs from what was rendered."""
    differences = [difference for wave in plan.differing for difference in wave.differences]
    if as_json:
        actions = {
            str(difference.path): _action(difference)
            for difference in sorted(differences, key=lambda difference: difference.path)
        }
        emit_json("orderkit.platform-difference/v1", {"from": plan.commit, "files": actions})
        return
    for difference in differences:
        say(_diff(difference), nl=False)


def _as_data(wave: Wave) -> Mapping[str, Any]:
    return {
        "name": wave.name,
        "moves": [
            {"kind": m.kind, "name": m.name, "before": m.before, "after": m.after}
            for m in wave.moves
        ],
        "files": {str(difference.path): _action(difference) for difference in wave.differences},
    }


def _action(difference: FileDifference) -> str:
    return _ACTIONS[difference.before is not None, difference.after is not None]


def _diff(difference: FileDifference) -> str:
    old, new = _name("a", difference, difference.before), _name("b", difference, difference.after)
    return unified_diff(difference.before, difference.after, old, new)


def _name(side: str, difference: FileDifference, data: bytes | None) -> str:
    return "/dev/null" if data is None else f"{side}/{PurePosixPath(difference.path)}"
