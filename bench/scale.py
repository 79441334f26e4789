"""
Work out what a campaign over 100,000 orders takes, from costs that were measured.

``python -m bench.scale`` prints the tables of docs/scale.md; ``--write`` puts them there. The costs
stand in ``bench/scale_costs.json``: values of ``python -m bench campaign``. The limits are what the
forges' own pages say, and what our adapters keep to. Nothing is run.
"""

from __future__ import annotations

import hashlib
import json
import sys
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from orderkit.adapters.forges.reading import LARGE
from orderkit.adapters.github.transport import PER_HOUR
from orderkit.adapters.gitlab.transport import PAGE as GITLAB_PAGE
from orderkit.core.campaign.cluster_jobs import SHARDS_MAX
from orderkit.core.campaign.definition import Pace
from orderkit.core.campaign.record import CampaignRecord, OrderOutcome, WaveRecord

ORDERS, ORGANISATIONS = 100_000, 200
PAGE = Path(__file__).parents[1] / "docs" / "scale.md"
COSTS = Path(__file__).with_name("scale_costs.json")
GITHUB_ENTRIES, GITHUB_TREE_BYTES = 100_000, 7_000_000
"""Of one answer about a tree: https://docs.github.com/rest/git/trees."""
GITHUB_AN_HOUR = 5_000
"""Requests of one installation or account; large organisations get up to 12,500."""
GITLAB_A_MINUTE = 400
"""Requests about projects by one account on GitLab.com."""
GITEA_PAGE = 1_000
APPLICATION_BYTES = 3_500
"""Of an order's Application and XR in a list of the cluster (docs/figures.md)."""
_BEGIN, _END = "<!-- computed -->\n", "<!-- /computed -->"
_HOUR_S, _DAY, _MIB = 3_600.0, 24, 1 << 20


@dataclass(frozen=True, slots=True)
class Costs:
    """What was measured for one order."""

    requests: float
    """To the forge, of which one creates content."""
    client_cpu_s: float
    """Processor time of the process that carries the campaign out."""
    seconds: float
    """By one process, on the embedded platform, until the order is Ready."""
    drift_s: float
    entry_bytes: int
    """The order's file in the ledger."""
    team_files: int

    @classmethod
    def read(cls) -> Costs:
        """Read the file."""
        return cls(**json.loads(COSTS.read_text())["costs"])


@dataclass(frozen=True, slots=True)
class Way:
    """A way to carry a campaign out, and what bounds it: requests an hour of each kind."""

    name: str
    created: int
    """Requests of an order that create content."""
    requests_an_hour: float = float("inf")
    created_an_hour: float = float("inf")
    accounts: int = 1
    """Credentials with limits of their own."""

    def hours(self, costs: Costs, orders: int) -> float:
        """Return how long the forge's limits make it last."""
        an_hour = self.requests_an_hour * self.accounts
        requests = orders * (costs.requests + self.created - 1)
        created = orders * self.created / (self.created_an_hour * self.accounts)
        return max(requests / an_hour, created)


WAYS = (
    Way("GitHub.com, one App, direct", 1, GITHUB_AN_HOUR, PER_HOUR),
    Way("GitHub.com, one App, pull requests", 4, GITHUB_AN_HOUR, PER_HOUR),
    Way("GitHub.com, an App for each of 20 platforms, direct", 1, GITHUB_AN_HOUR, PER_HOUR, 20),
    Way("GitLab.com, direct", 1, GITLAB_A_MINUTE * 60),
    Way("GitLab.com, merge requests", 4, GITLAB_A_MINUTE * 60),
)


def tables(costs: Costs) -> Iterator[str]:
    """Yield the lines of the page's tables."""
    yield from _table(("What is measured, for one order", "Cost"), _measured(costs))
    yield ""
    yield from _table((f"Time of {ORDERS:,} orders", "Hours", "Bound by"), _times(costs))
    yield ""
    header = ("Ledger", "1,000 orders", "10,000", "100,000", "Breaks at")
    yield from _table(header, _ledger(costs))


def _measured(costs: Costs) -> Iterator[Sequence[str]]:
    yield "requests to the forge, direct", f"{costs.requests:.2f}, of which 1 creates content"
    yield "processor time of the campaign's process", f"{costs.client_cpu_s * 1000:.0f} ms"
    yield "one process, embedded platform, to Ready", f"{costs.seconds:.2f} s"
    yield "drift", f"{costs.drift_s * 1000:.0f} ms"
    yield "its file in the ledger", f"{costs.entry_bytes:,} bytes"


def _times(costs: Costs) -> Iterator[Sequence[str]]:
    pace, largest = Pace(), 10_000
    paced = ORDERS / pace.per_minute / 60
    yield f"`pace` by default, {pace.per_minute} a minute", _hours(paced), "`pace.perMinute`"
    alone = ORDERS * costs.client_cpu_s / _HOUR_S
    yield "one process, at the largest pace", _hours(alone), "its processor time"
    crew = max(alone / SHARDS_MAX, ORDERS / largest / 60)
    yield f"{SHARDS_MAX} Pods, at the largest pace", _hours(crew), "`pace.perMinute`, 10,000"
    one = ORDERS * costs.seconds / _HOUR_S
    yield "the embedded platform (one process assembles and delivers)", _hours(one), "delivery"
    for way in WAYS:
        hours = way.hours(costs, ORDERS)
        is_created = way.created_an_hour < float("inf")
        limit = f"{PER_HOUR} changes an hour" if is_created else f"{GITLAB_A_MINUTE} a minute"
        yield way.name, _hours(hours), limit
    yield "drift, one process", _hours(ORDERS * costs.drift_s / _HOUR_S), "two requests an order"


def _ledger(costs: Costs) -> Iterator[Sequence[str]]:
    sizes = (1_000, 10_000, ORDERS)

    def row(name: str, cells: Sequence[str], breaks: str) -> Sequence[str]:
        return name, *cells, breaks

    entries = [_entries(costs, orders) for orders in sizes]
    yield row("files and folders", [f"{n:,}" for n in entries], "nothing in Git")
    texts = [orders * costs.entry_bytes / _MIB for orders in sizes]
    yield row("size of its files", [f"{mib:,.0f} MiB" for mib in texts], "nothing in Git")
    largest = [-(-orders // ORGANISATIONS) for orders in sizes]
    cells = [f"{n:,}" for n in largest]
    yield row("files of a team's folder", cells, "3,000: GitHub recommends no more in a folder")
    answers = [n * _github_entry_bytes() / 1e6 for n in entries]
    most = min(GITHUB_ENTRIES, GITHUB_TREE_BYTES // _github_entry_bytes())
    breaks = f"{most:,} entries: GitHub cuts its answer off"
    yield row("GitHub's answer about its tree", [f"{mb:,.1f} MB" for mb in answers], breaks)
    github = [1 if n <= most else 2 + ORGANISATIONS for n in entries]
    yield row("… requests of a first read", [f"{n:,}" for n in github], "")
    gitea = [-(-n // GITEA_PAGE) for n in entries]
    yield row("Gitea: requests of a first read", [f"{n:,}" for n in gitea], "")
    gitlab = [-(-n // GITLAB_PAGE) for n in entries]
    minutes = gitlab[-1] / GITLAB_A_MINUTE
    breaks = f"{minutes:.1f} minutes of GitLab.com's limit at 100,000"
    yield row("GitLab: requests of a first read", [f"{n:,}" for n in gitlab], breaks)
    again = ["3" if n > LARGE else "1" for n in entries]
    yield row("GitHub, Gitea: requests after an order changed", again, "")
    apps = -(-ORGANISATIONS // GITLAB_PAGE)
    again = [str(1 + apps + -(-n // GITLAB_PAGE)) for n in largest]
    yield row("GitLab: requests after an order changed", again, "")
    lists = [orders * APPLICATION_BYTES / 1e6 for orders in sizes]
    breaks = "each look while a wave soaks, `status`, `drift`"
    yield row("a list of Applications and XRs", [f"{mb:,.1f} MB" for mb in lists], breaks)
    records = [_record_bytes(orders) for orders in sizes]
    cells = [f"{whole / _MIB:.1f} MiB" for whole, _ in records]
    yield row("record of a campaign over all", cells, "every process of the campaign reads it")
    cells = [f"{packed / _MIB:.1f} MiB" for _, packed in records]
    yield row("… as Git stores each of its versions", cells, "one version a wave")


def _entries(costs: Costs, orders: int) -> int:
    """Return the files and folders of a ledger: each organisation is a team."""
    return orders + ORGANISATIONS * (costs.team_files + 1) + 10


def _github_entry_bytes() -> int:
    """Return the size of one entry of GitHub's answer, without white space."""
    path, sha = "apps/team-123/garage-of-the-team-0123.yaml", "0" * 40
    url = f"https://api.github.com/repos/acme-platform/ledger/git/blobs/{sha}"
    entry = {"path": path, "mode": "100644", "type": "blob", "sha": sha, "size": 1_234, "url": url}
    return len(json.dumps(entry, separators=(",", ":"))) + 1


def _record_bytes(orders: int) -> tuple[int, int]:
    """Return the size of a campaign's record, and of what Git makes of it."""
    names = tuple(f"garage-of-the-team-{number:06d}" for number in range(orders))
    commits = {name: hashlib.sha256(name.encode()).hexdigest()[:40] for name in names}
    outcomes = {name: OrderOutcome("ready", commit) for name, commit in commits.items()}
    wave = WaveRecord("all", names, "2026-11-28T03:00:00Z", outcomes)
    record = CampaignRecord("all", "all-1", "0" * 40, "done", "2026-11-28T03:00:00Z", (wave,))
    text = record.to_text().encode()
    return len(text), len(zlib.compress(text))


def _hours(hours: float) -> str:
    return f"{hours:.1f}" if hours < 2 * _DAY else f"{hours:,.0f} ({hours / _DAY:.0f} days)"


def _table(header: Sequence[str], rows: Iterator[Sequence[str]]) -> Iterator[str]:
    for cells in (header, ["---"] * len(header), *rows):
        yield f"| {' | '.join(cells)} |".replace("| --- ", "|---").replace("|--- |", "|---|")


def with_tables(page: str, costs: Costs) -> str:
    """Return the page with its tables as they are computed now."""
    before, rest = page.split(_BEGIN)
    after = rest.split(_END)[1]
    return f"{before}{_BEGIN}\n{chr(10).join(tables(costs))}\n\n{_END}{after}"


if __name__ == "__main__":
    if "--write" in sys.argv:
        PAGE.write_text(with_tables(PAGE.read_text(), Costs.read()))
    else:
        print("\n".join(tables(Costs.read())))
