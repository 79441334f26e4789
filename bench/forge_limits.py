"""
An hour and more of GitHub.com's documented limits, on the embedded forge's face, which counts.

The clock of face and pacer is moved by hand, so nothing sleeps. Orders are placed by people: each
makes a repository and a commit in the ledger by the API, and pushes its first commit. Changes come
from people (by the API), or from a campaign (pushed). A second replica with the same credential
takes a part of each minute, so the client is refused now and then, and must not be twice in a row.
"""

from __future__ import annotations

import math
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from bench.figure import Figure, size
from ground.errors import TooFastError
from ground.names import BlobSha, RepoId, blob_sha
from orderkit.adapters.forges.pacing import Clock
from orderkit.adapters.github import GitHubForge
from orderkit.adapters.github.transport import PER_HOUR, PER_MINUTE, POINTS, Pacer
from orderkit.ports.forge import FileChange, Operation
from orderkit.ports.urgency import background
from orderkit.web.serving import HttpServer, bind
from orderkit_standins.forge import EmbeddedForge
from orderkit_standins.forge.api.calls import ApiError

ORDERS, CHANGES = size((150, 1_000), (3, 20))
LOOKS = size(3_000, 1_000)
TOKEN = "b" * 40
LEDGER, HOUR_S = RepoId("platform", "ledger"), 3600.0
REQUESTS_PER_HOUR = 5_000
FILE = PurePosixPath("manifests/xr.yaml")


@dataclass(frozen=True)
class Numbers:
    """What is allowed, and how much another replica takes of it each minute."""

    per_minute: int = PER_MINUTE
    per_hour: int = PER_HOUR
    rival_per_minute: int = 0
    points: Mapping[str, int] = field(default_factory=lambda: dict(POINTS))
    deed_s: float = 0.5
    """What a deed takes besides waiting, on the clock of the simulation."""


@dataclass
class Simulation:
    """One GitHub with its limits, one client of it, and a clock that both look at."""

    forge: EmbeddedForge
    numbers: Numbers
    now: float = 1_000_000.0
    begun: float = 1_000_000.0
    created_at: list[float] = field(default_factory=list)
    """When our requests that create content were carried out."""
    client: GitHubForge = field(init=False)
    _rival_at: float = 0.0

    def limit(self, url: str) -> None:
        """Let the face count, and the client keep within the same numbers."""
        limits, numbers = self.forge.github.limits, self.numbers
        limits.now = limits.today = lambda: self.now
        limits.retry_after_s, limits.requests_per_hour = 0, REQUESTS_PER_HOUR
        limits.created_per_minute, limits.created_per_hour = numbers.per_minute, numbers.per_hour
        limits.points_per_minute = dict(numbers.points)
        clock = Clock(lambda: self.now, lambda: self.now, self._sleep)
        bounds = {"per_minute": numbers.per_minute, "per_hour": numbers.per_hour}
        pacer = Pacer(**bounds, points=numbers.points, clock=clock)
        self.client = GitHubForge(url, token=TOKEN, pacer=pacer)

    def _sleep(self, seconds: float) -> None:
        self.now += seconds

    def order(self, number: int) -> None:
        """Place an order: its repository, its files, its entry in the ledger."""
        repo = RepoId("fleet", f"order-{number}")
        self._until_done(lambda: self.client.ensure_repo(repo, description=""))
        self._write(repo, FILE, "stage: 0\n", None, f"order-{number}")
        entry = PurePosixPath(f"apps/fleet/order-{number}.yaml")
        self._write(LEDGER, entry, f"{number}\n", None, f"register-{number}")

    def look(self) -> None:
        """Read what commands read of every order: here of the ledger, which others change."""
        self._until_done(lambda: self.client.repo(LEDGER))

    def change(self, number: int, orders: int) -> None:
        """Change an order; each is changed in turn."""
        repo, turn = RepoId("fleet", f"order-{number % orders}"), number // orders
        seen = blob_sha(f"stage: {turn}\n".encode(), "")
        self._write(repo, FILE, f"stage: {turn + 1}\n", seen, f"change-{number}")

    def _write(
        self, repo: RepoId, path: PurePosixPath, text: str, seen: BlobSha | None, operation: str
    ) -> None:
        change, done = FileChange(path, text.encode(), seen), Operation(operation, "bench", "Do it")
        self._until_done(lambda: self.client.write(repo, [change], done))

    def _until_done(self, act: object) -> None:
        """Do what a person does who is told to come back in so many seconds."""
        assert callable(act)
        while True:
            self._rival()
            before = len(self.forge.github.limits.created)
            try:
                act()
            except TooFastError as error:
                self.now += error.seconds + 1
                continue
            made = len(self.forge.github.limits.created) - before
            self.created_at += [self.now] * made
            self.now += self.numbers.deed_s
            return

    def _rival(self) -> None:
        """Let another replica send what it sends in this time."""
        if not self.numbers.rival_per_minute:
            return
        while self._rival_at < self.now:
            self._rival_at = max(self._rival_at, self.now - 60) + 60 / self.numbers.rival_per_minute
            with suppress(ApiError):
                self.forge.github.limits.take_one()

    @property
    def took_s(self) -> float:
        return self.now - self.begun

    def used(self) -> float:
        """Return which part of what an hour allows was used in the first hour, if it lasted."""
        first = [at for at in self.created_at if at < self.begun + HOUR_S]
        return len(first) / min(self.numbers.per_hour, len(self.created_at) or 1)

    def used_points(self) -> float:
        """Return which part of the points was used that the begun minutes allow."""
        allowed = math.ceil(self.took_s / 60) * self.numbers.points["core"]
        return self.forge.github.limits.points_spent["core"] / allowed


@contextmanager
def simulation(numbers: Numbers = Numbers()) -> Iterator[Simulation]:
    """Serve a face, make what orders need, and begin to count."""
    with tempfile.TemporaryDirectory() as folder:
        forge = EmbeddedForge(Path(folder))
        server = HttpServer(forge.app, bind("forge", 0))
        server.start()
        forge.set_base_url(server.url)
        forge.ensure_user("bench", "bench-pw1", admin=True)
        forge.ensure_token("bench", "t", TOKEN, ["all"])
        with GitHubForge(server.url, token=TOKEN, pacer=Pacer()) as maker:
            for owner in ("platform", "fleet"):
                maker.ensure_org(owner)
            maker.ensure_repo(LEDGER, description="")
            readme = FileChange(PurePosixPath("README.md"), b"ledger\n", None)
            maker.write(LEDGER, [readme], Operation("begin", "bench", "Begin"))
        made = Simulation(forge, numbers)
        made.limit(server.url)
        try:
            with made.client:
                yield made
        finally:
            server.stop()
            forge.close()


def run(orders: int, changes: int, numbers: Numbers, *, campaign: bool) -> Simulation:
    """Place orders, then change them as people do, or as a campaign does."""
    with simulation(numbers) as found:
        for number in range(orders):
            found.order(number)
        for number in range(changes):
            with background() if campaign else nullcontext():
                found.change(number, orders)
        return found


def busy(looks: int, every: int, numbers: Numbers) -> Simulation:
    """Read as fast as the machine can, and write now and then: only points hold it up."""
    with simulation(numbers) as found:
        for number in range(looks):
            found.look()
            if number % every == 0:
                found.order(number)
        return found


def figures() -> Iterator[Figure]:
    for name, numbers, campaign in (
        ("people", Numbers(), False),
        ("people-beside-a-replica", Numbers(rival_per_minute=3), False),
        ("campaign", Numbers(), True),
    ):
        found = run(ORDERS, CHANGES, numbers, campaign=campaign)
        limits, what = found.forge.github.limits, f"limits.{name}.{ORDERS}+{CHANGES}"
        yield Figure(f"{what}.hours", found.took_s / HOUR_S, "h", aim="<= 1" if campaign else None)
        yield Figure(f"{what}.content-requests", len(found.created_at), "")
        if not campaign:
            aim = None if numbers.rival_per_minute else ">= 0.8"
            yield Figure(f"{what}.used-of-the-first-hour", found.used(), "", aim=aim)
        yield Figure(f"{what}.refused", limits.refused, "")
        yield Figure(f"{what}.refused-twice-in-a-row", limits.refused_again, "", aim="<= 0")
    found = busy(LOOKS, LOOKS // 20, Numbers(deed_s=0.01))
    what = f"limits.busy.{LOOKS}-reads"
    yield Figure(f"{what}.minutes", found.took_s / 60, "min")
    yield Figure(f"{what}.points-used", found.used_points(), "", aim=">= 0.8")
    yield Figure(f"{what}.refused", found.forge.github.limits.refused, "", aim="<= 0")
