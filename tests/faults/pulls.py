"""
A change offered as a pull request and merged while everything goes wrong.

From the branch and its commit to comments, statuses and the merge, each step is
disturbed. One that ends without a clear answer is done again, before or after what is late was
carried out; one that ends as an error that is clear must not be there. What a forge cannot
refuse a second time (comments) may be double while a late request lands, and is single
again after the next call.
"""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from faultproxy import Fault, Seeded
from tests.faults import deeds, history
from tests.faults.deeds import BRANCH, DEEDS, Spec
from tests.faults.writes import is_open

from ground.errors import OrderkitError
from ground.names import RepoId
from orderkit.ports.forge import Forge

if TYPE_CHECKING:
    from tests.faults.conftest import Bench

FAULTS = tuple(
    fault for fault in Fault if fault not in (Fault.PASS, Fault.HOOK_BEFORE, Fault.HOOK_AFTER)
)
ENDS = ("merge", "squash", "close pull")


@dataclass
class Offer:
    """One seed."""

    bench: Bench
    repo: RepoId
    random: random.Random
    counts: Counter[str] = field(default_factory=Counter)
    doubles: list[Spec] = field(default_factory=list)
    """Deeds that may be there more than once while something is late."""

    def go(self) -> None:
        """Offer a change, bring it to its end, and judge the history."""
        self.bench.proxy.log.clear()
        spec = self.begin()
        spec = replace(spec, commit=self.head(spec.branch))
        self.step(replace(spec, deed="open pull", operation="open"))
        spec = replace(spec, number=self.pull_number(spec))
        for deed in self.random.sample(["comment", "status", "update pull"], 2):
            self.step(replace(spec, deed=deed, operation=deed.replace(" ", "-")))
        self.bench.proxy.deliver_late()
        end = self.random.choice(ENDS)
        self.step(replace(spec, deed=end, operation="end"))
        self.counts["carried out late"] += self.bench.proxy.deliver_late()
        for double in self.doubles:
            deeds.do(self.bench.direct, double)
            assert self.count(double) == 1, f"{double.deed} is not single again"
        self.judge(replace(spec, deed=end, operation="end"))

    def begin(self) -> Spec:
        """Make a repository, a branch, and a commit on it."""
        first = Spec("write", self.repo.owner, self.repo.name, "begin")
        change = history.change("a", "0", None)
        begun = self.bench.direct.write(self.repo, [change], first.why)
        spec = replace(first, deed="branch", commit=begun.commit, seen=history.blob("0"))
        self.step(spec)
        self.bench.direct.ensure_branch(self.repo, BRANCH, begun.commit)
        spec = replace(spec, branch=BRANCH)
        self.step(replace(spec, deed="write six", operation="work"))
        return spec

    def head(self, branch: str) -> str:
        found = self.bench.direct.head(self.repo, branch)
        assert found is not None
        return found

    def pull_number(self, spec: Spec) -> int:
        (pull,) = self.bench.direct.pulls(self.repo, state="all", head=spec.branch)
        return pull.number

    def count(self, spec: Spec) -> int:
        return deeds.count(self.bench.look, spec)

    def step(self, spec: Spec) -> None:
        """Do one deed while everything goes wrong, until it is done."""
        plan = Seeded(self.random, FAULTS, write_rate=0.6, read_rate=0.1)
        with self.bench.proxy.using(plan):
            error = self.attempt(spec, self.bench.client)
        if error is None:
            self.is_there(spec, "was acknowledged")
        elif not is_open(error):
            self.bench.proxy.deliver_late()
            assert self.count(spec) == 0, f"{spec.deed} is there: {error!r}"
        if error is not None:
            self.repeat(spec)
        if not DEEDS[spec.deed].only_once:
            self.doubles.append(spec)

    def repeat(self, spec: Spec) -> None:
        self.counts["repeated"] += 1
        late = self.random.random() < 0.5
        if late:
            self.bench.proxy.deliver_late()
        again = self.attempt(spec, self.bench.patient)
        assert again is None, f"undisturbed: {again!r}"
        self.is_there(spec, "was repeated")

    def is_there(self, spec: Spec, why: str) -> None:
        found = self.count(spec)
        assert found == 1 or (found > 1 and not DEEDS[spec.deed].only_once), f"{spec.deed} {why}"

    def attempt(self, spec: Spec, client: Forge) -> OrderkitError | None:
        """Do a deed through the proxy; return how it failed."""
        try:
            deeds.do(client, spec)
        except OrderkitError as error:
            self.counts[type(error).__name__] += 1
            return error
        self.counts["done"] += 1
        return None

    def judge(self, spec: Spec) -> None:
        """Assert that every deed is there once, and that main holds what it should."""
        assert self.count(replace(spec, deed="write six", operation="work")) == 1
        assert self.count(spec) == 1
        pulls = self.bench.look.of(spec, "/pulls?state=all&limit=50")
        assert [each["number"] for each in pulls] == [spec.number], "one pull request"
        repository = self.bench.repository(self.repo)
        main = history.files(repository)
        merged = spec.deed != "close pull"
        assert main == history.files(repository, f"refs/heads/{BRANCH if merged else 'main'}")
        made = Counter(name for step in history.steps(repository) for name in step.operations)
        wanted = {"begin": 1} | ({"end": 1} if merged else {})
        wanted |= {"work": 1} if spec.deed == "merge" else {}
        assert made == wanted
