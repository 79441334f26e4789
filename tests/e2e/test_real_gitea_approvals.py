"""Approvals with a real Gitea: its reviews, groups, statuses and its admin's merges."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from contextlib import suppress

import mixedplatform
import pytest
from approvaldesk import (
    FINANCE,
    RULES,
    Desk,
    approval_pack,
    new_desk,
    person,
    published_approval,
)
from bays import Bay, ask, set_
from forgeusers import ForgeUser, named_user, new_user
from lab.realgitea import add_token, add_user, serving
from published import Up

from ground.errors import OrderkitError, RefusedError
from ground.names import RepoId
from orderkit.adapters.folders.pack_folder import pack_commit, read_folder
from orderkit.core.order.ledger import OrderEntry
from orderkit.core.platform.settings import LOCAL_REGISTRY
from orderkit.flows.approval.deciding import approve, approve_on_forge
from orderkit.flows.approval.settling import settle
from orderkit.flows.argocd.commit_pinning import pinned_commit
from orderkit.flows.change.reviewing import merge_reviewed
from orderkit.flows.install.bootstrapping import BootstrapRequest, bootstrap
from orderkit.flows.install.pack_rendering import PlatformValues
from orderkit.flows.order.order_report import status
from orderkit.flows.repeating import until
from orderkit.ports.requesters import Requester
from orderkit_standins.platform import BOT_SCOPES

SCOPES = tuple(scope for scope in BOT_SCOPES if "admin" not in scope)
READY_S = 300.0


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Up, ForgeUser]]:
    """A platform whose account is an ordinary user of a Gitea of its own, and Gitea's admin."""
    folder = tmp_path_factory.mktemp("approvals")
    pack = approval_pack(folder / "pack")
    (folder / "gitea").mkdir()
    (folder / "state").mkdir()
    with serving(folder / "gitea") as gitea:
        bot = add_user(gitea, f"orderkit-{secrets.token_hex(3)}")
        bot_token = add_token(gitea.url, bot, SCOPES)
        wanted = mixedplatform.Wanted(folder / "state", pack, gitea.url, bot[0], bot_token)
        files = read_folder(pack)
        values = PlatformValues(gitea.url, pack_commit(pack, files), LOCAL_REGISTRY)
        with mixedplatform.running(wanted) as up:
            request = BootstrapRequest(files, values, "user:default/guest")
            bootstrap(up.platform, request, on_step=lambda *_: None)
            admin = ForgeUser(gitea.url, gitea.user, gitea.password)
            up.platform.forge.ensure_org(FINANCE)
            yield up, admin


@pytest.fixture
def desk(site: tuple[Up, ForgeUser]) -> Desk:
    return new_desk(site[0].platform, site[1])


def merge_as_owner(desk: Desk, repo: RepoId, number: int, head: str) -> int:
    """
    Merge as an owner of the organisation who sets the statuses, too.

    Return what Gitea answered to its admin, who is not an owner, before.
    """
    path = f"/repos/{repo}/pulls/{number}/merge"
    first = desk.admin.call("POST", path, {"Do": "merge", "force_merge": True})
    teams = desk.admin.api("GET", f"/orgs/{repo.owner}/teams")
    (owners,) = [team for team in teams if team["name"] == "Owners"]
    desk.admin.api("PUT", f"/teams/{owners['id']}/members/{desk.admin.login}")

    def is_merged() -> bool:
        for context in ("orderkit/approval", "orderkit/review"):
            body = {"context": context, "state": "success"}
            desk.admin.api("POST", f"/repos/{repo}/statuses/{head}", body)
        return desk.admin.call("POST", path, {"Do": "merge"}).ok

    until(desk.platform.clock, is_merged, bool, timeout_s=60, goal="the owner's merge")
    return first.status_code


def test_the_requester_cannot_and_finance_can(desk: Desk) -> None:
    entry = desk.order().entry
    pull = desk.proposal(entry)
    desk.approve(pull, desk.eve)  # Gitea lets her: the platform's account opened it
    waiting = settle(desk.platform, entry)
    desk.approve(pull, desk.frank)
    settled = settle(desk.platform, entry)  # unless the service was faster

    assert waiting is not None
    assert waiting.state == "waiting"
    assert f"{desk.eve.login} is behind it and does not count" in waiting.missing
    assert settled is None or settled.state == "delivered", settled.missing
    report = until(
        desk.platform.clock,
        lambda: status(desk.platform, entry.order),
        lambda report: report.state.ready,
        timeout_s=READY_S,
        goal="Ready",
    )
    assert report.state.phase == "Ready"


def test_the_platforms_account_proves_nobody(desk: Desk) -> None:
    entry = desk.order().entry

    with pytest.raises(RefusedError, match="proves nobody"):
        approve_on_forge(desk.platform, entry.order)


def test_whoever_creates_what_a_rule_names_does_not_agree(desk: Desk) -> None:
    """Registering a login and creating an organisation are anybody's on a real forge."""
    entry, platform, mark = desk.order().entry, desk.platform, str(desk.team)[-6:]
    asked = [f"group:default/treasury-{mark}", f"user:default/cfo-{mark}"]

    with published_approval(platform, [{**RULES[0], "by": asked}]):
        stranger, cfo = new_user(desk.admin), named_user(desk.admin, f"cfo-{mark}")
        stranger.api("POST", "/orgs", {"username": f"treasury-{mark}"})
        pull = desk.proposal(entry)
        for user in (stranger, cfo):
            desk.approve(pull, user)
            with pytest.raises(RefusedError, match="is not an approver"):
                approve(platform, entry.order, person(user))
        waiting = settle(platform, entry)

        assert waiting is not None
        assert waiting.missing.startswith(f"group treasury-{mark} or cfo-{mark}")


def test_what_an_owner_merges_is_taken_back(desk: Desk) -> None:
    entry = desk.order().entry
    pull = desk.proposal(entry)

    refused = merge_as_owner(desk, desk.platform.ledger, pull.number, pull.head_commit)
    assert "automated" not in desk.in_ledger(entry)
    with suppress(OrderkitError):  # the service does the same at the same time
        settle(desk.platform, entry)

    assert refused == 405
    until(
        desk.platform.clock,
        lambda: desk.in_ledger(entry),
        lambda text: not text,
        timeout_s=READY_S,
        goal="taken back",
    )
    assert desk.phase(entry) == "Waiting"
    assert approve(desk.platform, entry.order, person(desk.frank)).state == "delivered"


def test_a_change_that_an_owner_merges_is_not_delivered(desk: Desk) -> None:
    desk.order(stage="stage1")
    bay = Bay(desk.platform, desk.team, desk.team)
    entry = OrderEntry(desk.team, bay.order)
    before = pinned_commit(desk.platform, entry)
    groups = frozenset({f"group:default/{desk.team}"})
    eve = Requester(f"user:default/{desk.eve.login}", "a token", groups)
    pull = ask(bay, set_("stage", "stage3"), requester=eve).pull
    assert pull is not None

    refused = merge_as_owner(desk, bay.repo, pull.number, pull.head_commit)

    assert refused == 405
    with pytest.raises(RefusedError, match="is merged and not delivered: it needs approval by"):
        merge_reviewed(desk.platform, bay.order, pull.number, requester="user:default/boss")
    assert pinned_commit(desk.platform, entry) == before
