"""The port's methods about who has access, reviews and protected branches, through the client."""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any

import pytest

from ground.errors import AccessError, NotFoundError, RefusedError
from ground.names import RepoId
from orderkit.flows.repeating import until
from orderkit.ports.clock import SystemClock
from orderkit.ports.forge import CommitStatus, ForgeUser, MergeStyle, PullDraft, PullRequest

if TYPE_CHECKING:
    from tests.conformance.forge.conftest import Workshop
    from tests.conformance.forge.faces import Client

CHECK = "orderkit/review"


def opened(shop: Workshop, repo: RepoId) -> PullRequest:
    """Open a pull request with one commit, of the suite's own user."""
    head = shop.forge.head(repo)
    assert head is not None
    shop.forge.ensure_branch(repo, "change", head)
    shop.forge.write(repo, [shop.new("n", "1\n")], shop.op(), branch="change")
    return shop.forge.open_pull(repo, PullDraft("Change", "", "change"), shop.op())


def collaborate(shop: Workshop, repo: RepoId, permission: str) -> None:
    path = f"/repos/{repo}/collaborators/{shop.outsider[0]}"
    assert shop.api("PUT", path, {"permission": permission}).status_code == 204


def merge(forge: Client, shop: Workshop, repo: RepoId, pull: PullRequest) -> None:
    head, style = pull.head_commit, MergeStyle.MERGE
    forge.merge_pull(
        repo, pull.number, head=head, style=style, operation=shop.op(), deadline_s=90.0
    )


def review(shop: Workshop, repo: RepoId, pull: PullRequest, **body: Any) -> Any:
    path = f"/repos/{repo}/pulls/{pull.number}/reviews"
    answer = shop.api("POST", path, {"event": "APPROVED", **body}, auth=shop.outsider)
    assert answer.status_code == 200, answer.text
    return answer.json()


def test_f201_an_organisation_of_ours_has_no_other_owner(shop: Workshop) -> None:
    org = shop.org()

    assert shop.forge.foreign_access(org) == ()
    assert shop.forge.foreign_access("no-such-team") == ()


@pytest.mark.parametrize(("permission", "right"), [("admin", "admin"), ("write", "write")])
def test_f202_members_of_teams_that_write_have_access(
    shop: Workshop, permission: str, right: str
) -> None:
    org, guest = shop.org(), shop.outsider[0]
    units = {"repo.code": permission} if permission != "admin" else {}
    body = {"name": "helpers", "permission": permission, "units_map": units}
    team = shop.api("POST", f"/orgs/{org}/teams", body).json()["id"]
    assert shop.api("PUT", f"/teams/{team}/members/{guest}").status_code == 204

    assert [(g.holder, g.right) for g in shop.forge.foreign_access(org)] == [(guest, right)]


def test_f203_members_of_teams_that_only_read_have_none(shop: Workshop) -> None:
    org, guest = shop.org(), shop.outsider[0]
    units = {"repo.code": "read"}
    body = {"name": "readers", "permission": "read", "units_map": units}
    team = shop.api("POST", f"/orgs/{org}/teams", body).json()["id"]
    shop.api("PUT", f"/teams/{team}/members/{guest}")

    assert shop.forge.foreign_access(org) == ()


def test_f204_collaborators_who_write_and_webhooks_have_access(shop: Workshop) -> None:
    repo, guest = shop.seeded_repo(), shop.outsider[0]
    collaborate(shop, repo, "read")
    assert shop.forge.foreign_access(repo) == ()
    collaborate(shop, repo, "write")
    config = {"url": "http://127.0.0.1:9/x", "content_type": "json"}
    hook = {"type": "gitea", "config": config, "events": ["push"], "active": True}
    assert shop.api("POST", f"/repos/{repo}/hooks", hook).status_code == 201

    assert [(g.holder, g.right) for g in shop.forge.foreign_access(repo)] == [
        (guest, "write"), ("webhook:http://127.0.0.1:9/x", "listen"),
    ]  # fmt: skip


def test_f205_strangers_see_that_an_organisation_is_not_theirs(shop: Workshop) -> None:
    org, (user, password) = shop.org(), shop.outsider
    with (
        shop.client((user, password)) as guest,
        pytest.raises(RefusedError, match=f"organisation {org} belongs to somebody else"),
    ):
        guest.foreign_access(org)


def test_f206_reviews_are_official_only_of_those_who_write(shop: Workshop) -> None:
    repo = shop.seeded_repo()
    pull = opened(shop, repo)
    review(shop, repo, pull)
    assert [r.official for r in shop.forge.reviews(repo, pull.number)] == [False]
    collaborate(shop, repo, "write")
    review(shop, repo, pull)
    approval = shop.forge.reviews(repo, pull.number)[-1]
    review(shop, repo, pull, event="REQUEST_CHANGES", body="no")

    reviews = shop.forge.reviews(repo, pull.number)

    assert (approval.state, approval.official) == ("approved", True)
    assert [(r.state, r.official) for r in reviews if r.official] == [("rejected", True)]
    assert reviews[-1].official
    assert {r.commit for r in reviews} == {pull.head_commit}
    assert {r.reviewer.login for r in reviews} == {shop.outsider[0]}


def test_f207_the_author_approves_nothing(shop: Workshop) -> None:
    repo = shop.seeded_repo()
    pull = opened(shop, repo)

    path = f"/repos/{repo}/pulls/{pull.number}/reviews"
    answer = shop.api("POST", path, {"event": "APPROVED"})

    assert (answer.status_code, shop.forge.reviews(repo, pull.number)) == (422, ())


def test_f208_a_dismissed_review_is_not_official(shop: Workshop) -> None:
    repo = shop.seeded_repo()
    pull = opened(shop, repo)
    collaborate(shop, repo, "write")
    number = review(shop, repo, pull)["id"]
    path = f"/repos/{repo}/pulls/{pull.number}/reviews/{number}/dismissals"

    assert shop.api("POST", path, {"message": "x"}, auth=shop.outsider).status_code == 403
    assert shop.api("POST", path, {"message": "x"}).status_code == 200
    assert not any(r.official for r in shop.forge.reviews(repo, pull.number))


def test_f209_who_pushed_and_who_changed_the_base_is_noted(shop: Workshop) -> None:
    repo = shop.seeded_repo()
    pull = opened(shop, repo)
    collaborate(shop, repo, "write")
    body = {"content": "eA==", "message": "m", "branch": "change"}
    path = f"/repos/{repo}/contents/pushed"
    pushed = shop.api("POST", path, body, auth=shop.outsider).json()["commit"]["sha"]

    def pushes() -> set[tuple[str, str]]:
        """Return who pushed what; a busy Gitea may note the first push twice."""
        events = shop.forge.pull_events(repo, pull.number)
        return {(e.by.login, commit) for e in events if e.kind == "push" for commit in e.commits}

    expected = {(shop.forge.user(), pull.head_commit), (shop.outsider[0], pushed)}
    shop.eventually(lambda: pushes() == expected)
    path = f"/repos/{repo}/pulls/{pull.number}"
    assert shop.api("PATCH", path, {"base": "other"}, auth=shop.outsider).status_code == 201

    kinds = {(e.kind, e.by.login) for e in shop.forge.pull_events(repo, pull.number)}
    assert ("retarget", shop.outsider[0]) in kinds


def test_f216_the_open_pull_requests_of_an_organisation_are_listed(shop: Workshop) -> None:
    repo, other = shop.seeded_repo(), shop.seeded_repo()
    pull, closed = opened(shop, repo), opened(shop, other)
    shop.forge.close_pull(other, closed.number)

    def listed(owner: str) -> list[tuple[RepoId, int]]:
        return [(ref.repo, ref.number) for ref in shop.forge.open_pulls(owner)]

    # Gitea's index of pull requests is written in the background.
    until(
        SystemClock(),
        lambda: listed(repo.owner),
        lambda refs: refs.count((repo, pull.number)) == 1 and (other, closed.number) not in refs,
        timeout_s=60,
        goal="the list",
    )
    assert all(ref.updated for ref in shop.forge.open_pulls(repo.owner))


def test_f217_somebody_rejects_once_as_themselves(shop: Workshop) -> None:
    repo = shop.seeded_repo()
    pull = opened(shop, repo)
    login, password = shop.outsider
    guest = shop.client((login, password))

    for _ in range(2):
        guest.review(repo, pull.number, "rejected", head=pull.head_commit, text="too dear")
    with pytest.raises(RefusedError):
        shop.forge.review(repo, pull.number, "approved", head=pull.head_commit, text="mine")

    (review_,) = shop.forge.reviews(repo, pull.number)
    assert (review_.reviewer.login, review_.state) == (login, "rejected")
    guest.close()


def test_f210_rights_are_told_by_login(shop: Workshop) -> None:
    repo, guest = shop.seeded_repo(private=True), shop.outsider[0]

    before = shop.forge.user_with_right(repo, guest)
    collaborate(shop, repo, "write")
    after = shop.forge.user_with_right(repo, guest)

    assert before
    assert after
    assert (before[1], after[1]) == ("none", "write")
    assert after[0] == before[0] == ForgeUser(after[0].id, guest)
    assert shop.forge.user_with_right(repo, "no-such-user") is None


def test_f211_only_owners_push_to_and_merge_into_a_protected_branch(shop: Workshop) -> None:
    repo, (user, password) = shop.seeded_repo(), shop.outsider
    collaborate(shop, repo, "admin")
    pull = opened(shop, repo)
    forge = shop.forge

    assert not forge.is_protected(repo, "main", checks=[CHECK])
    assert forge.protect_branch(repo, "main", checks=[CHECK])
    assert not forge.protect_branch(repo, "main", checks=[CHECK])
    assert forge.is_protected(repo, "main", checks=[CHECK])

    forge.write(repo, [shop.new("ours", "1")], shop.op())
    with shop.client((user, password)) as guest:
        with pytest.raises(AccessError):
            guest.write(repo, [shop.new("theirs", "1")], shop.op())
        forge.set_status(repo, pull.head_commit, CommitStatus(CHECK, "success"))
        with pytest.raises(AccessError):
            merge(guest, shop, repo, pull)
    merge(forge, shop, repo, pull)
    assert forge.read(repo, PurePosixPath("n"), "main") is not None


def test_f215_a_rule_that_keeps_us_out_is_named_also_where_a_write_fails(shop: Workshop) -> None:
    repo, (user, password) = shop.seeded_repo(), shop.outsider
    collaborate(shop, repo, "write")
    assert shop.forge.blocking_rule(repo, "main") == ""
    shop.forge.protect_branch(repo, "main", checks=[CHECK])

    assert shop.forge.blocking_rule(repo, "main") == ""
    with shop.client((user, password)) as guest:
        assert guest.blocking_rule(repo, "main") == "main"
        with pytest.raises(AccessError, match="protected on the forge by the rule 'main'"):
            guest.write(repo, [shop.new("theirs", "1")], shop.op())
    with pytest.raises(NotFoundError):
        shop.forge.blocking_rule(repo, "nowhere")


def test_f212_a_required_status_holds_the_owners_too(shop: Workshop) -> None:
    repo = shop.seeded_repo()
    pull = opened(shop, repo)
    shop.forge.protect_branch(repo, "main", checks=[CHECK])

    forced = {"Do": "merge", "force_merge": True, "head_commit_id": pull.head_commit}
    path = f"/repos/{repo}/pulls/{pull.number}/merge"

    assert shop.api("POST", path, forced).status_code == 405
