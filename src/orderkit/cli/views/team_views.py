"""How results about teams look: as text for people or as one JSON object."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from orderkit.cli.output import emit_json, say
from orderkit.core.order.team_file import TeamFile
from orderkit.flows.team.teams import TeamAdded, TeamRemoved, TeamReport

_SHOWN = 10


def show_team_added(result: TeamAdded, as_json: bool) -> None:
    """Show what adding a team came to."""
    if as_json:
        is_new = result.before is None
        report = {"team": result.team, "created": is_new, "changed": result.created}
        emit_json("orderkit.team/v1", report)
        return
    if result.before is None:
        say(f"team {result.team} is added")
    elif result.created:
        told = ", ".join(_differences(result.before, result.file)) or "its part of the ledger"
        say(f"team {result.team} existed already, and is changed: {told}")
    else:
        say(f"team {result.team} existed already")


def _differences(before: TeamFile, after: TeamFile) -> Iterator[str]:
    """Yield each decision about a team that is another now."""
    for name, old, new in zip(_DECISIONS, _texts(before), _texts(after), strict=True):
        if old != new:
            yield f"{name} {old} → {new}"


_DECISIONS = ("members", "kits", "namespaces", "limits", "agents", "owners")


def _texts(file: TeamFile) -> tuple[str, ...]:
    """Return what was decided, in the order of `_DECISIONS`."""
    return (
        "as the forge says" if file.members is None else _words(file.members),
        _words(file.kits) if file.kits else "all",
        _words(file.namespaces),
        _limits(file.limits.texts()),
        file.agents,
        _words(file.adopted),
    )


def show_team_changed(result: TeamAdded, as_json: bool) -> None:
    """Show what deciding anew came to."""
    if as_json:
        emit_json("orderkit.team/v1", {"team": result.team, "changed": result.created})
        return
    words = "is changed" if result.created else "is unchanged"
    told = [*_differences(result.before or result.file, result.file)]
    told = [", ".join(told)] if told else []
    told += [_limits(result.file.limits.texts()), f"agents may {result.file.agents}"]
    say(f"team {result.team} {words}: {'; '.join(told)}")


def show_teams(teams: Iterable[str], as_json: bool) -> None:
    """Show all teams."""
    names = list(teams)
    if as_json:
        emit_json("orderkit.teams/v1", {"teams": names})
        return
    for name in names:
        say(name)


def show_team(result: TeamReport, as_json: bool) -> None:
    """Show one team."""
    report = result.to_json()
    if as_json:
        emit_json("orderkit.team-report/v1", report)
        return
    members = report["members"]
    say(f"team {report['team']}: {len(result.orders)} orders")
    say(f"  members     {'as the forge says' if members is None else _words(members)}")
    say(f"  may order   {_words(report['kits'])}")
    say(f"  namespaces  {_words(report['namespaces'])}")
    say(f"  limits      {_limits(result.file.limits.texts())}")
    say(f"  agents      may {report['agents']}")
    say(f"  orders      {_words(result.orders)}")


def show_team_removed(result: TeamRemoved, as_json: bool) -> None:
    """Show what removing a team came to."""
    if as_json:
        emit_json("orderkit.team-removed/v1", {"team": result.team, "changed": result.changed})
        return
    words = "is removed" if result.changed else "was removed already"
    say(f"team {result.team} {words}; its organisation stays")


def _words(texts: Iterable[str]) -> str:
    names = list(texts)
    rest_note = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return f"{', '.join(names[:_SHOWN])}{rest_note}" if names else "none"


def _limits(texts: Iterable[str]) -> str:
    return ", ".join(texts) or "no limits"
