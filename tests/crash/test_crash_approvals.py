"""
Agreements, deliveries and withdrawals of orders that wait, killed before and after every write.

Some meet another one half-way. No service runs, which would settle at the same time and take a
write from the process to be killed.
"""

from __future__ import annotations

import os
import secrets
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from approvaldesk import Desk, approval_pack, new_desk, person
from forgeusers import embedded_admin
from rivals import Rival
from tests.crash import judging
from tests.crash.test_crash_commands import Kill, kills

from orderkit.adapters.embedded.platform import EmbeddedPlatform, Ports
from orderkit.adapters.folders.pack_folder import pack_commit, read_folder
from orderkit.cli.connecting import connect
from orderkit.core.errors import NotFoundError
from orderkit.core.names import OrderId
from orderkit.core.order import ledger
from orderkit.core.order.ledger import OrderEntry
from orderkit.core.platform.notification_settings import NAMESPACE_NAME
from orderkit.core.platform.settings import LOCAL_REGISTRY
from orderkit.flows.approval.deciding import approve, decline
from orderkit.flows.approval.settling import settle, withdraw
from orderkit.flows.install.bootstrapping import BootstrapRequest, bootstrap
from orderkit.flows.install.pack_rendering import PlatformValues
from orderkit.flows.notify.notified_events import ensure_namespace
from orderkit.flows.order.approval_records import agreements
from orderkit.flows.platform import ledger_snapshot

SETTLE = ["forge set_status", "forge merge_pull", "forge write"]
APPROVE = ["forge write", *SETTLE]
DECLINE = [
    "forge write",  # its end begins
    "forge close_pull",
    "forge delete_branch",
    "catalog unregister",
    "forge write",  # "closing" begins
    "forge archive",
    "forge write",  # the tombstone
]
DECLINE_ON_FORGE = ["forge review", "forge close_pull"]
NOTIFY = ["cluster create", "cluster create"]  # since when the channel is used, what it was told
NEVER = Kill((), 0, "before")


@pytest.fixture(scope="module")
def state(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("approvals") / "state"


@pytest.fixture(scope="module")
def served(state: Path) -> Iterator[Desk]:
    """A bootstrapped platform without a service; judged at the end."""
    pack = approval_pack(state.parent / "pack")
    embedded = EmbeddedPlatform(state, pack=pack, ports=Ports(0, 0, 0, 0), teams=())
    settings = embedded.start()
    try:
        platform = replace(connect(settings), webhook=None)
        files = read_folder(pack)
        values = PlatformValues(settings.forge.url, pack_commit(pack, files), LOCAL_REGISTRY)
        request = BootstrapRequest(files, values, "user:default/guest")
        bootstrap(platform, request, on_step=lambda *_: None)
        yield new_desk(platform, embedded_admin(settings.forge.url, state))
    finally:
        embedded.stop()
    judging.state_is_sound(state)


@pytest.fixture
def desk(served: Desk) -> Desk:
    return new_desk(served.platform, served.admin)


def run(
    state: Path,
    entry: OrderEntry,
    deed: str,
    kill: Kill,
    login: str = "",
    *,
    environment: Mapping[str, str] | None = None,
) -> list[str]:
    """Let a process do something, which dies at a write, or never. Return the writes then."""
    file = str(state / "platform.yaml")
    arguments = [file, entry.order, str(kill.at), kill.side, deed, login]
    done = subprocess.run(
        [sys.executable, "-m", "dyingend", *arguments],
        cwd=Path(__file__).parents[1] / "support",
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, **(environment or {})},
        timeout=120,
    )
    assert done.returncode == (-signal.SIGKILL if kill.at else 0), done.stderr
    return done.stdout.splitlines()


def operations(desk: Desk, entry: OrderEntry, prefix: str) -> list[str]:
    commits = desk.platform.forge.commits(desk.platform.ledger, path=entry.application_path)
    return [c.operation for c in commits if c.operation.startswith(f"{prefix}-{entry.order}-")]


def assert_delivered_once(desk: Desk, entry: OrderEntry, *, recorded: int) -> None:
    paths = ledger_snapshot(desk.platform).blobs
    assert entry.waiting_path not in paths
    assert "automated" in desk.in_ledger(entry)
    assert len(operations(desk, entry, "register")) == 1
    assert desk.proposal(entry).state == "merged"
    assert len(agreements(desk.platform, entry)) == recorded


def reviewed(desk: Desk) -> OrderEntry:
    entry = desk.order().entry
    desk.approve(desk.proposal(entry), desk.frank)
    return entry


def test_the_writes_of_a_delivery_are_known(desk: Desk, state: Path) -> None:
    assert run(state, reviewed(desk), "settle", NEVER) == SETTLE


@pytest.mark.parametrize("kill", kills(SETTLE), ids=str)
def test_a_killed_delivery_is_finished_once(desk: Desk, state: Path, kill: Kill) -> None:
    entry = reviewed(desk)

    run(state, entry, "settle", kill)
    settle(desk.platform, entry)

    assert settle(desk.platform, entry) is None
    assert_delivered_once(desk, entry, recorded=0)


def test_the_writes_of_an_agreement_are_known(desk: Desk, state: Path) -> None:
    entry = desk.order().entry
    assert run(state, entry, "approve", NEVER, desk.frank.login) == APPROVE


@pytest.mark.parametrize("kill", kills(APPROVE), ids=str)
def test_a_killed_agreement_is_finished_once(desk: Desk, state: Path, kill: Kill) -> None:
    entry = desk.order().entry

    run(state, entry, "approve", kill, desk.frank.login)
    if entry in ledger.waiting_orders(ledger_snapshot(desk.platform).blobs):
        approve(desk.platform, entry.order, person(desk.frank))

    assert_delivered_once(desk, entry, recorded=1)


def test_the_writes_of_a_withdrawal_are_known(desk: Desk, state: Path) -> None:
    entry = desk.order().entry
    assert run(state, entry, "decline", NEVER, desk.frank.login) == DECLINE


@pytest.mark.parametrize("kill", kills(DECLINE), ids=str)
def test_a_killed_withdrawal_is_finished_once(desk: Desk, state: Path, kill: Kill) -> None:
    entry = desk.order().entry

    run(state, entry, "decline", kill, desk.frank.login)
    paths = ledger_snapshot(desk.platform).blobs
    if entry.waiting_path in paths or entry.end_path in paths:
        decline(desk.platform, entry.order, person(desk.frank))

    paths = ledger_snapshot(desk.platform).blobs
    repository = desk.platform.forge.repo(entry.repository)
    assert repository is not None
    assert repository.archived
    assert len(ledger.tombstones(paths, entry.order)) == 1
    assert not {entry.waiting_path, entry.end_path, entry.application_path} & set(paths)
    assert desk.proposal(entry).state == "closed"


def test_what_was_withdrawn_while_it_was_merged_is_not_delivered(desk: Desk) -> None:
    entry = reviewed(desk)

    def withdraw_it() -> None:
        withdraw(desk.platform, entry, "user:default/eve")

    forge: Any = Rival(desk.platform.forge, "merge_pull", withdraw_it, when="after")
    with pytest.raises(NotFoundError, match="was withdrawn meanwhile"):
        settle(replace(desk.platform, forge=forge), entry)

    paths = ledger_snapshot(desk.platform).blobs
    assert forge.has_acted
    assert not {entry.waiting_path, entry.end_path, entry.application_path} & set(paths)
    assert len(ledger.tombstones(paths, entry.order)) == 1


def test_what_was_delivered_meanwhile_is_not_withdrawn(desk: Desk) -> None:
    entry = reviewed(desk)
    settle(desk.platform, entry)

    with pytest.raises(NotFoundError, match="was delivered meanwhile"):
        withdraw(desk.platform, entry, "user:default/eve")

    assert_delivered_once(desk, entry, recorded=0)


def writer(desk: Desk) -> dict[str, str]:
    """Return the credentials of frank, who may write to the ledger and so close its proposals."""
    path = f"/repos/{desk.platform.ledger}/collaborators/{desk.frank.login}"
    desk.admin.api("PUT", path, {"permission": "write"})
    return {
        "ORDERKIT_FORGE_USER": desk.frank.login,
        "ORDERKIT_FORGE_PASSWORD": desk.frank.password,
    }


def test_the_writes_of_declining_on_the_forge_are_known(desk: Desk, state: Path) -> None:
    entry, frank = desk.order().entry, writer(desk)
    assert run(state, entry, "decline-on-forge", NEVER, environment=frank) == DECLINE_ON_FORGE


@pytest.mark.parametrize("kill", kills(DECLINE_ON_FORGE), ids=str)
def test_a_killed_declining_on_the_forge_is_finished_once(
    desk: Desk, state: Path, kill: Kill
) -> None:
    entry, frank = desk.order().entry, writer(desk)

    run(state, entry, "decline-on-forge", kill, environment=frank)
    run(state, entry, "decline-on-forge", NEVER, environment=frank)
    settle(desk.platform, entry)

    reviews = desk.platform.forge.reviews(desk.platform.ledger, desk.proposal(entry).number)
    assert [(r.reviewer.login, r.state) for r in reviews] == [(desk.frank.login, "rejected")]
    assert desk.phase(entry) == "Ended"


@pytest.fixture
def channel(desk: Desk) -> str:
    ensure_namespace(desk.platform, NAMESPACE_NAME)
    return f"chat{secrets.token_hex(3)}"


def test_the_writes_of_a_notification_are_known(desk: Desk, state: Path, channel: str) -> None:
    entry = OrderEntry(desk.team, OrderId("garage-a"))
    assert run(state, entry, "notify", NEVER, channel)[::2] == NOTIFY


@pytest.mark.parametrize("kill", kills(NOTIFY), ids=str)
def test_a_killed_notification_is_sent_again_with_the_same_id(
    desk: Desk, state: Path, channel: str, kill: Kill
) -> None:
    entry = OrderEntry(desk.team, OrderId("garage-a"))

    lines = [run(state, entry, "notify", kill, channel)]
    lines += [run(state, entry, "notify", NEVER, channel) for _ in range(2)]

    sent = [[line for line in run_lines if line.startswith("sent ")] for run_lines in lines]
    assert len({line for run_lines in sent for line in run_lines}) == 1
    assert sent[0] or sent[1]
    assert sent[2] == []
