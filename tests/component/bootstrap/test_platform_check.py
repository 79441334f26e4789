"""``orderkit platform check``: silent on a bootstrapped platform, exact about each drift.

What the deliverer heals by itself is tried where it can be stopped: ``tests/e2e``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import PurePosixPath

import pytest
from commands import Command, Done

from orderkit.flows.argocd.refreshing import application_key
from orderkit.flows.repeating import until
from orderkit.ports.forge import FileChange, Operation

from .conftest import Bare

OWNER = "somebody"


def verdicts(done: Done) -> dict[str, str]:
    return {finding["what"]: finding["verdict"] for finding in done.json["findings"]}


@pytest.fixture(autouse=True)
def _bootstrapped(site: Bare, orderkit: Command) -> None:
    """Bootstrap, and wait for what it leaves to the ledger's delivery: the teams' projects."""
    assert orderkit("bootstrap", "--no-probe").code == 0
    until(
        site.platform.clock,
        lambda: orderkit("platform", "check", "--json"),
        lambda done: done.code == 0,
        timeout_s=120,
        goal="a check that finds nothing",
        why_not=lambda done: done.out,
    )


def test_nothing_has_drifted_after_a_bootstrap(orderkit: Command) -> None:
    done = orderkit("platform", "check", "--json")

    assert done.code == 0, done.out
    assert set(verdicts(done).values()) == {"ok"}
    assert {"pack", "root", "in force", "projects", "kinds", "certificates"} <= set(verdicts(done))


def test_the_table_has_a_line_for_each_check(orderkit: Command) -> None:
    done = orderkit("platform", "check")

    assert done.code == 0
    assert "CHECK" in done.out
    assert "certificates" in done.out


def edit_pack(site: Bare) -> None:
    repo = site.platform.pack_repo
    change = FileChange(PurePosixPath("gitops", "by-hand.yaml"), b"a: 1\n", None)
    site.platform.forge.write(repo, [change], Operation("hand", "user:default/eve", "by hand"))


def move_root(site: Bare) -> None:
    patch = {"spec": {"source": {"path": "elsewhere"}}}
    site.platform.cluster.patch(application_key("root"), patch, owner=OWNER)


def unregister(site: Bare) -> None:
    site.platform.catalog.unregister(site.platform.catalog.locations()[0].target)


@dataclass(frozen=True)
class Drift:
    reason: str
    act: Callable[[Bare], None]
    found_by: str


DRIFTS = [
    Drift("a commit by hand in the pack's repository", edit_pack, "pack"),
    Drift("root delivers another folder", move_root, "root"),
    Drift("a template is not listed", unregister, "portal"),
]


@pytest.mark.parametrize("drift", DRIFTS, ids=lambda drift: drift.reason)
def test_each_drift_is_found_and_nothing_is_written(
    drift: Drift, site: Bare, orderkit: Command
) -> None:
    drift.act(site)
    before = [
        site.platform.forge.head(repo) for repo in (site.platform.pack_repo, site.platform.ledger)
    ]

    done = orderkit("platform", "check", "--json")

    assert done.code == 1
    assert verdicts(done)[drift.found_by] == "fail", done.out
    after = [
        site.platform.forge.head(repo) for repo in (site.platform.pack_repo, site.platform.ledger)
    ]
    assert after == before
