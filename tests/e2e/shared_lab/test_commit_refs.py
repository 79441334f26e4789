"""
What may be called ``main`` in a repository of a real Gitea, and what a real Argo CD makes of it.

Argo CD takes any ref whose short name is the Application's revision, in random order. A member may
push dozens, so that the branch is hardly ever taken. The tests build on each other.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

import pytest
import roguery
from commands import as_process
from forgeusers import ForgeUser, new_user
from labplatform import ServedLab
from pusher import Pusher

from ground.names import CommitSha
from ground.objects.kube_objects import Manifest, dig
from orderkit.core.order import ledger
from orderkit.core.order.change import FieldEdit
from orderkit.core.order.ledger import OrderEntry
from orderkit.flows.argocd.commit_pinning import pinned_commit
from orderkit.flows.argocd.refreshing import application_key
from orderkit.flows.change import ChangeRequest, change
from orderkit.flows.change.reviewing import merge_reviewed
from orderkit.flows.end.destroying import destroy
from orderkit.flows.end.end_request import EndRequest
from orderkit.flows.order import placing
from orderkit.flows.order.awaiting import await_commit
from orderkit.flows.order.order_report import status
from orderkit.flows.repeating import until
from orderkit.flows.team.teams import add_team
from orderkit.ports.clock import SystemClock
from orderkit.ports.requesters import Requester

TEAM = "ae86"
BOSS = "user:default/boss"
SPACE = "\N{NO-BREAK SPACE}"
NAMES = {
    "refs/tags/main": "a tag",
    "refs/remotes/main": "a ref outside heads and tags, for which Gitea has no rules",
    f"refs/heads/main{SPACE}x": "a branch: go-git reads a short name up to the first space",
}
WHOLE_NAMES = {
    "refs/refs/heads/main": "Argo CD's other name for it, were it asked for refs/heads/main",
    "refs/heads/refs/heads/main": "the same; besides, the forge itself can write to main no more",
    "refs/tags/refs/heads/main": "the same",
}
_REFRESHES = 8


@dataclass(frozen=True)
class Site(ServedLab):
    """The lab, an order whose kit wants reviews, and a member of its team."""

    entry: OrderEntry
    admin: ForgeUser
    member: ForgeUser
    clone: Pusher

    def application(self) -> Manifest:
        return self.lab.cluster.get(application_key(self.entry.order)) or {}

    def refreshed(self) -> str:
        """Have Argo CD read the repository anew; return the commit that it compared."""
        before = dig(self.application(), "status", "reconciledAt")
        time.sleep(1.1)  # reconciledAt has whole seconds
        patch = {"metadata": {"annotations": {"argocd.argoproj.io/refresh": "hard"}}}
        self.lab.cluster.patch(application_key(self.entry.order), patch, owner="test")
        live: Manifest = until(
            SystemClock(),
            self.application,
            lambda live: dig(live, "status", "reconciledAt") != before,
            timeout_s=120,
            goal="a refresh",
            why_not=str,
        )
        return str(dig(live, "status", "sync", "revision"))

    def stage(self) -> str:
        report = status(self.platform, self.entry.order)
        assert report.xr is not None
        return str(dig(self.lab.cluster.get(report.xr), "spec", "stage"))


@pytest.fixture(scope="module")
def site(served_lab: ServedLab, tmp_path_factory: pytest.TempPathFactory) -> Site:
    lab, platform = served_lab.lab, served_lab.platform
    add_team(platform, TEAM, requester=BOSS)
    wanted = {"team_name": TEAM, "stage": "stage1"}
    asked = placing.TaskRequest("garage", wanted, Requester(BOSS))
    done = placing.order(platform, asked, wait_s=240.0)
    admin = ForgeUser(lab.gitea.url, lab.gitea.user, lab.gitea.password)
    member = new_user(admin, "mallory")
    join(admin, member, done.repository)
    url = f"{lab.gitea.url}/{done.repository}.git"
    clone = Pusher.cloned(tmp_path_factory.mktemp("refs"), url, member.login, member.password)
    entry = OrderEntry(done.team, done.order)
    return Site(lab, platform, served_lab.file, entry, admin, member, clone)


def join(admin: ForgeUser, member: ForgeUser, repository: object) -> None:
    path = f"/repos/{repository}/collaborators/{member.login}"
    admin.api("PUT", path, {"permission": "write"})


def test_a_new_order_delivers_a_commit(site: Site) -> None:
    head = site.platform.forge.head(site.entry.repository)

    assert pinned_commit(site.platform, site.entry) == head
    assert dig(site.application(), "status", "sync", "revision") == head
    assert site.stage() == "stage1"


@pytest.mark.parametrize("ref", [*NAMES, *WHOLE_NAMES])
def test_a_member_may_push_it(site: Site, ref: str) -> None:
    """Gitea protects branches and tags by patterns, but no other ref: a name proves nothing."""
    files = {"name": ref}
    if ref == next(iter(NAMES)):
        files |= site.clone.replace("manifests/xgarage.yaml", "stage1", "stage3")
    evil = site.clone.commit(ref, files)

    site.clone.push(f"{evil}:{ref}")

    assert evil in site.clone.git("ls-remote", "origin")
    if ref in WHOLE_NAMES:
        site.clone.git("push", "-q", "origin", "--delete", ref)


def test_main_itself_is_protected(site: Site) -> None:
    with pytest.raises(AssertionError, match="protected branch main"):
        site.clone.push("HEAD:refs/heads/main")


def test_no_such_name_is_delivered_in_place_of_the_commit(site: Site) -> None:
    for number in range(30):
        site.clone.git("push", "-q", "origin", f"HEAD:refs/heads/main{SPACE}{number}")
    head = site.platform.forge.head(site.entry.repository)

    revisions = {site.refreshed() for _ in range(_REFRESHES)}

    assert revisions == {head}
    assert site.stage() == "stage1"


def test_a_reviewed_change_is_delivered_all_the_same(site: Site) -> None:
    carol = new_user(site.admin, "carol")
    eve = new_user(site.admin, "eve")
    for person in (carol, eve):
        join(site.admin, person, site.entry.repository)
    edit = FieldEdit("stage", "set", "stage2")
    asked = ChangeRequest(
        order=site.entry.order, edits=(edit,), requester=Requester(f"user:default/{eve.login}")
    )
    pull = change(site.platform, asked).pull
    assert pull is not None
    path = f"/repos/{site.entry.repository}/pulls/{pull.number}/reviews"
    body = {"event": "APPROVED", "commit_id": pull.head_commit, "body": ""}
    carol.api("POST", path, body)

    merged = merge_reviewed(site.platform, site.entry.order, pull.number, requester=BOSS)
    await_commit(site.platform, site.entry.order, merged.commit, timeout_s=240.0)

    assert pinned_commit(site.platform, site.entry) == merged.commit
    assert site.stage() == "stage2"


def test_what_an_earlier_release_wrote_delivers_them_until_bootstrap_mends_it(site: Site) -> None:
    """The control: these refs do reach the cluster where the Application follows a name."""
    roguery.follow_main(site.platform, site.entry)
    head = site.platform.forge.head(site.entry.repository)
    revisions = {site.refreshed() for _ in range(_REFRESHES)}
    until(
        SystemClock(), lambda: (site.refreshed(), site.stage()), lambda seen: seen[1] == "stage3",
        timeout_s=240, goal="stage3", why_not=str,
    )  # fmt: skip
    told = as_process(site.file)("doctor", "--json").json["findings"]

    add_team(site.platform, TEAM, requester=BOSS)
    until(
        SystemClock(), site.application,
        lambda live: ledger.delivered_commit(live) == head, timeout_s=120, goal="pinned",
        why_not=str,
    )  # fmt: skip
    await_commit(site.platform, site.entry.order, CommitSha(str(head)), timeout_s=240.0)

    assert revisions - {head}
    (finding,) = [finding for finding in told if finding["what"] == "protection"]
    assert finding["verdict"] == "fail"
    assert "a tag called main is delivered now and then" in finding["detail"]
    assert site.stage() == "stage2"


def test_an_order_ends_with_them_in_place(site: Site) -> None:
    request = EndRequest(site.entry.order, BOSS, repository="delete", timeout_s=240.0)

    destroy(site.platform, request, on_step=lambda *_: None)

    assert not site.application()
