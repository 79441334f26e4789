"""Somebody tries to get an order delivered to which those who are asked did not agree."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from pathlib import PurePosixPath
from typing import Any

import pytest
from approvaldesk import RULES, Desk, approval_pack, new_desk, person, published_approval
from bays import Bay, ask, set_
from forgeusers import ForgeUser, embedded_admin, named_user, new_user

from ground.errors import ConflictError, InvalidInputError, OrderkitError, RefusedError
from ground.names import RepoId, TeamName
from ground.objects.kube_objects import Manifest
from ground.shapes import changed
from orderkit.adapters.github import GitHubForge
from orderkit.adapters.gitlab import GitLabForge
from orderkit.core.kit.kit_file import How
from orderkit.core.order import ledger, ledger_applications
from orderkit.core.order.approval import Agreement
from orderkit.core.order.ledger import OrderEntry
from orderkit.flows.approval.deciding import approve
from orderkit.flows.approval.settling import settle
from orderkit.flows.install.doctor_access_checks import approvers
from orderkit.flows.order.agreements import approver_problems
from orderkit.flows.order.ledger_records import record_agreement, waiting_order
from orderkit.flows.order.order_proposals import open_proposal
from orderkit.flows.platform import ledger_snapshot, published_pack
from orderkit.flows.team.teams import TeamChange, add_team
from orderkit.ports.clock import Clock
from orderkit.ports.forge import FileChange, Operation, PullRequest
from orderkit.ports.requesters import Requester
from orderkit_standins.platform import Ports
from orderkit_standins.serve_platform import EmbeddedRunRequest, Running, running
from yamlfiles import yaml11


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    folder = tmp_path_factory.mktemp("approval-attacks")
    request = EmbeddedRunRequest(
        folder / "state", approval_pack(folder / "pack"), Ports(0, 0, 0, 0), ()
    )
    with running(request, on_step=lambda *_: None) as started:
        yield started


@pytest.fixture(scope="module")
def admin(site: Running) -> ForgeUser:
    return embedded_admin(site.settings.forge.url, site.embedded.state.folder)


@pytest.fixture
def desk(site: Running, admin: ForgeUser) -> Desk:
    """People, of whom eve orders; nobody but the test settles anything."""
    platform = replace(site.platform, webhook=None)
    return new_desk(platform, admin)


def proposal_of(desk: Desk, entry: OrderEntry) -> PullRequest:
    waiting = waiting_order(desk.platform, entry)
    pull = open_proposal(desk.platform, waiting) if waiting else None
    assert pull is not None
    return pull


def missing(desk: Desk, entry: OrderEntry) -> str:
    """Settle the order, which has to wait; return what for."""
    settled = settle(desk.platform, entry)
    assert settled is not None
    assert settled.state == "waiting"
    assert "automated" not in desk.in_ledger(entry)
    return settled.missing


def push(desk: Desk, pull: PullRequest, entry: OrderEntry, old: str, new: str) -> None:
    """Change what is proposed, as somebody who may write to the ledger."""
    ledger_repo = desk.platform.ledger
    path = f"/repos/{ledger_repo}/collaborators/{desk.eve.login}"
    desk.admin.api("PUT", path, {"permission": "write"})
    path = f"/repos/{ledger_repo}/contents/{entry.application_path}"
    file = desk.eve.api("GET", f"{path}?ref={pull.head}")
    text = base64.b64decode(file["content"]).decode()
    assert old in text
    body = {
        "sha": file["sha"],
        "branch": pull.head,
        "message": "x",
        "content": base64.b64encode(text.replace(old, new).encode()).decode(),
    }
    desk.eve.api("PUT", path, body)


def test_nobody_agrees_to_an_order_of_their_own(desk: Desk) -> None:
    entry = desk.order(by=desk.frank).entry
    desk.approve(desk.proposal(entry), desk.frank)

    with pytest.raises(RefusedError, match=f"{desk.frank.login} is behind"):
        approve(desk.platform, entry.order, person(desk.frank))

    assert f"{desk.frank.login} is behind it and does not count" in missing(desk, entry)


def test_a_claim_is_not_an_agreement(desk: Desk) -> None:
    entry = desk.order().entry

    with pytest.raises(RefusedError, match="nothing proves that this is"):
        approve(desk.platform, entry.order, replace(person(desk.frank), proof=""))
    claimed = replace(person(desk.carol), groups=frozenset({"group:default/finance"}))
    with pytest.raises(RefusedError, match="is not an approver"):
        approve(desk.platform, entry.order, claimed)

    assert missing(desk, entry).startswith("group finance")


def test_an_agreement_does_not_cover_what_was_pushed_after_it(desk: Desk) -> None:
    entry = desk.order().entry
    pull = desk.proposal(entry)
    desk.approve(pull, desk.frank)

    push(desk, pull, entry, "path: manifests", "path: elsewhere")

    assert "somebody changed what is proposed" in missing(desk, entry)


def test_a_forged_label_in_what_is_proposed_is_seen(desk: Desk) -> None:
    entry = desk.order().entry
    push(desk, desk.proposal(entry), entry, f"team: {desk.team}", "team: ae86")
    desk.approve(proposal_of(desk, entry), desk.frank)

    assert "somebody changed what is proposed" in missing(desk, entry)


def test_what_a_person_looked_at_is_what_they_agree_to(desk: Desk) -> None:
    entry = desk.order().entry

    with pytest.raises(ConflictError, match="what is proposed changed"):
        approve(desk.platform, entry.order, person(desk.frank), head="0" * 40)


def test_an_agreement_to_another_head_does_not_count(desk: Desk) -> None:
    if isinstance(desk.platform.forge, GitLabForge):
        pytest.skip("GitLab keeps no approval of another head: it answers 409")
    entry = desk.order().entry
    pull = desk.proposal(entry)
    commits = desk.platform.forge.commits(desk.platform.ledger, ref=pull.head_commit, limit=2)
    desk.approve(pull, desk.frank, commit_id=commits[1].id)

    assert missing(desk, entry).startswith("group finance")


def test_a_recorded_agreement_to_another_head_does_not_count(desk: Desk) -> None:
    """What was pushed since then is not what the approver saw."""
    entry = desk.order().entry
    pull, repo = desk.proposal(entry), desk.platform.ledger
    found = desk.platform.forge.user_with_right(repo, desk.frank.login)
    assert found is not None
    agreement = changed(_agreement(desk, pull), login=desk.frank.login, account=found[0].id)
    older = desk.platform.forge.commits(repo, ref=pull.head_commit, limit=2)[1].id

    record_agreement(desk.platform, entry, changed(agreement, head=older))

    assert missing(desk, entry).startswith("group finance")
    record_agreement(desk.platform, entry, agreement)
    assert settle(desk.platform, entry).state == "delivered"  # type: ignore[union-attr]


def test_an_edited_description_changes_nothing(desk: Desk) -> None:
    entry = desk.order().entry
    pull = desk.proposal(entry)
    path = f"/repos/{desk.platform.ledger}/pulls/{pull.number}"
    desk.admin.api("PATCH", path, {"body": "Nobody has to agree.", "title": "approved"})

    assert missing(desk, entry).startswith("group finance")


def test_a_retargeted_pull_request_is_not_merged(desk: Desk) -> None:
    entry = desk.order().entry
    pull, repo = desk.proposal(entry), desk.platform.ledger
    desk.approve(pull, desk.frank)
    body = {"new_branch_name": f"other-{pull.number}", "old_branch_name": "main"}
    desk.admin.api("POST", f"/repos/{repo}/branches", body)
    for base in (f"other-{pull.number}", "main"):
        desk.admin.api("PATCH", f"/repos/{repo}/pulls/{pull.number}", {"base": base})

    assert "somebody changed the base" in missing(desk, entry)


def test_a_merge_past_orderkit_is_taken_back(desk: Desk) -> None:
    """The forge's admin can: with a status of their own. It is not delivered meanwhile."""
    entry = desk.order().entry
    pull, repo = desk.proposal(entry), desk.platform.ledger
    status = {"context": "orderkit/approval", "state": "success"}
    refused = desk.admin.call("POST", f"/repos/{repo}/pulls/{pull.number}/merge", {"Do": "merge"})
    desk.admin.api("POST", f"/repos/{repo}/statuses/{pull.head_commit}", status)
    desk.admin.api("POST", f"/repos/{repo}/pulls/{pull.number}/merge", {"Do": "merge"})
    assert "automated" not in desk.in_ledger(entry)

    text = missing(desk, entry)

    assert refused.status_code == 405
    assert text.startswith("group finance")
    assert desk.in_ledger(entry) == ""
    again = proposal_of(desk, entry)
    assert (again.state, again.number > pull.number) == ("open", True)
    assert approve(desk.platform, entry.order, person(desk.frank)).state == "delivered"


def test_what_somebody_wrote_into_the_ledger_is_taken_back(desk: Desk) -> None:
    entry = desk.order().entry
    waiting = waiting_order(desk.platform, entry)
    assert waiting is not None
    application = ledger_applications.order_application(
        entry, kit="garage", forge_url=desk.platform.forge.base_url, commit=waiting.commit
    )
    change = FileChange(entry.application_path, yaml11.dump(application).encode(), None)
    by_hand = Operation(f"hand-{entry.order}", "user:default/hand", "by hand")
    desk.platform.forge.write(desk.platform.ledger, [change], by_hand)

    assert missing(desk, entry).startswith("group finance")
    assert desk.in_ledger(entry) == ""


def test_the_rules_of_today_count(desk: Desk) -> None:
    """The kit asks for more when frank agreed already: somebody else has to agree, too."""
    entry = desk.order().entry
    pull = desk.proposal(entry)
    rule = {"when": "new.stage == 'stage3'", "by": ["team"], "because": "the team shares it"}

    with published_approval(desk.platform, [*RULES, rule]):
        desk.approve(pull, desk.frank)
        assert missing(desk, entry) == "the team, because the team shares it"


def test_a_login_that_passed_to_somebody_else_does_not_count(desk: Desk) -> None:
    entry = desk.order().entry
    pull = desk.proposal(entry)
    agreement = changed(
        _agreement(desk, pull), login=desk.frank.login, account=10_000
    )  # frank's login was somebody else's then
    record_agreement(desk.platform, entry, agreement)

    assert missing(desk, entry).startswith("group finance")


def _agreement(desk: Desk, pull: PullRequest) -> Agreement:
    repo = str(desk.platform.ledger)
    return Agreement(repo, pull.number, pull.head_commit, "user:default/x", "x", 1, "a", "now")


def test_what_was_pushed_by_hand_cannot_be_proposed(desk: Desk) -> None:
    """Nobody could tell whose agreement counts: the forge does not say who pushed to main."""
    entry = desk.order().entry
    file = f"/repos/{entry.repository}/contents/notes.txt"
    content = base64.b64encode(b"by hand").decode()
    desk.admin.api("POST", file, {"content": content, "message": "by hand"})

    with pytest.raises(OrderkitError, match="nothing proves who wrote"):
        desk.order()
    assert entry in ledger.waiting_orders(ledger_snapshot(desk.platform).blobs)


USER = """\
apiVersion: backstage.io/v1alpha1
kind: User
metadata: {{name: {name}, annotations: {{orderkit.dev/forge-login: {login}}}}}
spec: {{memberOf: []}}
"""


def test_a_pushed_user_makes_nobody_an_approver(desk: Desk) -> None:
    """The file says that a name in the portal is frank's login on the forge."""
    entry, platform, repo = desk.order().entry, desk.platform, RepoId(str(desk.team), "people")
    mallory = new_user(desk.admin, "mallory")
    pushed = USER.format(name=mallory.login, login=desk.frank.login).encode()
    platform.forge.ensure_repo(repo, description="")
    change = FileChange(PurePosixPath("people.yaml"), pushed, None)
    platform.forge.write(repo, [change], Operation("people", "user:default/x", "x"))

    with pytest.raises(InvalidInputError, match="kind"):
        platform.catalog.register(f"{platform.forge.base_url}/{repo}/src/branch/main/people.yaml")

    with pytest.raises(RefusedError, match=f"{mallory.login} is not an approver"):
        approve(platform, entry.order, person(mallory))


@dataclass(frozen=True)
class LaxCatalog:
    """A portal whose rules admit a User from everywhere; the origins are as it writes them."""

    entities: dict[str, dict[str, object]]

    def entity(self, ref: str) -> dict[str, object] | None:
        return self.entities.get(ref)


OWN = "url:{forge}/platform/pack/src/branch/main/people.yaml"


def at_forge(desk: Desk, place: str) -> str:
    """Return an address as the forge in use writes it: of its pack, a team's file, or neither."""
    (people_from,) = desk.platform.people_from
    pack = people_from.removesuffix("/main/*")
    own = f"{pack}/main"
    text = place.format(forge=desk.platform.forge.base_url, team=desk.team, own=own)
    return text.replace("src/branch", pack.rpartition("/pack/")[2])


@pytest.mark.parametrize(
    ("origin", "location", "is_believed"),
    [
        pytest.param(OWN, OWN, True, id="the-pack"),
        pytest.param("url:{forge}/{team}/o/src/branch/main/c.yaml", OWN, False, id="an-order"),
        pytest.param(OWN, "url:{forge}/{team}/o/src/branch/main/c.yaml", False, id="through-it"),
        pytest.param("{own}/../../../../{team}/c.yaml", "", False, id="dots"),
        pytest.param("{own}/%2e%2e/{team}/c.yaml", "", False, id="encoded-dots"),
        pytest.param(OWN.replace("main", "mine"), "", False, id="another-branch"),
        pytest.param(OWN.replace("pack", "pack2"), "", False, id="a-similar-name"),
        pytest.param("url:https://elsewhere.example/u.yaml", "", False, id="elsewhere"),
        pytest.param("", "", False, id="nowhere"),
    ],
)
def test_a_login_is_believed_from_the_platforms_own_locations_only(
    desk: Desk, origin: str, location: str, *, is_believed: bool
) -> None:
    entry, ref = desk.order().entry, "user:default/mallory"
    annotations: Manifest = {
        "backstage.io/managed-by-origin-location": at_forge(desk, origin),
        "backstage.io/managed-by-location": at_forge(desk, location or origin),
        "orderkit.dev/forge-login": desk.frank.login,
    }
    user: Manifest = {"kind": "User", "metadata": {"name": "mallory", "annotations": annotations}}
    catalog: Any = LaxCatalog({ref: user})
    platform = replace(desk.platform, catalog=catalog)

    if is_believed:
        assert approve(platform, entry.order, Requester(ref, "a token")).state == "delivered"
        return
    with pytest.raises(RefusedError, match="is not a user of the forge"):
        approve(platform, entry.order, Requester(ref, "a token"))
    assert missing(desk, entry).startswith("group finance")


@pytest.mark.parametrize("where", ["default", "evil"])
def test_an_entity_that_somebody_pushed_makes_nobody_frank(desk: Desk, where: str) -> None:
    """They may have signed in to the portal by it: its name and namespace are the pusher's."""
    entry, ref = desk.order().entry, f"user:{where}/{desk.frank.login}"
    origin = at_forge(desk, "url:{forge}/{team}/o/src/branch/main/c.yaml")
    annotations = {"backstage.io/managed-by-origin-location": origin}
    metadata = {"name": desk.frank.login, "annotations": annotations}
    user: Manifest = {"kind": "User", "metadata": metadata}
    catalog: Any = LaxCatalog({ref: user} if where == "default" else {})

    with pytest.raises(RefusedError, match="is not a user of the forge"):
        approve(replace(desk.platform, catalog=catalog), entry.order, Requester(ref, "a token"))


def asking(approver: str) -> list[dict[str, Any]]:
    return [{"when": "new.stage == 'stage3'", "by": [approver], "because": "it is expensive"}]


@pytest.mark.parametrize("has_member", [False, True], ids=["unseen", "with-our-account-in-it"])
def test_whoever_creates_the_organisation_that_a_rule_names_does_not_agree(
    desk: Desk, *, has_member: bool
) -> None:
    entry, platform = desk.order().entry, desk.platform
    stranger, org = new_user(desk.admin), f"treasury-{str(desk.team)[-6:]}"

    with published_approval(platform, asking(f"group:default/{org}")):
        (kit,) = published_pack(platform).kits()
        assert f"the forge has no organisation {org}" in str([*approver_problems(platform, [kit])])
        stranger.api("POST", "/orgs", {"username": org})
        if has_member:
            body = {"name": "readers", "permission": "read", "units": ["repo.code"]}
            team = stranger.api("POST", f"/orgs/{org}/teams", body)
            stranger.api("PUT", f"/teams/{team['id']}/members/{desk.admin.login}")

        with pytest.raises(RefusedError, match="is not an approver"):
            approve(platform, entry.order, person(stranger))

        desk.approve(desk.proposal(entry), stranger)
        assert missing(desk, entry).startswith(f"group {org}")
        assert f"organisation {org} is not the platform's" in approvers(platform).detail
        if isinstance(platform.forge, GitHubForge) and not has_member:
            return  # who is in an organisation is not shown to others, so nobody counts
        adopting = replace(platform, adopted=frozenset({stranger.login}))
        assert approve(adopting, entry.order, person(stranger)).state == "delivered"


def test_whoever_registers_the_login_that_a_rule_names_does_not_agree(desk: Desk) -> None:
    entry, platform = desk.order().entry, desk.platform
    login = f"cfo-{str(desk.team)[-6:]}"

    with published_approval(platform, asking(f"user:default/{login}")):
        assert f"user:default/{login}: nobody on the forge is that" in approvers(platform).detail
        cfo = named_user(desk.admin, login)

        with pytest.raises(RefusedError, match="is not an approver"):
            approve(platform, entry.order, person(cfo))
        desk.approve(desk.proposal(entry), cfo)
        assert missing(desk, entry).startswith(login)
        assert f"{login} is in no organisation of the platform" in approvers(platform).detail

        others = TeamName(f"board{str(desk.team)[-6:]}")
        change = TeamChange(members=(login,))
        add_team(platform, others, requester="user:default/boss", change=change)
        assert approvers(platform).verdict == "ok"
        assert approve(platform, entry.order, person(cfo)).state == "delivered"


GROWS: dict[str, Any] = {
    "when": "!order.isNew && new.budget - (has(old.budget) ? old.budget : 0) > 100",
    "by": ["platform"],
    "because": "it grows by more than 100",
}


@dataclass(frozen=True)
class LaterClock:
    """The platform's clock, some days on."""

    clock: Clock
    days: int

    def now(self) -> datetime:
        return self.clock.now() + timedelta(days=self.days)

    def monotonic_s(self) -> float:
        return self.clock.monotonic_s()

    def sleep(self, seconds: float) -> None:
        self.clock.sleep(seconds)


def test_slices_of_a_difference_add_up_within_a_window(desk: Desk) -> None:
    """Each step is below the rule's; since when a value stood is what the ledger says."""
    report = desk.order(stage="stage1")
    bay = Bay(desk.platform, desk.team, desk.team)

    with published_approval(desk.platform, [GROWS]):
        assert ask(bay, set_("budget", 95)).state == "committed"
        assert ask(bay, set_("budget", 185)).state == "committed", "without a window"
    with published_approval(desk.platform, [{**GROWS, "within": "7d"}]):
        with pytest.raises(RefusedError, match=r"more than 100 \(counted over 7d\)"):
            ask(bay, set_("budget", 200), how=How.DIRECT)
        later = replace(desk.platform, clock=LaterClock(desk.platform.clock, 8))
        in_a_week = Bay(later, desk.team, desk.team)
        assert ask(in_a_week, set_("budget", 200)).state == "committed"
    assert report.entry.order == bay.order
