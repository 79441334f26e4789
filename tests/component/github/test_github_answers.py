"""What the GitHub client makes of answers that the embedded forge does not give."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import Any

import pytest
from answering import Reply, Script, scripted

from ground.errors import (
    AccessError,
    ConflictError,
    InProgressError,
    InvalidInputError,
    MovedError,
    NotFoundError,
    RefusedError,
    RemoteError,
)
from ground.names import CommitSha, RepoId
from ground.secrets import redact
from orderkit.adapters.forges import answers
from orderkit.adapters.forges.answers import ServerError
from orderkit.adapters.forges.pushing import StaleHeadError
from orderkit.adapters.github import GitHubForge
from orderkit.adapters.github.reading import app_secret
from orderkit.adapters.github.transport import AppTokens, Pacer
from orderkit.core.platform.settings import ForgeApp
from orderkit.ports.forge import CommitStatus, MergeStyle, Operation

TOKEN = "canary-0123456789abcdef"
REPO = RepoId("team", "order")
ORG, R = "/api/v3/orgs/team", "/api/v3/repos/team/order"
HEAD, BASE, BEFORE = CommitSha("a" * 40), CommitSha("b" * 40), CommitSha("c" * 40)
OPERATION = Operation("op", "user:default/eve", "Paint it")
ME: Reply = (200, {"id": 1, "login": "Warden"})
Replies = Mapping[str, Reply | list[Reply]]


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("PAUSE_FIRST_S", "PAUSE_MAX_S", "GET_PAUSE_S"):
        monkeypatch.setattr(answers, name, 0.001)


@contextmanager
def github(
    replies: Replies, headers: Mapping[str, Mapping[str, str]] | None = None
) -> Iterator[tuple[GitHubForge, Script]]:
    with (
        scripted({"GET /api/v3/user": ME, **replies}, headers) as script,
        GitHubForge(script.url, token=TOKEN, pacer=Pacer()) as forge,
    ):
        yield forge, script


VERSIONS = [
    ("3.16.9", "too old"),
    ("3.17.0", "supported"),
    ("3.20.1", "supported"),
    ("unclear", "supported"),
    ("3.1+orderkit", "embedded"),
]


@pytest.mark.parametrize(("version", "basis"), VERSIONS)
def test_a_server_is_judged_by_its_version(version: str, basis: str) -> None:
    with github({"GET /api/v3/meta": (200, {"installed_version": version})}) as (forge, _):
        assert forge.version() == version
        assert forge.judge_release().basis == basis


def test_where_no_github_answers_the_address_is_doubted() -> None:
    with github({}) as (forge, _), pytest.raises(NotFoundError, match="no GitHub at") as caught:
        forge.version()

    assert "/api/v3" in caught.value.hint


def test_github_com_is_not_asked_for_its_version() -> None:
    with GitHubForge("https://github.com", token=TOKEN) as forge:
        assert forge.version() == "GitHub.com"
        assert forge.judge_release().basis == "supported"
        assert not forge.capabilities.can_make_organisations
    with GitHubForge("https://ghe.example.org", token=TOKEN) as forge:
        assert forge.capabilities.can_make_organisations
        assert not forge.capabilities.makes_readers


def member(*logins: str) -> Reply:
    return 200, [{"id": number, "login": login} for number, login in enumerate(logins, 1)]


def installed(slug: str, number: int, events: list[str], **permissions: str) -> dict[str, Any]:
    named = {"app_slug": slug, "app_id": number, "id": number}
    return {**named, "events": events, "permissions": permissions}


ORGANISATION: Replies = {
    f"GET {ORG}": (200, {"default_repository_permission": "write"}),
    f"GET {ORG}/memberships/Warden": (200, {"role": "admin"}),
    f"GET {ORG}/members?role=admin": member("boss"),
    f"GET {ORG}/members": member("boss", "dev", "WARDEN"),
    f"GET {ORG}/teams": (200, [
        {"id": 1, "slug": "readers", "permission": "pull"},
        {"id": 2, "slug": "keepers", "permission": "maintain"},
        {"id": 3, "slug": "admins", "permission": "admin"},
    ]),
    f"GET {ORG}/teams/readers/members": member("reader"),
    f"GET {ORG}/teams/keepers/members": member("keeper", "boss"),
    f"GET {ORG}/teams/admins/members": member("dev"),
    f"GET {ORG}/actions/runners": (200, {"runners": [{"name": "box", "id": 3}]}),
    f"GET {ORG}/hooks": (200, [{"id": 1, "config": {"url": "http://hook"}}, {"id": 2}]),
    f"GET {ORG}/installations": (200, {"installations": [
        installed("writes", 1, [], contents="write"),
        installed("rules", 2, [], administration="write"),
        installed("flows", 3, [], workflows="write"),
        installed("hears", 4, ["push"], contents="read"),
        installed("idles", 5, ["issues"], contents="read"),
    ]}),
}  # fmt: skip


def test_every_way_into_an_organisation_is_listed_with_its_highest_right() -> None:
    with github(ORGANISATION) as (forge, _):
        found = {grant.holder: grant.right for grant in forge.foreign_access("team")}

    assert found == {
        "boss": "owner",
        "dev": "admin",
        "keeper": "write",
        "runner:box:3": "write",
        "webhook:http://hook": "listen",
        "webhook:None": "listen",
        "app:writes:1": "write",
        "app:rules:2": "write",
        "app:flows:3": "write",
        "app:hears:4": "listen",
    }


def test_who_may_only_read_is_no_way_into_an_organisation() -> None:
    reads = {**ORGANISATION, f"GET {ORG}": (200, {"default_repository_permission": "read"})}
    reads[f"GET {ORG}/teams"] = (200, [])
    with github(reads) as (forge, _):
        holders = {grant.holder for grant in forge.foreign_access("team")}

    assert "boss" in holders
    assert not holders & {"dev", "reader", "WARDEN"}


def test_lists_that_we_may_not_see_are_empty_and_a_failure_is_not() -> None:
    hidden: dict[str, Reply] = {
        f"GET {ORG}/actions/runners": (404, {}),
        f"GET {ORG}/hooks": (403, {}),
        f"GET {ORG}/installations": (403, {}),
    }
    with github({**ORGANISATION, **hidden}) as (forge, _):
        assert {g.holder for g in forge.foreign_access("team")} == {"boss", "dev", "keeper"}
    with (
        github({**ORGANISATION, f"GET {ORG}/hooks": (500, {})}) as (forge, _),
        pytest.raises(ServerError),
    ):
        forge.foreign_access("team")


def test_an_organisation_that_we_do_not_belong_to_is_somebody_elses() -> None:
    strange = {**ORGANISATION, f"GET {ORG}/memberships/Warden": (404, {})}
    with (
        github(strange) as (forge, _),
        pytest.raises(RefusedError, match="our account Warden is no member of it"),
    ):
        forge.foreign_access("team")
    with github({}) as (forge, _):
        assert forge.foreign_access("team") == ()


def may(login: str, *levels: str) -> dict[str, Any]:
    return {"id": len(login), "login": login, "permissions": dict.fromkeys(levels, True)}


def test_every_way_into_a_repository_is_listed() -> None:
    people = [
        may("adm", "admin", "push", "pull"),
        may("keep", "maintain", "push"),
        may("dev", "push", "pull"),
        may("reading", "pull"),
        may("warden", "admin"),
    ]
    replies: Replies = {
        f"GET {R}": (200, {"owner": {"type": "User", "login": "eve"}, "mirror_url": "http://m"}),
        f"GET {R}/collaborators?affiliation=direct": (200, people),
        f"GET {R}/keys": (200, [
            {"id": 5, "title": "ci", "read_only": True},
            {"id": 6, "title": "cd", "read_only": False},
        ]),
        f"GET {R}/hooks": (200, [{"id": 1, "config": {"url": "http://hook"}}]),
    }  # fmt: skip
    with github(replies) as (forge, _):
        found = {grant.holder: grant.right for grant in forge.foreign_access(REPO)}
        grants = forge.foreign_access(REPO)

    assert found == {
        "eve": "owner", "mirror:http://m": "write",
        "adm": "admin", "keep": "write", "dev": "write",
        "deploy-key:ci:5": "listen", "deploy-key:cd:6": "write", "webhook:http://hook": "listen",
    }  # fmt: skip
    assert [grant.holder for grant in grants] == sorted(found)
    assert {grant.target for grant in grants} == {"team/order"}


def test_an_organisation_and_a_repository_that_is_gone_are_no_way_in() -> None:
    owned: Reply = (200, {"owner": {"type": "Organization", "login": "team"}})
    with github({f"GET {R}": owned, f"GET {R}/collaborators": (200, [])}) as (forge, _):
        assert forge.foreign_access(REPO) == ()
    with github({}) as (forge, _):
        assert forge.foreign_access(REPO) == ()


RIGHTS: list[tuple[str, str, Replies, str | None]] = [
    ("write", "eve", {}, "write"),
    ("maintain", "eve", {}, "write"),
    ("triage", "eve", {}, "read"),
    ("admin", "eve", {f"GET {ORG}/memberships/eve": (200, {"role": "admin"})}, "owner"),
    ("admin", "eve", {f"GET {ORG}/memberships/eve": (200, {"role": "member"})}, "admin"),
    ("admin", "eve", {}, "admin"),
]


@pytest.mark.parametrize(("level", "login", "more", "right"), RIGHTS)
def test_the_right_of_a_person_is_told_in_our_words(
    level: str, login: str, more: Replies, right: str
) -> None:
    said: Reply = (200, {"permission": level, "user": {"id": 7, "login": login}})
    with github({f"GET {R}/collaborators/{login}/permission": said, **more}) as (forge, _):
        found = forge.user_with_right(REPO, login)

    assert found is not None
    assert (found[0].login, found[1]) == (login, right)


def test_an_app_is_no_collaborator_and_an_unknown_login_is_nobody() -> None:
    app: Reply = (200, {"id": 9, "login": "app[bot]", "type": "Bot"})
    with github({"GET /api/v3/users/app[bot]": app, "GET /api/v3/users/eve": app}) as (forge, _):
        found = forge.user_with_right(REPO, "app[bot]")

        assert found is not None
        assert (found[0].is_machine, found[1]) == (True, "none")
        assert forge.user_with_right(REPO, "other[bot]") is None
        assert forge.user_with_right(REPO, "eve") is None


def test_the_scopes_that_a_classic_token_lacks_are_named_with_what_needs_them() -> None:
    repo: Reply = (200, {"size": 1, "permissions": {"push": True}})
    scopes = {"GET /api/v3/user": {"X-OAuth-Scopes": "repo, admin:org"}}
    with github({f"GET {R}": repo}, scopes) as (forge, _):
        assert forge.missing_rights(REPO) == (
            "scope admin:org_hook (for platform webhook)",
            "scope delete_repo (for destroy)",
        )
    with github({f"GET {R}": (200, {"size": 1})}, scopes) as (forge, _):
        assert forge.missing_rights(REPO) == ("write access to team/order",)
    with github({}) as (forge, _), pytest.raises(NotFoundError, match="hidden from us"):
        forge.missing_rights(REPO)


class Asked:
    """What an App is answered, and what it asked."""

    def __init__(self, **replies: Any) -> None:
        self.replies, self.asked = replies, list[str]()

    def __call__(self, method: str, path: str) -> Any:
        self.asked.append(f"{method} {path}")
        return self.replies.get(path.rpartition("/")[2])


def app_tokens(installation: int | None = None) -> AppTokens:
    return AppTokens(7, Path("nowhere.pem"), installation)


def test_an_app_with_an_installation_of_its_own_asks_for_no_other() -> None:
    ask = Asked(access_tokens={"token": "t-1", "expires_at": "2099-01-01T00:00:00Z"})
    tokens = app_tokens(5)

    assert tokens.token("Team", ask) == tokens.token("team", ask) == "t-1"
    assert ask.asked == ["POST /app/installations/5/access_tokens"]
    tokens.forget()
    tokens.token("team", ask)
    assert len(ask.asked) == 2


def test_an_app_asks_for_the_installation_of_each_organisation_or_for_any() -> None:
    ask = Asked(installation={"id": 3}, installations=[{"id": 4}], access_tokens={"token": "t-1"})
    tokens = app_tokens()
    tokens.token("team", ask)
    tokens.token("", ask)

    assert ask.asked == [
        "GET /orgs/team/installation",
        "POST /app/installations/3/access_tokens",
        "GET /app/installations",
        "POST /app/installations/4/access_tokens",
    ]


@pytest.mark.parametrize(("owner", "where"), [("team", "in team"), ("", "in any organisation")])
def test_an_app_that_is_not_installed_says_where(owner: str, where: str) -> None:
    with pytest.raises(AccessError, match=f"is not installed {where}"):
        app_tokens().token(owner, Asked())


def test_an_app_without_a_token_has_no_access() -> None:
    with pytest.raises(AccessError, match="no token for 'team'"):
        app_tokens(5).token("team", Asked())


def test_a_token_that_ends_soon_is_asked_for_again() -> None:
    def ending(seconds: float) -> str:
        return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + seconds))

    for seconds, times in ((200, 2), (400, 1)):
        ask = Asked(access_tokens={"token": "t", "expires_at": ending(seconds)})
        tokens = app_tokens(5)
        tokens.token("team", ask)
        tokens.token("team", ask)
        assert len(ask.asked) == times


GRAPHQL_ERRORS = [
    ("STALE_DATA", StaleHeadError),
    ("NOT_FOUND", NotFoundError),
    ("FORBIDDEN", AccessError),
    ("INSUFFICIENT_SCOPES", AccessError),
    ("INTERNAL", RemoteError),
]


@pytest.mark.parametrize(("kind", "error"), GRAPHQL_ERRORS)
def test_an_error_of_graphql_is_told_by_its_type(kind: str, error: type[Exception]) -> None:
    said = {"errors": [{"type": kind, "message": "first"}, {"message": "second"}]}
    with (
        github({"POST /api/graphql": (200, said)}) as (forge, _),
        pytest.raises(error, match="do: first; second") as caught,
    ):
        forge.graphql("team", "query{x}", {}, "do")

    assert type(caught.value) is error


def test_of_long_errors_the_first_300_characters_are_told() -> None:
    for length, told in ((300, 300), (301, 300)):
        said = {"errors": [{"message": "x" * length}]}
        with (
            github({"POST /api/graphql": (200, said)}) as (forge, _),
            pytest.raises(RemoteError) as caught,
        ):
            forge.graphql("team", "query{x}", {}, "do")
        assert str(caught.value) == f"do: {'x' * told}"


def test_an_answer_of_graphql_without_data_is_empty() -> None:
    with github({"POST /api/graphql": (200, {"data": None})}) as (forge, _):
        assert forge.graphql("team", "query{x}", {}, "do") == {}


def test_a_repository_that_moved_is_asked_for_its_new_name() -> None:
    moved = {f"GET {R}": {"Location": "/repositories/7"}}
    named = {"data": {"repository": {"nameWithOwner": "team/garage"}}}
    with (
        github({f"GET {R}": (301, {}), "POST /api/graphql": (200, named)}, moved) as (forge, _),
        pytest.raises(MovedError) as caught,
    ):
        forge.repo(REPO)
    with (
        github({f"GET {R}": (301, {}), "POST /api/graphql": (200, {})}, moved) as (forge, _),
        pytest.raises(MovedError) as unknown,
    ):
        forge.repo(REPO)

    assert (caught.value.place, unknown.value.place) == ("team/garage", "")


def pull(**more: Any) -> dict[str, Any]:
    return {
        "number": 1, "state": "open", "head": {"ref": "change", "sha": HEAD},
        "base": {"ref": "main"}, "user": {"id": 2, "login": "eve"}, "node_id": "N", **more,
    }  # fmt: skip


def merging(said: Reply, shown: dict[str, Any], **more: Reply) -> Replies:
    named = {name.replace("_", "/"): reply for name, reply in more.items()}
    return {
        f"GET {R}": (200, {"archived": False, "private": False}),
        f"GET {R}/pulls/1": (200, shown),
        f"PUT {R}/pulls/1/merge": said,
        f"GET {R}/compare/main...{HEAD}": (200, {"commits": [{"sha": HEAD}], "total_commits": 1}),
        f"GET {R}/rules/branches/main": (200, []),
        f"GET {R}/branches/main": (200, {}),
        **{f"GET {R}/{path}": reply for path, reply in named.items()},
    }


NO: Reply = (405, {"message": "not mergeable"})
UNMERGED: list[tuple[str, Reply, dict[str, Any], type[Exception], str]] = [
    ("a failure", (502, {}), {}, ServerError, "502"),
    ("a late head", (409, {}), {}, InProgressError, "has not taken in its head yet"),
    ("no right", (403, {"message": "no"}), {}, AccessError, "no right"),
    ("nothing there", (404, {}), {}, NotFoundError, "404"),
    ("still checking", NO, {"mergeable": None}, InProgressError, "still checking"),
    ("also by 422", (422, {}), {"mergeable": None}, InProgressError, "still checking"),
    ("a conflict", NO, {"mergeable": False}, ConflictError, "refused as a conflict"),
    ("blocked", NO, {"mergeable": True, "mergeable_state": "blocked"}, RefusedError, "by merge"),
    ("behind", NO, {"mergeable": True, "mergeable_state": "behind"}, RefusedError, "by merge"),
    ("checked since", NO, {"mergeable": True}, InProgressError, "not mergeable"),
]


@pytest.mark.parametrize(
    ("said", "shown", "error", "text"), [pytest.param(*c[1:], id=c[0]) for c in UNMERGED]
)
def test_why_it_is_not_merged_is_told_by_the_pull_request(
    said: Reply, shown: dict[str, Any], error: type[Exception], text: str
) -> None:
    with (
        github(merging(said, pull(**shown))) as (forge, _),
        pytest.raises(error, match=text) as caught,
    ):
        merge(forge)

    assert type(caught.value) is error


def merge(forge: GitHubForge, deadline_s: float = 0.0) -> str:
    return forge.merge_pull(
        REPO, 1, head=HEAD, style=MergeStyle.MERGE, operation=OPERATION, deadline_s=deadline_s
    )


def test_a_merge_of_an_archived_repository_says_so() -> None:
    replies = {**merging((403, {}), pull()), f"GET {R}": (200, {"archived": True})}
    with github(replies) as (forge, _), pytest.raises(RefusedError, match="archived"):
        merge(forge)


def test_a_rule_that_keeps_us_from_merging_is_named() -> None:
    shown = pull(mergeable=True, mergeable_state="blocked")
    replies = {
        **merging(NO, shown),
        f"GET {R}/rules/branches/main": (200, [{"type": "update", "ruleset_id": 4}]),
        f"GET {R}/rulesets/4": (200, {"name": "locked", "current_user_can_bypass": "never"}),
    }
    with github(replies) as (forge, _), pytest.raises(AccessError, match="the rule 'locked'"):
        merge(forge)


def test_what_has_nothing_to_merge_is_refused_after_a_few_looks() -> None:
    replies = {
        **merging(NO, pull(mergeable=True)),
        f"GET {R}/compare/main...{HEAD}": (200, {"commits": [], "total_commits": 0}),
    }
    with github(replies) as (forge, script):
        with pytest.raises(RefusedError, match="nothing to merge"):
            merge(forge, 60)
        assert script.asked.count(f"PUT {R}/pulls/1/merge") == 5
    with github(replies) as (forge, _), pytest.raises(InProgressError, match="still checking it"):
        merge(forge)


def test_what_github_refuses_again_and_again_is_refused() -> None:
    replies = merging(NO, pull(mergeable=True, mergeable_state="clean"))
    with github(replies) as (forge, script):
        with pytest.raises(RefusedError, match="by merge: not mergeable"):
            merge(forge, 60)
        assert script.asked.count(f"PUT {R}/pulls/1/merge") == 4


MERGED = pull(state="closed", merged_at="2026-01-01", merge_commit_sha=BASE)
STATES: list[tuple[str, dict[str, Any], type[Exception], str]] = [
    ("closed", pull(state="closed"), ConflictError, "closed without a merge"),
    ("a draft", pull(draft=True), RefusedError, "it is a draft"),
    ("another head", pull(head={"ref": "change", "sha": BASE}), ConflictError, "its head is bbbb"),
    ("merged at another head", {**MERGED, "head": {"ref": "x", "sha": BEFORE}}, ConflictError,
     "its head is cccc"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("shown", "error", "text"), [pytest.param(*c[1:], id=c[0]) for c in STATES]
)
def test_what_can_never_be_merged_is_not_asked_for(
    shown: dict[str, Any], error: type[Exception], text: str
) -> None:
    with github(merging(NO, shown)) as (forge, script):
        with pytest.raises(error, match=text):
            merge(forge)
        assert not [line for line in script.asked if line.startswith("PUT")]
    with github({}) as (forge, _), pytest.raises(NotFoundError, match="no pull request 1"):
        merge(forge)


def test_a_merge_that_is_shown_counts_whatever_was_answered() -> None:
    for status in (500, 405, 200):
        shown: list[Reply] = [(200, pull()), (200, MERGED)]
        replies: Replies = {**merging((status, {}), {}), f"GET {R}/pulls/1": shown}
        with github(replies) as (forge, script):
            assert merge(forge) == BASE
            assert script.sent[f"PUT {R}/pulls/1/merge"]["sha"] == HEAD


def test_a_branch_with_a_queue_is_merged_by_the_queue() -> None:
    waits = {"data": {"node": {"isInMergeQueue": False}}}
    replies = {
        **merging(NO, pull(mergeable=None)),
        f"GET {R}/rules/branches/main": (200, [{"type": "update"}, {"type": "merge_queue"}]),
        "POST /api/graphql": (200, waits),
    }
    with github(replies) as (forge, script):
        with pytest.raises(InProgressError, match="it is queued"):
            merge(forge)
        assert script.asked.count("POST /api/graphql") == 2
        assert script.sent["POST /api/graphql"]["variables"]["input"]["expectedHeadOid"] == HEAD


def test_a_commit_that_is_not_there_has_no_files_and_an_empty_repository_no_history() -> None:
    for status in (404, 409, 422):
        with github({f"GET {R}/git/trees/{HEAD}": (status, {})}) as (forge, _):
            with pytest.raises(NotFoundError, match="has no commit"):
                forge.tree(REPO, HEAD)
            assert forge.read(REPO, PurePosixPath("a"), HEAD) is None
        with github({f"GET {R}/commits": (status, {})}) as (forge, _):
            assert forge.commits(REPO, ref=HEAD) == []
    with github({f"GET {R}/commits": (200, [{"sha": HEAD}])}) as (forge, script):
        assert forge.commits(REPO) == []  # no such branch
        assert script.asked == [f"GET {R}/git/ref/heads/main"]


@pytest.mark.parametrize(("message", "whole"), [("a", "a\n"), ("a\n", "a\n"), ("", "")])
def test_a_message_has_the_line_end_that_git_has(message: str, whole: str) -> None:
    found = [{"sha": HEAD, "commit": {"message": message}}]
    with github({f"GET {R}/commits": (200, found)}) as (forge, _):
        (commit,) = forge.commits(REPO, ref=HEAD)
    assert commit.message == whole


def test_refs_that_may_be_taken_for_main_are_named() -> None:
    def refs(*names: str) -> Reply:
        return 200, [{"ref": f"refs/{name}"} for name in names]

    path = f"GET {R}/git/matching-refs"
    replies: Replies = {
        f"{path}/tags/main": refs("tags/main", "tags/mainly"),
        f"{path}/tags/heads/main": refs("tags/heads/main"),
        f"{path}/tags/refs/heads/main": refs(),
        f"{path}/heads/heads/main": refs("heads/heads/main", "heads/heads/mainly"),
        f"{path}/heads/refs/heads/main": refs("heads/refs/heads/main"),
    }
    with github(replies) as (forge, _):
        assert forge.names_like(REPO, "main") == (
            "refs/heads/heads/main",
            "refs/heads/refs/heads/main",
            "refs/tags/heads/main",
            "refs/tags/main",
        )
    with github({**replies, f"{path}/heads/heads/main": (409, {})}) as (forge, _):
        assert forge.names_like(REPO, "main") == ()  # an empty repository


def test_commits_of_several_pages_are_newest_first() -> None:
    path = f"GET {R}/compare/main...change"
    ids = ["1" * 40, "2" * 40, "3" * 40]
    pages: list[Reply] = [
        (200, {"commits": [{"sha": ids[0]}, {"sha": ids[1]}], "total_commits": 3}),
        (200, {"commits": [{"sha": ids[2]}], "total_commits": 3}),
    ]
    with github({path: pages}) as (forge, script):
        assert [c.id for c in forge.compare(REPO, "main", "change")] == ids[::-1]
        assert script.asked == [path, path]
    with github({}) as (forge, _), pytest.raises(NotFoundError, match="one of them does not"):
        forge.compare(REPO, "main", "change")


def test_a_status_has_at_most_140_characters_of_text_and_no_empty_address() -> None:
    path = f"POST {R}/statuses/{HEAD}"
    shown: list[Reply] = [(200, {"statuses": []}), (200, {"statuses": [
        {"id": 1, "context": "plan", "state": "pending", "description": "x" * 140},
    ]})]  # fmt: skip
    with github({path: (201, {}), f"GET {R}/commits/{HEAD}/status": shown}) as (forge, script):
        forge.set_status(REPO, HEAD, CommitStatus("plan", "pending", "x" * 140))
        assert script.sent[path] == {
            "context": "plan", "state": "pending", "description": "x" * 140,
        }  # fmt: skip


def test_a_status_of_a_commit_that_is_not_there_says_so() -> None:
    refused = {
        f"POST {R}/statuses/{HEAD}": (422, {"message": "No commit found"}),
        f"GET {R}/commits/{HEAD}/status": (200, {"statuses": []}),
    }
    status = CommitStatus("plan", "pending")
    with github(refused) as (forge, _), pytest.raises(NotFoundError, match="has no commit"):
        forge.set_status(REPO, HEAD, status)
    there = {**refused, f"GET {R}/git/commits/{HEAD}": (200, {})}
    with github(there) as (forge, _), pytest.raises(RefusedError, match="No commit found"):
        forge.set_status(REPO, HEAD, status)


def test_of_each_context_the_newest_status_counts() -> None:
    def entry(number: int, context: str, state: str, text: str = "") -> dict[str, Any]:
        return {"id": number, "context": context, "state": state, "description": text}

    found = [
        entry(1, "plan", "pending"), entry(3, "plan", "success", "warning: look"),
        entry(2, "plan", "error"), entry(4, "cost", "strange"),
        entry(5, "b", "failure", "warning: x"),
    ]  # fmt: skip
    with github({f"GET {R}/commits/{HEAD}/status": (200, {"statuses": found})}) as (forge, _):
        assert forge.statuses(REPO, HEAD) == (
            CommitStatus("b", "failure", "warning: x"),
            CommitStatus("cost", "error"),
            CommitStatus("plan", "warning", "look"),
        )


REFUSED_STEPS: list[tuple[str, Replies, Any, type[Exception], str]] = [
    ("deleting", {f"GET {R}": (200, {}), f"DELETE {R}": (403, {"message": "no"})},
     lambda f: f.delete_repo(REPO), AccessError, "delete team/order: no"),
    ("the name of a new one", {f"POST {ORG}/repos": (422, {"message": "taken"})},
     lambda f: f.ensure_repo(REPO, description=""), InvalidInputError, "is refused: taken"),
    ("no organisation", {}, lambda f: f.ensure_repo(REPO, description=""),
     NotFoundError, "there is no organisation team"),
    ("making one", {f"POST {ORG}/repos": (403, {})},
     lambda f: f.ensure_repo(REPO, description=""), AccessError, "no right"),
    ("a name that GitHub changes", {},
     lambda f: f.ensure_repo(RepoId("team", "a b"), description=""), InvalidInputError, "letters"),
    ("making an organisation", {"POST /api/v3/admin/organizations": (403, {})},
     lambda f: f.ensure_org("team"), RefusedError, "our credentials cannot make it"),
    ("an organisation's name", {"POST /api/v3/admin/organizations": (422, {"message": "bad"})},
     lambda f: f.ensure_org("team"), InvalidInputError, "refused by the forge: bad"),
    ("no such branch", {f"GET {R}": (200, {}), f"PATCH {R}": (422, {})},
     lambda f: f.set_default_branch(REPO, "x"), NotFoundError, "no such branch"),
    ("archiving nothing", {}, lambda f: f.archive(REPO), NotFoundError, "hidden from us"),
    ("no squash in nothing", {}, lambda f: f.forbid_squash(REPO), NotFoundError, "hidden from us"),
    ("a taken name", {f"GET {R}": (200, {}), f"PATCH {R}": (422, {"message": "taken"})},
     lambda f: f.rename_repo(REPO, "garage"), ConflictError, "taken"),
    ("the default branch", {f"GET {R}": (200, {"default_branch": "main"}),
                            f"GET {R}/git/ref/heads/main": (200, {"object": {"sha": HEAD}})},
     lambda f: f.delete_branch(REPO, "main"), RefusedError, "it is the default branch"),
    ("a protected branch", {f"GET {R}": (200, {}), f"DELETE {R}/git/refs/heads/x": (403, {}),
                            f"GET {R}/git/ref/heads/x": (200, {"object": {"sha": HEAD}})},
     lambda f: f.delete_branch(REPO, "x"), RefusedError, "delete branch x"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("replies", "step", "error", "text"), [pytest.param(*c[1:], id=c[0]) for c in REFUSED_STEPS]
)
def test_a_step_that_is_refused_says_why(
    replies: Replies, step: Any, error: type[Exception], text: str
) -> None:
    with github(replies) as (forge, _), pytest.raises(error, match=text):
        step(forge)


def test_a_branch_that_is_not_there_is_deleted_already() -> None:
    path = f"DELETE {R}/git/refs/heads/x"
    with github({}) as (forge, _):  # nor is its repository
        assert not forge.delete_branch(REPO, "x")
    for status in (404, 422):
        with github({f"GET {R}": (200, {}), path: (status, {})}) as (forge, _):
            assert not forge.delete_branch(REPO, "x")


def test_what_is_archived_already_is_not_archived_again() -> None:
    for archived, undo in ((True, False), (False, True)):
        with github({f"GET {R}": (200, {"archived": archived})}) as (forge, script):
            forge.archive(REPO, undo=undo)
            assert script.asked == [f"GET {R}"]
        shown: list[Reply] = [(200, {"archived": not archived}), (200, {"archived": archived})]
        with github({f"GET {R}": shown, f"PATCH {R}": (200, {})}) as (forge, script):
            forge.archive(REPO, undo=undo)
            assert script.sent[f"PATCH {R}"] == {"archived": archived}


def test_who_pushed_what_is_read_page_by_page() -> None:
    def push(number: int, kind: str, before: str, after: str) -> dict[str, Any]:
        actor = {"id": number, "login": f"p{number}"}
        when = f"2026-01-0{number}"
        moved = {"before": before, "after": after, "timestamp": when}
        return {"id": number, "activity_type": kind, "actor": actor, **moved}

    new, gone = "d" * 40, "e" * 40
    retarget = {"id": 1, "event": "base_ref_changed", "actor": {"id": 9, "login": "mover"},
                "created_at": "2026-01-02T"}  # fmt: skip
    pages: list[Reply] = [
        (200, [push(1, "branch_creation", "0" * 40, HEAD), push(2, "branch_deletion", HEAD, HEAD)]),
        (200, [push(3, "push", HEAD, new), push(4, "force_push", new, gone)]),
    ]
    replies: Replies = {
        f"GET {R}/pulls/1": (200, pull()),
        f"GET {R}/activity": (200, pages[0][1]),
        f"GET {R}/activity?after=m 2": (200, pages[1][1]),
        f"GET {R}/compare/main...{HEAD}": (200, {"commits": [{"sha": HEAD}]}),
        f"GET {R}/compare/{HEAD}...{new}": (200, {"commits": [{"sha": new}]}),
        f"GET {R}/issues/1/timeline": (200, [retarget, {"id": 2, "event": "labeled"}]),
    }
    links = {f"GET {R}/activity": {"Link": '<http://x/y?after=m%202&per_page=50>; rel="next"'}}

    with github(replies, links) as (forge, _):
        found = [(e.kind, e.by.login, e.commits) for e in forge.pull_events(REPO, 1)]

    assert found == [
        ("push", "p1", (HEAD,)),
        ("retarget", "mover", ()),
        ("push", "p3", (new,)),
        ("push", "p4", (gone,)),
    ]
    with github({}) as (forge, _), pytest.raises(NotFoundError, match="no pull request 1"):
        forge.pull_events(REPO, 1)


def test_keys_and_tokens_of_apps_are_in_no_message(tmp_path: Path) -> None:
    key, token = "the-private-key-0123456789", "token-of-an-installation-0123456789"
    (tmp_path / "key.pem").write_text(key)
    app = ForgeApp(7, tmp_path / "key.pem", installation=5)

    secret = app_secret(app, "https://ghe.example.org", "/api/v3")
    app_tokens(5).token("team", Asked(access_tokens={"token": token}))

    assert secret == {
        "githubAppID": "7",
        "githubAppPrivateKey": key,
        "githubAppInstallationID": "5",
        "githubAppEnterpriseBaseUrl": "https://ghe.example.org/api/v3",
    }
    for hidden in (key, token):
        assert hidden not in redact(f"it was {hidden}")
    with pytest.raises(NotFoundError, match="the key of GitHub App 8 cannot be read"):
        app_secret(ForgeApp(8, tmp_path / "none"), "https://github.com", "https://api.github.com")


def test_argo_cds_app_reads_no_organisation_that_is_not_there(tmp_path: Path) -> None:
    (tmp_path / "key.pem").write_text("k")
    app = ForgeApp(7, tmp_path / "key.pem")
    with (
        scripted({}) as script,
        GitHubForge(script.url, token=TOKEN, argocd_app=app, pacer=Pacer()) as forge,
        pytest.raises(NotFoundError, match="there is no organisation team"),
    ):
        forge.add_reader("team")
