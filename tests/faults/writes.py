"""
Random writes through the fault proxy, and what they must have come to.

A run makes a repository, writes to it a few times while everything goes wrong, repeats what
ended without a clear answer, and is judged by its history. The contents differ from write to
write and no path comes back once deleted: a request that is carried out late can be told from
its successors only while what it saw is not there again (``adapters.gitea.writing``).
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from faultproxy import Seeded
from tests.faults import history

from ground.errors import OrderkitError, RemoteError
from ground.names import RepoId
from orderkit.ports.forge import FileChange, Forge, Operation, Written

if TYPE_CHECKING:
    from tests.faults.conftest import Bench

BEGINNING = {f"{folder}{number}": "0" for folder in ("f", "d", "dir/f") for number in range(3)}


@dataclass
class Deed:
    """One write with what the client was told of it."""

    operation: Operation
    changes: Sequence[FileChange]
    written: Written | None = None
    error: OrderkitError | None = None
    repeated: bool = False
    needed: bool = True
    """Whether there is anything to change."""


@dataclass
class Run:
    """One seed."""

    bench: Bench
    repo: RepoId
    random: random.Random
    deeds: list[Deed] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)
    gone: set[str] = field(default_factory=set)

    def now(self) -> dict[str, str]:
        """Return the files as they are, past the proxy."""
        head = self.bench.direct.head(self.repo)
        assert head is not None
        return {str(p): sha for p, sha in self.bench.direct.tree(self.repo, head).items()}

    def begin(self) -> None:
        """Write the first commit undisturbed, or leave the repository empty."""
        if self.random.random() < 0.2:
            return
        deed = self.deed([history.change(path, text, None) for path, text in BEGINNING.items()])
        deed.written = self.bench.direct.write(self.repo, deed.changes, deed.operation)

    def deed(self, changes: Sequence[FileChange]) -> Deed:
        """Return a new write, noted."""
        name = f"op-{len(self.deeds)}"
        made = Deed(Operation(name, "user:default/me", "Change files"), changes)
        self.deeds.append(made)
        return made

    def text(self) -> str:
        """Return a content that no other write has."""
        return f"{len(self.deeds)}-{self.random.random()}\n"

    def rival(self) -> None:
        """Be another writer who is not disturbed."""
        if self.bench.direct.head(self.repo) is None:
            return
        self.counts["rivals"] += 1
        deed = self.deed([self.update()])
        deed.written = self.bench.direct.write(self.repo, deed.changes, deed.operation)

    def update(self) -> FileChange:
        here = self.now()
        path = self.random.choice(sorted(here))
        return history.change(path, self.text(), here[path])

    def one_file(self) -> list[FileChange]:
        return [self.update()]

    def new_file(self) -> list[FileChange]:
        return [history.change(f"new/{len(self.deeds)}", self.text(), None)]

    def deletion(self) -> list[FileChange]:
        here = [(path, sha) for path, sha in self.now().items() if path in ("d0", "d1", "d2")]
        if not here:
            return self.new_file()
        path, sha = self.random.choice(here)
        return [history.change(path, None, sha)]

    def several(self) -> list[FileChange]:
        """Return changes of more files than are looked up one by one."""
        updates = {each.path: each for each in [self.update() for _ in range(4)]}
        rest = [*self.new_file(), *self.deletion()]
        return list({each.path: each for each in [*updates.values(), *rest]}.values())

    def stale(self) -> list[FileChange]:
        """Return a change of a file that is not as it was seen."""
        return [history.change(min(self.now()), self.text(), "0" * 40)]

    def same(self) -> list[FileChange]:
        """Return a change that changes nothing."""
        path = history.change(min(self.now()), None, None).path
        found = self.bench.direct.read(self.repo, path, "main")
        assert found is not None
        return [FileChange(path, found.data, found.sha)]

    def attempt(self, deed: Deed, client: Forge) -> None:
        """Write, and note what the client says of it."""
        deed.error = None
        try:
            deed.written = client.write(self.repo, deed.changes, deed.operation)
        except OrderkitError as error:
            deed.error = error
            self.counts[type(error).__name__] += 1
        else:
            self.counts["done" if deed.written.changed else "nothing to do"] += 1

    def disturbed(self, changes: Sequence[FileChange], *, needed: bool = True) -> None:
        """Write while everything goes wrong; perhaps finish it at once."""
        deed = self.deed(changes)
        deed.needed = needed
        with self.bench.proxy.using(Seeded(self.random, rival=self.rival)):
            self.attempt(deed, self.bench.client)
        if self.random.random() < 0.5:
            self.finish(deed)

    def finish(self, deed: Deed) -> None:
        """Repeat what ended without a clear answer, before or after it is carried out late."""
        if not is_open(deed.error):
            return
        deed.repeated = True
        self.counts["repeated"] += 1
        if self.random.random() < 0.5:
            self.bench.proxy.deliver_late()
        self.attempt(deed, self.bench.patient)
        assert not is_open(deed.error), f"undisturbed, and no answer: {deed.error}"

    def go(self, writes: int) -> None:
        """Write a number of times, let come what is late, and judge."""
        self.bench.proxy.log.clear()
        self.begin()
        kinds = [self.one_file, self.one_file, self.new_file, self.deletion, self.several]
        for _ in range(writes):
            if self.bench.direct.head(self.repo) is None:
                self.disturbed([history.change("f0", self.text(), None)])
            elif self.random.random() < 0.15:
                self.disturbed(self.same(), needed=False)
            elif self.random.random() < 0.15:
                self.disturbed(self.stale())
            else:
                self.disturbed(self.random.choice(kinds)())
        for deed in tuple(self.deeds):
            self.finish(deed)
        self.counts["late to the end"] += self.bench.proxy.deliver_late()
        judge(self)


def is_open(error: OrderkitError | None) -> bool:
    """Say whether an error leaves open what became of a write (`ports.forge.Forge`)."""
    return isinstance(error, RemoteError) and error.retryable


def judge(run: Run) -> None:
    """Assert that the history holds each write exactly once, or not at all, as was told."""
    repository = run.bench.repository(run.repo)
    found = history.steps(repository)
    by_operation: dict[str, history.Step] = {}
    deeds = {deed.operation.id: deed for deed in run.deeds}
    for number, step in enumerate(found):
        assert step.parents == min(number, 1), "the history is a line"
        assert len(step.operations) == 1, f"{step.commit} belongs to {step.operations}"
        (name,) = step.operations
        assert name not in by_operation, f"{name} was made twice"
        by_operation[name] = step
        history.did_its_operation(step, deeds[name].changes)
    for name, deed in deeds.items():
        told(deed, by_operation.get(name), repository)
    assert history.replayed(found) == history.files(repository)


def told(deed: Deed, step: history.Step | None, repository: Path) -> None:
    """Assert that what the client was told of one write is what happened."""
    name = deed.operation.id
    if deed.error is not None:
        assert step is None, f"{name} is there, and the client was told {deed.error!r}"
        return
    assert deed.written is not None
    if step is None:
        assert not deed.written.changed, f"{name} was acknowledged: {deed.written}"
        there = history.files(repository, deed.written.commit)
        assert all(history.is_done(each, there) for each in deed.changes), f"{name} is lost"
    else:
        assert deed.needed, f"{name} had nothing to do"
        assert step.commit == deed.written.commit or not deed.written.changed
