"""
Count what each story costs: requests, commits, calls; beside 100, 1,000 and 10,000 other orders.

It starts an embedded platform, fills its ledger with orders that are delivered to nobody, and plays
the stories, each as a command in a process of its own, whose requests (by the port that they go to)
and calls of Orderkit's functions are recorded. docs/counts.md has the table, and says what counts.

    .venv/bin/python scripts/story_counts.py [SIZE...]           # compare with docs/counts.md
    .venv/bin/python scripts/story_counts.py [SIZE...] --write   # and write what is found into it
    .venv/bin/python scripts/story_counts.py 100 --requests DIR  # list every request in files, too
"""

from __future__ import annotations

import http.client
import json
import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial
from pathlib import Path, PurePosixPath
from types import FrameType
from typing import Any
from urllib.parse import urlsplit

import yaml

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "tests" / "support")]

from forgeusers import PASSWORD, embedded_admin, named_user  # noqa: E402 - the path comes first
from packcopies import copied_pack  # noqa: E402
from scripts.houses import HOUSES  # noqa: E402

SOURCES = tuple(str(ROOT / house.source) + os.sep for house in HOUSES)
PAGE = ROOT / "docs" / "counts.md"
BEGIN, END = "<!-- written by scripts/story_counts.py -->\n", "<!-- end -->\n"
SIZES = (100, 1_000, 10_000)
TEAMS = 20
BATCH = 2_000
CODE_OF_A_FUNCTION = 0x01  # CO_OPTIMIZED: bodies of modules and classes do not have it
TREE_PAGES = "/git/trees/"
"""A command reads the ledger's tree, a page for each 1,000 files: that is counted by itself."""
CALLS_TOLERANCE = 0.03
"""Of calls, which vary a little with what a wait finds. Requests and commits are exact."""
SYSTEMS = ("forge", "pages", "cluster", "portal", "service")
COLUMNS = ("Story", "Orders", *(name.capitalize() for name in SYSTEMS), "Commits", "Calls")
STORY_S = 600
LONG = timedelta(days=300)
LEASE = {"default": "3d", "maximum": "30d", "extend": {"by": "4d", "times": 20}}
APPROVAL = {
    "rules": [
        {
            "when": "order.isNew && new.stage == 'stage3'",
            "by": ["group:default/finance"],
            "because": "stage 3 is expensive",
        }
    ]
}
CALLS_AN_ORDER = 20
"""At most, for each order of others: a command reads the ledger's tree once or twice."""
GROWS = {"list": "pages of rows from the service", "sweep": "looks at the lease of every order"}
"""The stories that may grow by more than that, and why."""


# In the command's process


class Recorder:
    """
    Records the requests of this process, and counts the calls of Orderkit's functions.

    Of a wait only the last look counts: how many came before depends on the machine.
    """

    def __init__(self) -> None:
        self.requests: list[tuple[int, str, str]] = []
        self.calls = 0

    def __call__(self, frame: FrameType, _event: str, _argument: object) -> None:
        code = frame.f_code
        if code.co_flags & CODE_OF_A_FUNCTION and not code.co_name.endswith("comp>"):
            self.calls += code.co_filename.startswith(SOURCES)

    def listen(self) -> None:
        """Record what every HTTP client of the process sends: all use ``http.client``."""
        send = http.client.HTTPConnection.putrequest

        def putrequest(
            connection: http.client.HTTPConnection, method: str, url: str, *more: Any, **named: Any
        ) -> None:
            self.requests.append((connection.port, method, url))
            send(connection, method, url, *more, **named)

        http.client.HTTPConnection.putrequest = putrequest  # type: ignore[assignment, method-assign]

    def forget_early_looks(self) -> None:
        """Replace ``flows.waiting.until``, before anything imports it."""
        from orderkit.flows import repeating

        until = repeating.until

        def counted(clock: Any, look: Callable[[], Any], *more: Any, **named: Any) -> Any:
            begun = len(self.requests), self.calls

            def last_look() -> Any:
                del self.requests[begun[0] :]
                self.calls = begun[1]
                return look()

            return until(clock, last_look, *more, **named)

        repeating.until = counted


def record(file: str, arguments: Sequence[str]) -> int:
    """Run one command of Orderkit and write what it cost; called in a child process."""
    recorder = Recorder()
    recorder.listen()
    recorder.forget_early_looks()
    from orderkit.cli.main import run

    threading.settrace(recorder)
    sys.settrace(recorder)
    try:
        return run([*arguments])
    finally:
        sys.settrace(None)
        Path(file).write_text(json.dumps([recorder.calls, recorder.requests]))


# The table


@dataclass(frozen=True, slots=True)
class Count:
    """What one story costs at one size of the ledger."""

    requests: Mapping[str, tuple[int, int]]
    """By system: all of them, and the different ones."""
    commits: int
    calls: int

    def cells(self) -> list[str]:
        """Return the cells of the table's row, without story and size."""
        pairs = (self.requests.get(name, (0, 0)) for name in SYSTEMS)
        return [*(_pair(*pair) for pair in pairs), str(self.commits), f"{self.calls:,}"]

    @classmethod
    def of_cells(cls, cells: Sequence[str]) -> Count:
        """Return what the cells of a row say."""
        *pairs, commits, calls = cells
        requests = {name: _unpaired(cell) for name, cell in zip(SYSTEMS, pairs, strict=True)}
        return cls(requests, int(commits), int(calls.replace(",", "")))


def _pair(total: int, distinct: int) -> str:
    return str(total) if total == distinct else f"{total} ({distinct})"


def _unpaired(cell: str) -> tuple[int, int]:
    total, _, distinct = cell.rstrip(")").partition(" (")
    return int(total), int(distinct or total)


Table = dict[tuple[str, int], Count]
"""By story and size."""


def read_table(page: Path = PAGE) -> Table:
    """Return the table of the page."""
    table: Table = {}
    for line in page.read_text().partition(BEGIN)[2].partition(END)[0].splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if len(cells) == len(COLUMNS) and cells[1].replace(",", "").isdigit():
            table[cells[0], int(cells[1].replace(",", ""))] = Count.of_cells(cells[2:])
    return table


def write_table(table: Table, page: Path = PAGE) -> None:
    """Put the table into the page."""
    rows = [
        [name, f"{size:,}", *table[name, size].cells()]
        for name in dict.fromkeys(name for name, _ in table)
        for size in SIZES
        if (name, size) in table
    ]
    head = [[*COLUMNS], ["---", *["---:"] * (len(COLUMNS) - 1)]]
    text = "".join(f"| {' | '.join(row)} |\n" for row in [*head, *rows])
    before, _, rest = page.read_text().partition(BEGIN)
    page.write_text(f"{before}{BEGIN}\n{text}\n{END}{rest.partition(END)[2]}")


def differences(was: Count | None, found: Count) -> Iterator[str]:
    """Yield what differs from the table, in words."""
    if was is None:
        yield "is not in the table"
        return
    names = [*COLUMNS[2:-1]]
    for name, before, now in zip(names, was.cells(), found.cells(), strict=False):
        if before != now:
            yield f"{name.lower()}: was {before}, is {now}"
    if abs(found.calls - was.calls) > CALLS_TOLERANCE * was.calls:
        yield f"calls: was {was.calls:,}, is {found.calls:,}"


def growth(table: Table) -> Iterator[str]:
    """Yield what grows with the orders of others and should not."""
    for name in dict.fromkeys(name for name, _ in table):
        sizes = sorted(size for of, size in table if of == name)
        few, many = table[name, sizes[0]], table[name, sizes[-1]]
        cells = zip(COLUMNS[2:-1], few.cells(), many.cells(), strict=False)
        for column, before, now in cells:
            if before != now and column != "Pages" and name not in GROWS:
                yield f"{name}: {column.lower()} grow with the orders of others"
        each = (many.calls - few.calls) / max(1, sizes[-1] - sizes[0])
        if each > CALLS_AN_ORDER and name not in GROWS:
            yield f"{name}: {each:.1f} calls for each order of others"


# The platform


@dataclass(slots=True)
class Site:
    """A platform that runs, and the commands played on it."""

    settings: Any
    platform: Any
    state: Path
    systems: Mapping[int, str]
    """By port."""
    found: dict[str, Count] = field(default_factory=dict)
    requests: dict[str, list[str]] = field(default_factory=dict)
    """By story: every request, in its order."""

    def play(
        self,
        story: str,
        *arguments: str,
        then: Callable[[], None] = lambda: None,
        code: int = 0,
        **environment: str,
    ) -> None:
        """Run a command, and remember what it cost; `then` waits for what it set going."""
        before = self._commits()
        calls, requests = self.run(*arguments, code=code, **environment)
        then()
        by_system: dict[str, list[str]] = {}
        self.requests[story] = []
        for port, method, url in requests:
            system = self.systems[port]
            self.requests[story].append(f"{system} {method} {url}")
            is_page = system == "forge" and TREE_PAGES in url
            by_system.setdefault("pages" if is_page else system, []).append(f"{method} {url}")
        counted = {name: (len(all_), len({*all_})) for name, all_ in by_system.items()}
        self.found[story] = Count(counted, self._commits() - before, calls)

    def run(self, *arguments: str, code: int = 0, **environment: str) -> Any:
        """Run a command under the recorder; return its calls and requests."""
        file = self.state.parent / "recorded"
        words = [*arguments, "--platform", str(self.state / "platform.yaml")]
        done = subprocess.run(  # noqa: S603
            [sys.executable, __file__, "--record", str(file), *words],
            env={**os.environ, **environment},
            capture_output=True, text=True, timeout=STORY_S, check=False,
        )  # fmt: skip
        if done.returncode != code:
            sys.exit(f"orderkit {' '.join(arguments)} ended with {done.returncode}:\n{done.stderr}")
        return json.loads(file.read_text())

    def wait_ready(self, order: str) -> None:
        """Wait until an order is delivered."""
        from ground.errors import NotFoundError
        from orderkit.flows.order import order_report

        def ready() -> bool:
            with suppress(NotFoundError):
                return bool(order_report.status(self.platform, order).state.ready)
            return False

        self.wait(ready, f"{order} becoming Ready")

    def wait(self, is_done: Callable[[], bool], goal: str) -> None:
        """Wait until something that happens beside the commands has happened."""
        from orderkit.flows.repeating import until

        until(self.platform.clock, is_done, bool, timeout_s=STORY_S, goal=goal)

    def _commits(self) -> int:
        return sum(
            int(_git(repository, "rev-list", "--all", "--count"))
            for repository in sorted((self.state / "forge").rglob("*.git"))
        )


def _git(repository: Path, *arguments: str) -> str:
    call = ["git", "-C", str(repository), *arguments]
    return subprocess.run(call, capture_output=True, text=True, check=True).stdout  # noqa: S603


@contextmanager
def site(folder: Path) -> Iterator[Site]:
    """Run the reference pack, its garages with a lease, and stage 3 with an approval."""
    from orderkit_standins.platform import Ports
    from orderkit_standins.serve_platform import EmbeddedRunRequest, running

    pack = copied_pack(folder / "pack")
    kit = pack / "templates" / "garage" / "kit.yaml"
    document = yaml.safe_load(kit.read_text())
    document["spec"] |= {"lease": LEASE, "approval": APPROVAL}
    document["spec"]["changes"][0]["how"] = "direct"
    kit.write_text(yaml.safe_dump(document, sort_keys=False))
    request = EmbeddedRunRequest(folder / "state", pack, Ports(0, 0, 0, 0), ("pit",))
    with running(request, on_step=lambda *_: None) as started:
        settings, embedded = started.settings, started.embedded
        addresses = {
            "forge": settings.forge.url,
            "cluster": embedded.url("cluster"),
            "portal": settings.portal.url,
            "service": settings.service.url,
        }
        ports = {urlsplit(url).port or 0: name for name, url in addresses.items()}
        yield Site(settings, started.platform, folder / "state", ports)


def fill(site: Site, orders: int) -> None:
    """Write orders of many teams into the ledger, and wait until Argo CD has them."""
    from ground.names import OrderId, TeamName
    from ground.objects.kube_objects import APPLICATION, ARGOCD_NAMESPACE
    from orderkit.core.kit.order_kinds import kinds_of
    from orderkit.core.order import ledger, ledger_applications
    from orderkit.core.order.lease import LeaseRecord
    from orderkit.core.order.ledger import OrderEntry
    from orderkit.flows.platform import published_pack
    from orderkit.ports.forge import FileChange, Operation
    from yamlfiles import yaml11

    platform, url = site.platform, site.settings.forge.url
    kinds = kinds_of(published_pack(platform).kits())
    now = platform.clock.now()
    lease = LeaseRecord(now + LONG, now, now, LONG, by="user:default/counts").annotations()
    files: dict[PurePosixPath, str] = {}
    teams = [TeamName(f"crew-{number:02d}") for number in range(TEAMS)]
    for team in teams:
        place = ledger_applications.TeamPlace(team, url, platform.ledger, kinds)
        files[ledger.team_path(team)] = ledger_applications.team_file(place)
        files[ledger.apps_keep_path(team)] = ""
        platform.forge.ensure_org(team)
    for number in range(orders):
        entry = OrderEntry(teams[number % TEAMS], OrderId(f"garage-car-{number:05d}"))
        made = ledger_applications.order_application(
            entry, kit="garage", forge_url=url, requester="user:default/counts", lease=lease
        )
        made["metadata"]["annotations"]["argocd.argoproj.io/skip-reconcile"] = "true"
        files[entry.application_path] = yaml11.dump(made)
    changes = [FileChange(path, text.encode(), None) for path, text in files.items()]
    for at in range(0, len(changes), BATCH):
        operation = Operation(f"fill-{at}", "user:default/counts", "fill")
        platform.forge.write(platform.ledger, changes[at : at + BATCH], operation)

    def are_there() -> bool:
        there = platform.cluster.list(APPLICATION, namespace=ARGOCD_NAMESPACE).items
        names = [str(each["metadata"]["name"]) for each in there]
        return sum(name.startswith("garage-car-") for name in names) == orders

    site.wait(are_there, f"{orders:,} Applications")


# The stories


def play_all(site: Site) -> None:
    """Play the life of an order, and the begin of one that waits for an approval."""
    order, team = "garage-walk", "team_name=walk"
    ready = partial(site.wait_ready, order)
    site.play("team add", "team", "add", "walk")
    site.play("order", "order", "garage", team, "stage=stage2", "--no-wait", then=ready)
    site.play("order again", "order", "garage", team, "stage=stage2")
    site.play("status", "status", order)
    site.play("list", "list")
    site.play("plan", "plan", order, "stage=stage1", code=10)
    site.play("change", "change", order, "stage=stage1", "--no-wait", then=ready)
    planned = partial(_wait_for_plan, site, order)
    site.play("proposal", "change", order, "stage=stage2", "--pr", then=planned)
    site.play("merge", "merge", order, "1", "--no-wait", then=ready)
    site.play("history", "history", order)
    site.play("extend", "lease", "extend", order, "8h", "--reason", "counted", then=ready)
    site.play("sweep", "lease", "sweep")
    site.play("end", "destroy", order, "--confirm", order, "--archive-repository")
    _add_people(site)
    words = ("garage", "team_name=hall", "stage=stage3", "--requester", "user:default/eve")
    site.play("order to approve", "order", *words, "--no-wait")
    site.play(
        "approval", "approve", "garage-hall", then=partial(_wait_for_expiry, site),
        ORDERKIT_FORGE_USER="frank", ORDERKIT_FORGE_PASSWORD=PASSWORD,
    )  # fmt: skip


def _wait_for_plan(site: Site, order: str) -> None:
    """Wait until the service has posted its plan of the pull request."""
    from ground.names import RepoId

    forge, repo = site.platform.forge, RepoId("walk", order)
    (pull,) = forge.pulls(repo, state="open")
    site.wait(lambda: bool(forge.statuses(repo, pull.head_commit)), "the plan of a pull request")


def _wait_for_expiry(site: Site) -> None:
    """Wait until the service has delivered what was approved, with its expiry."""
    from ground.errors import OrderkitError
    from ground.names import RepoId
    from orderkit.flows.argocd.commit_pinning import pinned_commit
    from orderkit.flows.order.expiry_note import noted_expiry
    from orderkit.flows.order.live_order import find_living

    def is_noted() -> bool:
        with suppress(OrderkitError):  # it waits for approval
            entry = find_living(site.platform, "garage-hall").entry
            head = site.platform.forge.head(RepoId("hall", "garage-hall"))
            is_pinned = pinned_commit(site.platform, entry) == head
            return is_pinned and bool(noted_expiry(site.platform, "garage-hall"))
        return False

    site.wait(is_noted, "the expiry of garage-hall")


def _add_people(site: Site) -> None:
    """Add eve with her team, and frank of finance, who has to approve what she orders."""
    from orderkit.ports.forge import TeamRight

    forge = site.platform.forge
    admin = embedded_admin(site.settings.forge.url, site.state)
    for login in ("eve", "frank"):
        named_user(admin, login)
    admin.api("POST", "/orgs", {"username": "finance"})
    forge.ensure_access(
        "finance", "approvers", right=TeamRight.READ, members=["frank"], repositories=()
    )
    site.run("team", "add", "hall", "--member", "eve")


def counted(orders: int, listing: Path | None) -> dict[str, Count]:
    """Play every story in a ledger of that many orders of others."""
    with tempfile.TemporaryDirectory() as name, site(Path(name)) as started:
        fill(started, orders)
        play_all(started)
        if listing:
            listing.mkdir(exist_ok=True)
            for story, lines in started.requests.items():
                text = "".join(f"{line}\n" for line in lines)
                (listing / f"{story.replace(' ', '-')}-{orders}").write_text(text)
        return started.found


def main(arguments: Sequence[str]) -> int:
    """Count, compare, write if asked; return the exit code."""
    listing = None
    if "--requests" in arguments:
        listing = Path(arguments[arguments.index("--requests") + 1])
    table, problems = read_table(), []
    for size in [int(word) for word in arguments if word.isdigit()] or SIZES:
        for story, count in counted(size, listing).items():
            print(f"{story}, {size:,} orders: {' | '.join(count.cells())}", flush=True)
            told = differences(table.get((story, size)), count)
            problems += [f"{story}, {size:,} orders: {text}" for text in told]
            table[story, size] = count
    if "--write" in arguments:
        write_table(table)
        problems = []
    elif problems:
        problems.append(
            "hint: read docs/counts.md; a count that fell, or that has a reason to rise, goes into"
            " the table with scripts/story_counts.py --write, and the commit says why"
        )
    problems += growth(table)
    print("\n".join(problems), file=sys.stderr)
    return int(bool(problems))


if __name__ == "__main__":
    if sys.argv[1:2] == ["--record"]:
        sys.exit(record(sys.argv[2], sys.argv[3:]))
    sys.exit(main(sys.argv[1:]))
