"""What the client does where GitLab differs: speed, deletion, approvals, its window in writing."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import Any

import pytest
import requests
from tests.component.gitlab.conftest import ADMIN_TOKEN, GROUP, ORG, A, GitLab, Served, op

from ground.errors import (
    AccessError,
    IncompleteError,
    MovedError,
    RefusedError,
    TooFastError,
)
from ground.names import BlobSha, RepoId, blob_sha
from orderkit.adapters.forges.answers import ForgeResponse
from orderkit.adapters.forges.pacing import Clock
from orderkit.adapters.gitlab import GitLabForge
from orderkit.adapters.gitlab.transport import GitLabPacer
from orderkit.ports.forge import CommitStatus, FileChange, MergeStyle, TeamRight, Webhook
from orderkit_standins.forge.gitlab.face import FaceSettings

SEEN = blob_sha(b"a\n")


def test_who_is_too_fast_waits_as_long_as_it_is_told(served: Served) -> None:
    waits: list[float] = []
    with served(FaceSettings(GROUP, requests_a_minute=2)) as gitlab:
        # Our clock moves when we wait; GitLab's does not, so it refuses again.
        clock = Clock(now=lambda: time.monotonic() + sum(waits), sleep=waits.append)
        with GitLabForge(
            gitlab.url, token=ADMIN_TOKEN, group=GROUP, pacer=GitLabPacer(clock=clock)
        ) as forge:
            assert forge.user() == forge.user()
            with pytest.raises(TooFastError, match="GitLab's limit for these credentials"):
                forge.ensure_org("slow")

    assert len(waits) == 3
    assert all(0 < wait <= GitLabPacer.longest_s for wait in waits)


def test_a_project_that_gitlab_keeps_is_scheduled_and_gone_for_us(served: Served) -> None:
    with served(FaceSettings(GROUP, removes_at_once=False)) as gitlab:
        repo = gitlab.repo("order")

        removal, again = gitlab.forge.delete_repo(repo), gitlab.forge.delete_repo(repo)

        assert (removal.existed, removal.scheduled_on) == (True, time.strftime("%Y-%m-%d"))
        assert (again.existed, again.scheduled_on) == (False, removal.scheduled_on)
        assert gitlab.forge.repo(repo) is None
        assert gitlab.forge.ensure_repo(repo, description="anew").empty


def test_a_removal_that_was_cut_off_after_the_first_step_is_finished(gitlab: GitLab) -> None:
    repo = gitlab.repo()
    url = f"{gitlab.url}/api/v4/projects/{f'{GROUP}/{repo}'.replace('/', '%2F')}"
    headers = {"PRIVATE-TOKEN": "unused", "Authorization": f"Bearer {ADMIN_TOKEN}"}
    assert requests.delete(url, headers=headers, timeout=30).status_code == 202

    removal = gitlab.forge.delete_repo(repo)

    assert (removal.existed, removal.scheduled_on) == (False, "")
    assert gitlab.forge.repo(repo) is None


def test_a_renamed_project_is_not_deleted_by_its_former_name(gitlab: GitLab) -> None:
    repo = gitlab.repo()
    gitlab.forge.rename_repo(repo, f"{repo.name}-new")

    with pytest.raises(MovedError, match="has moved"):
        gitlab.forge.delete_repo(repo)

    assert gitlab.forge.repo(RepoId(ORG, f"{repo.name}-new")) is not None


def test_an_approval_counts_for_what_was_there_before_it(gitlab: GitLab) -> None:
    repo = gitlab.repo()
    frank, fred = gitlab.person("frank"), gitlab.person("fred")
    gitlab.join("frank", "fred")
    pull = gitlab.pull(repo)
    frank.review(repo, pull.number, "approved", head=pull.head_commit, text="")

    gitlab.forge.write(repo, [FileChange(PurePosixPath("m"), b"2", None)], op(), branch="change")

    now = gitlab.forge.pull(repo, pull.number)
    (review,) = gitlab.forge.reviews(repo, pull.number)
    assert now is not None
    assert review.commit == pull.head_commit != now.head_commit
    assert (review.state, review.official) == ("approved", True)
    with pytest.raises(RefusedError, match="SHA does not match"):
        fred.review(repo, pull.number, "approved", head=pull.head_commit, text="")


def test_who_opened_it_approves_nothing(gitlab: GitLab) -> None:
    repo = gitlab.repo()
    gina = gitlab.person("gina")
    gitlab.join("gina")
    pull = gitlab.pull(repo, by=gina)

    with pytest.raises(RefusedError, match="we opened it ourselves"):
        gina.review(repo, pull.number, "approved", head=pull.head_commit, text="")


def test_who_may_only_read_is_told_which_role_an_approver_needs(gitlab: GitLab) -> None:
    repo = gitlab.repo()
    ida = gitlab.person("ida")
    pull = gitlab.pull(repo)

    with pytest.raises(AccessError) as refused:
        ida.review(repo, pull.number, "approved", head=pull.head_commit, text="")

    assert str(refused.value) == (
        f"ida may not approve {repo}!{pull.number}: approvers need the role Developer or a higher"
        " one"
    )
    assert "ask an owner of acme/platform/ae86 for the role Developer" in refused.value.hint
    assert not gitlab.forge.reviews(repo, pull.number)


def test_who_leaves_the_team_has_an_approval_that_is_not_official(gitlab: GitLab) -> None:
    repo = gitlab.repo()
    hans = gitlab.person("hans")
    gitlab.join("hans")
    pull = gitlab.pull(repo)
    hans.review(repo, pull.number, "approved", head=pull.head_commit, text="")

    gitlab.join()

    assert [r.official for r in gitlab.forge.reviews(repo, pull.number)] == [False]


def test_a_merge_waits_for_each_status(gitlab: GitLab) -> None:
    repo = gitlab.repo()
    gitlab.forge.protect_branch(repo, "main", checks=["orderkit/review"])
    pull = gitlab.pull(repo)
    gitlab.forge.set_status(repo, pull.head_commit, CommitStatus("orderkit/review", "success"))
    gitlab.forge.set_status(repo, pull.head_commit, CommitStatus("orderkit/plan", "failure"))

    with pytest.raises(RefusedError, match="a check did not succeed"):
        merge(gitlab, repo, pull.number)
    gitlab.forge.set_status(repo, pull.head_commit, CommitStatus("orderkit/plan", "success"))

    assert merge(gitlab, repo, pull.number) == gitlab.head(repo)


def merge(gitlab: GitLab, repo: RepoId, number: int) -> str:
    head = gitlab.head(repo, "change")
    return gitlab.forge.merge_pull(
        repo, number, head=head, style=MergeStyle.MERGE, operation=op(), deadline_s=60
    )


def test_a_status_that_stays_pending_keeps_its_text(gitlab: GitLab) -> None:
    repo = gitlab.repo()
    commit = gitlab.head(repo)

    for text in ("planning", "still planning"):
        gitlab.forge.set_status(repo, commit, CommitStatus("plan", "pending", text))

    assert gitlab.forge.statuses(repo, commit) == (CommitStatus("plan", "pending", "planning"),)


def test_what_another_writer_slips_into_the_window_is_named(gitlab: GitLab) -> None:
    """GitLab compares before it writes; here somebody writes in between."""
    repo = gitlab.repo()

    class Windowed(GitLabForge):
        def post_commit(self, repo: RepoId, body: Mapping[str, Any]) -> ForgeResponse:
            theirs = {"content": "dGhlaXJzCg==", "sha": SEEN, "message": "m", "branch": "main"}
            url = f"{gitlab.url}/api/v1/repos/{repo}/contents/{A}"
            headers = {"Authorization": f"token {ADMIN_TOKEN}"}
            assert requests.put(url, json=theirs, headers=headers, timeout=30).ok
            found = gitlab.forge.last_commit(repo, A, "main")
            assert found is not None
            (action,) = body["actions"]
            return super().post_commit(
                repo, {**body, "actions": [{**action, "last_commit_id": found[1]}]}
            )

    with (
        Windowed(gitlab.url, token=ADMIN_TOKEN, group=GROUP) as forge,
        pytest.raises(IncompleteError, match=r"replaced what another commit, .* of a\.txt"),
    ):
        forge.write(repo, [FileChange(A, b"mine\n", SEEN)], op())

    assert len(gitlab.forge.commits(repo)) == 3


def test_a_stale_file_is_a_conflict_without_a_request_to_write(gitlab: GitLab) -> None:
    repo = gitlab.repo()
    before = gitlab.head(repo)

    with pytest.raises(Exception, match="changed: expected 00000000"):
        gitlab.forge.write(repo, [FileChange(A, b"x", BlobSha("0" * 40))], op())

    assert gitlab.head(repo) == before


def test_without_premium_each_project_has_the_webhook_and_maintainers_push(
    served: Served,
) -> None:
    with served(FaceSettings(GROUP, premium=False)) as gitlab:
        one, two = gitlab.repo("one"), gitlab.repo("two")
        webhook = Webhook("http://127.0.0.1:9/x", ("push", "pull_request_only"), "key")

        gitlab.forge.ensure_webhook(ORG, webhook)

        assert gitlab.forge.has_webhook(ORG, webhook)
        assert all(gitlab.forge.has_webhook(repo, webhook) for repo in (one, two))
        gitlab.repo("three")
        assert not gitlab.forge.has_webhook(ORG, webhook)
        assert gitlab.forge.protect_branch(one, "main", checks=["c"])
        assert gitlab.forge.is_protected(one, "main", checks=["c"])


def test_a_wider_rule_is_noticed(gitlab: GitLab) -> None:
    repo = gitlab.repo()
    gitlab.forge.protect_branch(repo, "main", checks=["c"])
    path = f"/projects/{f'{GROUP}/{repo}'.replace('/', '%2F')}/protected_branches"
    wide = {"name": "m*", "push_access_level": 30, "merge_access_level": 30}
    assert gitlab.forge._http.send("POST", path, body=wide).ok  # noqa: SLF001  past the port

    assert not gitlab.forge.is_protected(repo, "main", checks=["c"])
    with pytest.raises(RefusedError, match=r"the rule 'm\*' counts first"):
        gitlab.forge.protect_branch(repo, "main", checks=["c"])


def test_a_token_that_only_reads_says_which_scope_it_lacks(gitlab: GitLab) -> None:
    repo = gitlab.repo()
    gitlab.embedded.ensure_token("warden", "reads", "b" * 40, ["read:repository", "read:user"])

    with GitLabForge(gitlab.url, token="b" * 40, group=GROUP) as reader:
        assert reader.missing_rights(repo) == ("scope api (for order, change)",)
        with pytest.raises(AccessError, match="missing scope") as refused:
            reader.write(repo, [FileChange(PurePosixPath("x"), b"1", None)], op())

    assert refused.value.hint == "make a token with scope api"


def test_a_role_that_is_too_low_is_named_with_what_needs_it(served: Served) -> None:
    with served(FaceSettings(GROUP)) as gitlab, gitlab.person("ann") as ann:
        repo = gitlab.repo()
        gitlab.join("ann")

        assert ann.missing_rights(repo) == (
            f"role Maintainer of {repo} (for bootstrap, platform webhook)",
        )


def test_an_organisation_lies_in_the_group_and_nowhere_else(gitlab: GitLab) -> None:
    gitlab.forge.ensure_org(ORG)

    with GitLabForge(gitlab.url, token=ADMIN_TOKEN, group="acme") as above:
        assert above.has_org("platform")
        assert not above.has_org(ORG)
        with pytest.raises(AccessError):
            above.ensure_org("elsewhere")


def test_a_reader_that_is_made_again_ends_the_one_before(gitlab: GitLab) -> None:
    gitlab.repo()
    first, second = (gitlab.forge.add_reader(ORG) for _ in range(2))

    assert first.name != second.name
    assert gitlab.forge.members(ORG, "devs") == ()  # a token is no member
    gitlab.forge.remove_reader(ORG, second.name)
    gitlab.forge.ensure_access(ORG, "devs", right=TeamRight.WRITE, members=())


def test_who_gets_some_repositories_only_is_a_guest_elsewhere(gitlab: GitLab) -> None:
    gitlab.forge.ensure_org("finance")
    one, two = RepoId("finance", "one"), RepoId("finance", "two")
    for repo in (one, two):
        gitlab.forge.ensure_repo(repo, description="", private=True)
    gitlab.person("ivy")

    def give(*names: str) -> list[str]:
        read = TeamRight.READ
        gitlab.forge.ensure_access(
            "finance", "approvers", right=read, members=["ivy"], repositories=names
        )
        found = (gitlab.forge.user_with_right(repo, "ivy") for repo in (one, two))
        return [each[1] for each in found if each]

    assert (give("one"), give("two"), give()) == (["read", "none"], ["none", "read"], ["none"] * 2)
    assert [user.login for user in gitlab.forge.members("finance", "approvers")] == ["ivy"]


def test_who_a_project_alone_let_in_is_no_member_of_the_team(gitlab: GitLab) -> None:
    """A Maintainer of a project can add members to it; whom the platform asks, its group says."""
    repo = gitlab.repo()
    gitlab.join()
    gitlab.person("jack")
    url = f"{gitlab.url}/api/v1/repos/{repo}/collaborators/jack"
    headers = {"Authorization": f"token {ADMIN_TOKEN}"}
    added = requests.put(url, json={"permission": "admin"}, headers=headers, timeout=30)

    assert added.status_code == 204
    assert gitlab.forge.members(ORG, "devs") == ()
    assert [(g.holder, g.right) for g in gitlab.forge.foreign_access(repo)] == [("jack", "admin")]


def test_of_a_large_project_only_changed_folders_are_read_again(
    gitlab: GitLab, monkeypatch: pytest.MonkeyPatch
) -> None:
    """GitLab shows 100 entries at a time: a ledger of 20,000 orders has more than 200 pages."""
    repo, forge = gitlab.repo(), gitlab.forge
    paths = [PurePosixPath(f"apps/team-{n % 4}/order-{n:04d}.yaml") for n in range(1_100)]
    forge.write(repo, [FileChange(path, f"{path}\n".encode(), None) for path in paths], op())
    with GitLabForge(gitlab.url, token=ADMIN_TOKEN, group=GROUP) as reader:
        assert {*paths, A} == {*reader.tree(repo, gitlab.head(repo))}
        new = PurePosixPath("apps/team-1/new.yaml")
        forge.write(repo, [FileChange(new, b"new\n", None)], op())
        asked: list[str] = []
        get = reader._http.get  # noqa: SLF001

        def counting(*arguments: Any, **named: Any) -> ForgeResponse:
            asked.append(str(arguments[0]))
            return get(*arguments, **named)

        monkeypatch.setattr(reader._http, "get", counting)  # noqa: SLF001
        assert {*paths, A, new} == {*reader.tree(repo, gitlab.head(repo))}
        assert reader.special_files(repo, gitlab.head(repo)) == {}
    assert len(asked) == 5, "the root, apps, and the three pages of one team"
