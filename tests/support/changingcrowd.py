"""
People, a hand in Git, a reviewer and somebody who kills: all at one order, then judged.

What must hold in the end is read from the repository past every flow: each wish that was
acknowledged is one commit that did exactly that, no wish that was refused is any, each conflict
told values that stood in Git, and no commit undid what was not its own.
"""

from __future__ import annotations

import random
import subprocess
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bays import XR, Bay
from changers import Spec, Wish, command, outcomes, wishes

from ground.errors import OrderkitError
from orderkit.core.order.change import ABSENT, FieldDifference, same, value_at
from orderkit.flows.change.reviewing import merge_unreviewed
from orderkit.flows.order.order_history import HistoryEntry, history
from orderkit.ports.forge import MergeStyle, Operation
from yamlfiles.manifests import parse_manifests

_STYLES = tuple(MergeStyle)
_FIELDS = {
    "sum": "budget", "element": "guests", "note": "note", "stage": "stage", "colour": "colour",
}  # fmt: skip


@dataclass
class Crowd:
    """One run. `platform_files` are taken in turn: some people sit behind a bad line."""

    bay: Bay
    platform_files: list[Path]
    folder: Path
    seed: int
    wishes_each: int
    kills: int
    people: int = 8
    random: random.Random = field(init=False)
    counts: Counter[str] = field(default_factory=Counter)
    hands: dict[str, str] = field(default_factory=dict)
    """Commit by hand: the value of ``motto`` that it wrote."""

    def __post_init__(self) -> None:
        self.random = random.Random(f"crowd {self.seed}")  # noqa: S311  no secrets

    def spec(self, person: int) -> Spec:
        return Spec(
            platform_file=str(self.platform_files[person % len(self.platform_files)]),
            team=self.bay.repo.owner,
            order=self.bay.order,
            person=person,
            seed=self.seed,
            wishes=self.wishes_each,
            log=str(self.folder / f"person-{person}.log"),
        )

    def run(self, *, deadline_s: float) -> None:
        """Let everybody act until all wishes have an outcome."""
        end_s = time.monotonic() + deadline_s
        running = {person: self._start(person) for person in range(self.people)}
        try:
            while running:
                assert time.monotonic() < end_s, f"not done in {deadline_s} s: {self.counts}"
                self._by_hand()
                self._review()
                if self.kills > self.counts["kills"] and self._half_done():
                    self._kill(running)
                for person, process in list(running.items()):
                    if process.poll() is not None:
                        assert process.returncode == 0, self._said(person)
                        running.pop(person)
        finally:
            for process in running.values():
                process.kill()
                process.wait()

    def _start(self, person: int) -> subprocess.Popen[bytes]:
        with (self.folder / f"person-{person}.err").open("ab") as said:
            return subprocess.Popen(command(self.spec(person)), stderr=said)

    def _said(self, person: int) -> str:
        return (self.folder / f"person-{person}.err").read_text()

    def _half_done(self) -> bool:
        """Say whether the next kill is due: they are spread over the wishes."""
        done = sum(len(outcomes(Path(self.spec(p).log))) for p in range(self.people))
        due = (self.counts["kills"] + 1) / (self.kills + 1)
        return done >= due * self.people * self.wishes_each

    def _kill(self, running: dict[int, subprocess.Popen[bytes]]) -> None:
        person = self.random.choice(list(running))
        running[person].kill()
        running[person].wait()
        self.counts["kills"] += 1
        running[person] = self._start(person)

    def _by_hand(self) -> None:
        """Edit a field of the file past every flow, as somebody with an editor does."""
        value = f"hand {len(self.hands)}"
        text = self.bay.text()
        lines = [line for line in text.splitlines() if not line.startswith("  motto:")]
        at = next(n for n, line in enumerate(lines) if line.startswith("spec:"))
        lines.insert(at + 1, f"  motto: {value}")
        try:
            self.hands[self.bay.put_if(XR, text, "\n".join(lines) + "\n")] = value
        except OrderkitError:
            self.counts["hand was too late"] += 1
        time.sleep(0.15)

    def _review(self) -> None:
        """Merge one open pull request, any, in whatever style; close one that is stuck."""
        forge, repo = self.bay.platform.forge, self.bay.repo
        pulls = list(forge.pulls(repo))
        if not pulls:
            return
        pull = self.random.choice(pulls)
        by_hand = Operation(f"merge-{pull.number}", "user:default/boss", f"Merge #{pull.number}")
        try:
            style = self.random.choice(_STYLES)
            merge_unreviewed(self.bay.platform, repo, pull, by_hand, style=style, deadline_s=0.3)
            self.counts["merged"] += 1
        except OrderkitError:
            self.counts["not mergeable"] += 1

    # --- judging

    def judge(self) -> None:
        """Assert what must hold when all is over."""
        entries = history(self.bay.platform, self.bay.order, limit=10_000)
        by_operation = _by_operation(entries)
        for person in range(self.people):
            told = {each["operation"]: each for each in outcomes(Path(self.spec(person).log))}
            wanted = list(wishes(self.seed, person, self.wishes_each))
            assert told.keys() == {wish.operation for wish in wanted}
            for wish in wanted:
                self.counts[f"{wish.kind} {told[wish.operation]['outcome']}"] += 1
                self._judge_wish(wish, told[wish.operation], by_operation.get(wish.operation))
        self._judge_sums(entries)
        self._judge_pulls()
        for commit, value in self.hands.items():
            (entry,) = (each for each in entries if each.commit.id == commit)
            assert [(f.path, f.new) for f in entry.fields] == [("motto", value)]

    def _judge_wish(self, wish: Wish, told: dict[str, Any], entry: HistoryEntry | None) -> None:
        outcome = told["outcome"]
        if outcome == "conflict":
            assert entry is None, f"{wish.operation} was refused and is there"
            self._judge_conflict(wish, told)
            return
        assert outcome in ("committed", "unchanged", "proposed"), told
        if wish.kind != "colour":
            assert outcome != "proposed"
            assert (entry is not None) is (outcome == "committed"), (told, entry)
        if entry is not None:
            (found,) = entry.fields
            assert found.path == _FIELDS[wish.kind], entry
            assert _is_meant(wish, found), (wish, found)

    def _judge_conflict(self, wish: Wish, told: dict[str, Any]) -> None:
        (found,) = told["conflicts"]
        assert found["field"] == wish.edit.path
        assert found["wanted"] == wish.edit.value
        assert found["now"] != found["seen"], "both values are told, and differ"
        assert found["now"] == self._value(wish.edit.path, told["head"])
        assert found["commit"], "the one who was faster is named"

    def _value(self, path: str, commit: str) -> Any:
        (xr,) = parse_manifests(str(XR), self.bay.text(ref=commit).encode())
        found = value_at(xr["spec"], (path,))
        return None if found is ABSENT else found

    def _judge_sums(self, entries: list[HistoryEntry]) -> None:
        """What is there in the end is what all who were told "done" wanted."""
        spec = self.bay.spec()
        sums, guests = 0, set()
        for person in range(self.people):
            for wish in wishes(self.seed, person, self.wishes_each):
                sums += wish.edit.value if wish.kind == "sum" else 0
                guests |= {wish.edit.value} if wish.kind == "element" else set()
        assert spec.get("budget", 0) == sums
        assert set(spec.get("guests", ())) == guests
        assert len(spec.get("guests", ())) == len(guests)
        for name in ("note", "stage", "motto"):
            newest = next((f for e in entries for f in e.fields if f.path == name), None)
            assert newest is None or spec.get(name) == newest.new, name

    def _judge_pulls(self) -> None:
        pulls = list(self.bay.platform.forge.pulls(self.bay.repo))
        twice = Counter(pull.requester for pull in pulls)
        assert not [who for who, times in twice.items() if times > 1], pulls


def _by_operation(entries: list[HistoryEntry]) -> dict[str, HistoryEntry]:
    found: dict[str, HistoryEntry] = {}
    for entry in entries:
        if entry.commit.operation:
            assert entry.commit.operation not in found, f"{entry.commit.operation} is there twice"
            found[entry.commit.operation] = entry
    return found


def _is_meant(wish: Wish, found: FieldDifference) -> bool:
    """Say whether a commit did what was wanted, to what was there before it."""
    old, wanted = (None if found.old is ABSENT else found.old), wish.edit.value
    if wish.kind == "sum":
        wanted = (old or 0) + wanted
    elif wish.kind == "element":
        wanted = [*(old or []), wanted]
    return same(found.new, wanted)
