"""
Agreements, deliveries and withdrawals of orders that wait, killed before and after every write.

Some meet another one half-way. No service runs, which would settle at the same time and take a
write from the process to be killed.
"""

from __future__ import annotations

import itertools
import secrets
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from approvaldesk import Desk, approval_pack, new_desk, person
from forgeusers import embedded_admin
from rivals import Rival
from tests.crash import judging
from tests.crash.processes import KILLED, Zygote
from tests.crash.test_crash_commands import Kill, kills

from ground.errors import NotFoundError
from ground.names import OrderId
from orderkit.adapters.folders.pack_folder import pack_commit, read_folder
from orderkit.cli.connecting import connect
from orderkit.core.order import ledger
from orderkit.core.order.ledger import OrderEntry
from orderkit.core.platform.notification_settings import NAMESPACE_NAME
from orderkit.core.platform.settings import LOCAL_REGISTRY
from orderkit.flows.approval.deciding import approve, decline
from orderkit.flows.approval.settling import settle, settle_pull, settle_touched, withdraw
from orderkit.flows.install.bootstrapping import BootstrapRequest, bootstrap
from orderkit.flows.install.pack_rendering import PlatformValues
from orderkit.flows.notify.notified_events import ensure_namespace
from orderkit.flows.order.ledger_records import agreements
from orderkit.flows.platform import ledger_snapshot
from orderkit.flows.team.teams import TeamChange, change_team
from orderkit_standins.platform import EmbeddedPlatform, Ports

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


class Deeds:
    """Lets processes do something, each of which dies at a write, or never."""

    def __init__(self, state: Path) -> None:
        self.zygote = Zygote()
        self._state = state
        self._numbers = itertools.count(1)

    def __call__(
        self,
        entry: OrderEntry,
        deed: str,
        kill: Kill,
        login: str = "",
        *,
        environment: Mapping[str, str] | None = None,
    ) -> list[str]:
        """Run one to its end. Return the lines that it wrote: its writes, if it never dies."""
        platform, log = self._state / "platform.yaml", f"{deed}-{next(self._numbers)}.log"
        process = self.zygote.start(
            [str(platform), entry.order, str(kill.at), kill.side, deed, login],
            self._state.with_name(log),
            entry="dyingend:run",
            environment=environment,
        )
        code = process.wait(120)
        assert code == (KILLED if kill.at else 0), process.text()
        return process.text().splitlines()


@pytest.fixture(scope="module")
def run(state: Path) -> Iterator[Deeds]:
    deeds = Deeds(state)
    yield deeds
    deeds.zygote.close()


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


def test_the_writes_of_a_delivery_are_known(desk: Desk, run: Deeds) -> None:
    assert run(reviewed(desk), "settle", NEVER) == SETTLE


@pytest.mark.parametrize("kill", kills(SETTLE), ids=str)
def test_a_killed_delivery_is_finished_once(desk: Desk, run: Deeds, kill: Kill) -> None:
    entry = reviewed(desk)

    run(entry, "settle", kill)
    settle(desk.platform, entry)

    assert settle(desk.platform, entry) is None
    assert_delivered_once(desk, entry, recorded=0)


def test_the_writes_of_an_agreement_are_known(desk: Desk, run: Deeds) -> None:
    entry = desk.order().entry
    assert run(entry, "approve", NEVER, desk.frank.login) == APPROVE


@pytest.mark.parametrize("kill", kills(APPROVE), ids=str)
def test_a_killed_agreement_is_finished_once(desk: Desk, run: Deeds, kill: Kill) -> None:
    entry = desk.order().entry

    run(entry, "approve", kill, desk.frank.login)
    if entry in ledger.waiting_orders(ledger_snapshot(desk.platform).blobs):
        approve(desk.platform, entry.order, person(desk.frank))

    assert_delivered_once(desk, entry, recorded=1)


def test_the_writes_of_a_withdrawal_are_known(desk: Desk, run: Deeds) -> None:
    entry = desk.order().entry
    assert run(entry, "decline", NEVER, desk.frank.login) == DECLINE


@pytest.mark.parametrize("kill", kills(DECLINE), ids=str)
def test_a_killed_withdrawal_is_finished_once(desk: Desk, run: Deeds, kill: Kill) -> None:
    entry = desk.order().entry

    run(entry, "decline", kill, desk.frank.login)
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


def waits(desk: Desk, entry: OrderEntry) -> bool:
    return entry.waiting_path in ledger_snapshot(desk.platform).blobs


def test_what_is_heard_of_a_pull_request_settles_its_order_alone(desk: Desk) -> None:
    other = new_desk(desk.platform, desk.admin)
    heard, unheard = reviewed(desk), reviewed(other)

    settle_pull(desk.platform, desk.proposal(heard).number)

    assert_delivered_once(desk, heard, recorded=0)
    assert waits(desk, unheard)


def test_what_is_heard_of_the_ledger_settles_the_orders_of_the_teams_it_is_about(
    desk: Desk,
) -> None:
    other = new_desk(desk.platform, desk.admin)
    touched, untouched = reviewed(desk), reviewed(other)
    before = ledger_snapshot(desk.platform)

    assert settle_touched(desk.platform, before) == before
    assert waits(desk, touched)
    change = TeamChange(limits={"orders": "9"})
    change_team(desk.platform, desk.team, requester="user:default/boss", change=change)
    settle_touched(desk.platform, before)

    assert_delivered_once(desk, touched, recorded=0)
    assert waits(desk, untouched)
    settle_touched(desk.platform, None)
    assert_delivered_once(desk, untouched, recorded=0)


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


def test_the_writes_of_declining_on_the_forge_are_known(desk: Desk, run: Deeds) -> None:
    entry, frank = desk.order().entry, writer(desk)
    assert run(entry, "decline-on-forge", NEVER, environment=frank) == DECLINE_ON_FORGE


@pytest.mark.parametrize("kill", kills(DECLINE_ON_FORGE), ids=str)
def test_a_killed_declining_on_the_forge_is_finished_once(
    desk: Desk, run: Deeds, kill: Kill
) -> None:
    entry, frank = desk.order().entry, writer(desk)

    run(entry, "decline-on-forge", kill, environment=frank)
    run(entry, "decline-on-forge", NEVER, environment=frank)
    settle(desk.platform, entry)

    reviews = desk.platform.forge.reviews(desk.platform.ledger, desk.proposal(entry).number)
    assert [(r.reviewer.login, r.state) for r in reviews] == [(desk.frank.login, "rejected")]
    assert desk.phase(entry) == "Ended"


@pytest.fixture
def channel(desk: Desk) -> str:
    ensure_namespace(desk.platform.cluster, NAMESPACE_NAME)
    return f"chat{secrets.token_hex(3)}"


def test_the_writes_of_a_notification_are_known(desk: Desk, run: Deeds, channel: str) -> None:
    entry = OrderEntry(desk.team, OrderId("garage-a"))
    assert run(entry, "notify", NEVER, channel)[::2] == NOTIFY


@pytest.mark.parametrize("kill", kills(NOTIFY), ids=str)
def test_a_killed_notification_is_sent_again_with_the_same_id(
    desk: Desk, run: Deeds, channel: str, kill: Kill
) -> None:
    entry = OrderEntry(desk.team, OrderId("garage-a"))

    lines = [run(entry, "notify", kill, channel)]
    lines += [run(entry, "notify", NEVER, channel) for _ in range(2)]

    sent = [[line for line in run_lines if line.startswith("sent ")] for run_lines in lines]
    assert len({line for run_lines in sent for line in run_lines}) == 1
    assert sent[0] or sent[1]
    assert sent[2] == []
