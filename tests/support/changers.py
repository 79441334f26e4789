"""
A person who changes one order again and again: run as a process, killed, and started anew.

What a person wants follows from the seed alone, each wish with an operation id of its own. What
became of a wish is appended to a log, flushed to the disk; a process that is started anew goes on
with the first wish that has no line, under the same id. Any answer but done and conflict makes the
person ask again: a bad line may answer anything.
"""

from __future__ import annotations

import json
import os
import random
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from ground.errors import OrderkitError
from ground.names import RepoId
from orderkit.adapters.forges import answers
from orderkit.cli.connecting import connect, load_settings
from orderkit.core.order.change import FieldConflictError, FieldEdit
from orderkit.flows.change import Changed, ChangeRequest, change
from orderkit.flows.platform import Platform
from orderkit.ports.requesters import Requester

_PATIENCE_S = 240.0
_UNCLEAR_PAUSE_S = 0.02
_STAGES = ("stage1", "stage2", "stage3")


@dataclass(frozen=True)
class Spec:
    """Who changes what, and how often."""

    platform_file: str
    team: str
    order: str
    person: int
    seed: int
    wishes: int
    log: str

    @property
    def repo(self) -> RepoId:
        return RepoId(self.team, self.order)


@dataclass(frozen=True)
class Wish:
    """One change that somebody wants: `kind` says how it is judged."""

    kind: str
    operation: str
    edit: FieldEdit
    stale: bool
    """Seen some time before it is sent."""


def wishes(seed: int, person: int, count: int) -> Iterator[Wish]:
    """Yield what a person wants, always the same."""
    choice = random.Random(f"{seed} {person}")  # noqa: S311  no secrets
    for number in range(count):
        text = f"p{person}-{number}"
        kind = choice.choice(("sum", "sum", "element", "note", "note", "stage", "colour"))
        edit = {
            "sum": FieldEdit("budget", "add", choice.randint(1, 9)),
            "element": FieldEdit("guests", "add", text),
            "note": FieldEdit("note", "set", text),
            "stage": FieldEdit("stage", "set", choice.choice(_STAGES)),
            "colour": FieldEdit("colour", "set", text),
        }[kind]
        yield Wish(kind, f"op-{text}", edit, stale=choice.random() < 0.5)


def outcomes(log: Path) -> list[dict[str, Any]]:
    """Return the lines of a log; one that a kill cut is none."""
    found = []
    for line in log.read_text().splitlines() if log.exists() else ():
        try:
            found.append(json.loads(line))
        except ValueError:
            continue
    return found


def main(spec: Spec) -> None:
    """Go through the wishes that have no outcome yet."""
    answers.PAUSE_FIRST_S, answers.PAUSE_MAX_S = 0.002, 0.02
    platform = connect(load_settings(spec.platform_file))
    choice = random.Random()  # noqa: S311  when a person acts is not part of what they want
    log = Path(spec.log)
    done = {outcome["operation"] for outcome in outcomes(log)}
    for wish in wishes(spec.seed, spec.person, spec.wishes):
        if wish.operation not in done:
            told = _ask_until_clear(platform, spec, wish, choice)
            _append(log, {"operation": wish.operation, "kind": wish.kind, **told})


def _append(log: Path, told: dict[str, Any]) -> None:
    with log.open("a") as file:
        file.write("\n" + json.dumps(told))
        file.flush()
        os.fsync(file.fileno())


def _ask_until_clear(
    platform: Platform, spec: Spec, wish: Wish, choice: random.Random
) -> dict[str, Any]:
    deadline_s = time.monotonic() + _PATIENCE_S
    while True:
        try:
            return _asked(platform, spec, wish, choice)
        except FieldConflictError as error:
            conflicts = [found.answer.to_json() for found in error.conflicts]
            return {"outcome": "conflict", "conflicts": conflicts, "head": error.head}
        except OrderkitError as error:
            if time.monotonic() > deadline_s:
                return {"outcome": "error", "error": f"{type(error).__name__}: {error}"}
            time.sleep(_UNCLEAR_PAUSE_S)


def _asked(platform: Platform, spec: Spec, wish: Wish, choice: random.Random) -> dict[str, Any]:
    base = platform.forge.head(spec.repo)
    if wish.stale:
        time.sleep(choice.random() * 0.3)
    wanted = ChangeRequest(
        order=spec.order,
        edits=(wish.edit,),
        requester=Requester(f"user:default/p{spec.person}"),
        base=None if wish.kind == "sum" else base,
        operation=wish.operation,
    )
    return _told(change(platform, wanted))


def _told(done: Changed) -> dict[str, Any]:
    number = done.pull.number if done.pull else None
    return {"outcome": done.state, "commit": done.commit, "pull": number}


def command(spec: Spec) -> list[str]:
    """Return the command that runs a person."""
    return [sys.executable, __file__, json.dumps(asdict(spec))]


if __name__ == "__main__":
    main(Spec(**json.loads(sys.argv[1])))
