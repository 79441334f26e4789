"""Reviews, rulesets, teams and workflows: answers that the embedded forge does not give."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import pytest
from answering import Reply, Script, scripted

from ground.errors import (
    AccessError,
    InvalidInputError,
    NotFoundError,
    RefusedError,
)
from ground.names import CommitSha, RepoId
from orderkit.adapters.forges import answers
from orderkit.adapters.github import GitHubForge
from orderkit.adapters.github.transport import Pacer
from orderkit.ports.forge import OpenPullRef, TeamRight, Webhook
from orderkit.ports.workflows import ReviewRules, WorkflowRun

REPO = RepoId("team", "order")
ORG, R = "/api/v3/orgs/team", "/api/v3/repos/team/order"
HEAD = CommitSha("a" * 40)
ME: Reply = (200, {"id": 1, "login": "Warden"})
Replies = Mapping[str, Reply | list[Reply]]


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("PAUSE_FIRST_S", "PAUSE_MAX_S", "GET_PAUSE_S"):
        monkeypatch.setattr(answers, name, 0.001)


@contextmanager
def github(replies: Replies) -> Iterator[tuple[GitHubForge, Script]]:
    with (
        scripted({"GET /api/v3/user": ME, **replies}) as script,
        GitHubForge(script.url, token="t-1", pacer=Pacer()) as forge,
    ):
        yield forge, script


def verdict(number: int, login: str, state: str, commit: str = HEAD) -> dict[str, Any]:
    user = {"id": sum(map(ord, login)), "login": login}
    return {"id": number, "state": state, "user": user, "commit_id": commit, "submitted_at": "t"}


def test_the_last_verdict_of_each_who_may_write_counts() -> None:
    found = [
        verdict(5, "eve", "APPROVED"),
        verdict(2, "eve", "CHANGES_REQUESTED"),
        verdict(3, "reader", "APPROVED"),
        verdict(4, "adam", "DISMISSED"),
        verdict(6, "kai", "COMMENTED"),
        {**verdict(7, "ghost", "APPROVED"), "user": None},
    ]
    rights = {"eve": "write", "reader": "read", "adam": "admin"}
    replies: Replies = {
        f"GET {R}/pulls/1/reviews": (200, found),
        **{
            f"GET {R}/collaborators/{login}/permission": (
                200, {"permission": right, "user": {"id": 1, "login": login}},
            )
            for login, right in rights.items()
        },
    }  # fmt: skip
    with github(replies) as (forge, script):
        reviews = forge.reviews(REPO, 1)
        asked = [line for line in script.asked if "permission" in line]

    assert [(r.reviewer.login, r.state, r.official, r.dismissed) for r in reviews] == [
        ("eve", "rejected", False, False),
        ("reader", "approved", False, False),
        ("adam", "approved", False, True),
        ("eve", "approved", True, False),
    ]
    assert sorted(asked) == [f"GET {R}/collaborators/{who}/permission" for who in ("eve", "reader")]


def test_a_review_is_given_once_at_a_head() -> None:
    path = f"{R}/pulls/1/reviews"
    other = verdict(1, "Warden", "APPROVED", "b" * 40)
    mine, theirs = verdict(2, "WARDEN", "APPROVED"), verdict(3, "eve", "CHANGES_REQUESTED")
    with github({f"GET {path}": (200, [other, mine, theirs])}) as (forge, script):
        forge.review(REPO, 1, "approved", head=HEAD, text="")
        assert f"POST {path}" not in script.asked
    for shown in ([other], [mine, other], [{**mine, "state": "COMMENTED"}], []):
        replies: Replies = {f"GET {path}": (200, shown), f"POST {path}": (200, {})}
        with github(replies) as (forge, script):
            forge.review(REPO, 1, "approved", head=HEAD, text="")
            assert script.sent[f"POST {path}"] == {
                "event": "APPROVE", "body": "approved", "commit_id": HEAD,
            }  # fmt: skip
    refused: Replies = {f"GET {path}": (200, []), f"POST {path}": (422, {"message": "your own"})}
    with github(refused) as (forge, _), pytest.raises(RefusedError, match="is refused: your own"):
        forge.review(REPO, 1, "rejected", head=HEAD, text="no")


def ruleset(**more: Any) -> dict[str, Any]:
    checks = {"required_status_checks": [{"context": "plan"}]}
    return {
        "id": 4,
        "name": "main",
        "target": "branch",
        "enforcement": "active",
        "conditions": {"ref_name": {"include": ["refs/heads/main"], "exclude": []}},
        "bypass_actors": [{"actor_id": 9, "actor_type": "OrganizationAdmin"}],
        "rules": [
            *({"type": kind} for kind in ("update", "deletion", "non_fast_forward")),
            {"type": "required_status_checks", "parameters": checks},
        ],
        **more,
    }


RULES = ruleset()["rules"]
TEAM = {"actor_id": 2, "actor_type": "Team"}
PROTECTS: list[tuple[str, dict[str, Any], bool]] = [
    ("as it has to", {}, True),
    ("nobody gets past", {"bypass_actors": []}, True),
    ("one check more", {"rules": [*RULES[:3], {"type": "required_status_checks", "parameters": {
        "required_status_checks": [{"context": "plan"}, {"context": "x"}]}}]}, True),
    ("only tried", {"enforcement": "evaluate"}, False),
    ("of tags", {"target": "tag"}, False),
    ("another branch", {"conditions": {"ref_name": {"include": ["refs/heads/x"], "exclude": []}}},
     False),
    ("a team gets past", {"bypass_actors": [TEAM]}, False),
    ("anyone may push", {"rules": RULES[1:]}, False),
    ("no check", {"rules": RULES[:3]}, False),
    ("another name", {"name": "release"}, False),
]  # fmt: skip


@pytest.mark.parametrize(("change", "protects"), [pytest.param(*c[1:], id=c[0]) for c in PROTECTS])
def test_a_branch_is_protected_by_a_ruleset_that_says_all_that_it_has_to(
    change: dict[str, Any], *, protects: bool
) -> None:
    whole = ruleset(**change)
    replies: Replies = {
        f"GET {R}/rulesets?includes_parents=false": (200, [{"id": 4, "name": whole["name"]}]),
        f"GET {R}/rulesets/4": (200, whole),
    }
    with github(replies) as (forge, _):
        assert forge.is_protected(REPO, "main", checks=["plan"]) is protects


def test_a_ruleset_is_made_or_repaired_by_an_owner_only() -> None:
    listed = f"GET {R}/rulesets"
    owner: Replies = {f"GET {ORG}/memberships/Warden": (200, {"role": "admin"})}
    with github({**owner, listed: (200, []), f"POST {R}/rulesets": (201, {})}) as (forge, script):
        assert forge.protect_branch(REPO, "main", checks=["plan"])
        sent = script.sent[f"POST {R}/rulesets"]
    assert [rule["type"] for rule in sent["rules"]] == [rule["type"] for rule in RULES]
    found: Replies = {listed: (200, [{"id": 4, "name": "main"}]),
                      f"GET {R}/rulesets/4": (200, ruleset(target="tag")),
                      f"PUT {R}/rulesets/4": (200, {})}  # fmt: skip
    with github({**owner, **found}) as (forge, script):
        assert forge.protect_branch(REPO, "main", checks=["plan"])
        assert f"PUT {R}/rulesets/4" in script.asked
    for membership in ((200, {"role": "member"}), (404, {})):
        strange: Replies = {listed: (200, []), f"GET {ORG}/memberships/Warden": membership}
        with github(strange) as (forge, _), pytest.raises(RefusedError, match="is no owner of"):
            forge.protect_branch(REPO, "main", checks=[])
    with github({}) as (forge, _), pytest.raises(NotFoundError, match="hidden from us"):
        forge.is_protected(REPO, "main", checks=[])
    with github({listed: (403, {})}) as (forge, _):
        assert not forge.is_protected(REPO, "main", checks=[])


def test_a_free_plan_protects_public_repositories_only() -> None:
    replies: Replies = {
        f"GET {R}/rulesets": (403, {}),
        f"GET {ORG}/memberships/Warden": (200, {"role": "admin"}),
        f"POST {R}/rulesets": (403, {"message": "Upgrade"}),
    }
    with github({**replies, f"GET {R}": (200, {"private": True})}) as (forge, _):
        with pytest.raises(RefusedError, match="Upgrade") as caught:
            forge.protect_branch(REPO, "main", checks=[])
        assert "a free plan protects no branches" in caught.value.hint
    public = {**replies, f"GET {R}": (200, {"private": False})}
    with github(public) as (forge, _), pytest.raises(AccessError, match="no right"):
        forge.protect_branch(REPO, "main", checks=[])


BLOCKS: list[tuple[str, list[dict[str, Any]], dict[str, Any], str]] = [
    ("no rule", [], {}, ""),
    ("a rule of something else", [{"type": "deletion", "ruleset_id": 4}], {}, ""),
    ("one that we may bypass", [{"type": "update", "ruleset_id": 4}],
     {"name": "n", "current_user_can_bypass": "always"}, ""),
    ("one of pushes", [{"type": "update", "ruleset_id": 4}],
     {"name": "n", "current_user_can_bypass": "never"}, "n"),
    ("one that says nothing of us", [{"type": "pull_request", "ruleset_id": 4}], {"name": "n"},
     "n"),
    ("one of checks", [{"type": "required_status_checks", "ruleset_id": 4}], {}, "4"),
    ("one that only its source names",
     [{"type": "update", "ruleset_id": 4, "ruleset_source": "team"}], {}, "team"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("rules", "whole", "rule"), [pytest.param(*c[1:], id=c[0]) for c in BLOCKS]
)
def test_the_rule_that_keeps_us_from_pushing_is_named(
    rules: list[dict[str, Any]], whole: dict[str, Any], rule: str
) -> None:
    replies: Replies = {
        f"GET {R}/branches/main": (200, {}),
        f"GET {R}/rules/branches/main": (200, rules),
        f"GET {R}/rulesets/4": (200, whole),
    }
    with github(replies) as (forge, _):
        assert forge.blocking_rule(REPO, "main") == rule


def test_a_branch_that_is_not_there_has_no_rule() -> None:
    rules: Replies = {f"GET {R}/rules/branches/main": (200, [])}
    with github(rules) as (forge, _), pytest.raises(NotFoundError):
        forge.blocking_rule(REPO, "main")


def test_what_reviews_a_branch_asks_for_is_set_once() -> None:
    path = f"{R}/branches/main/protection"
    rules = ReviewRules(approvals=2, checks=("plan",))
    with github({f"PUT {path}": (200, {})}) as (forge, script):
        assert forge.require_reviews(REPO, "main", rules)
        sent = script.sent[f"PUT {path}"]
    assert sent["required_status_checks"]["contexts"] == ["plan"]
    assert sent["required_pull_request_reviews"]["required_approving_review_count"] == 2
    with github({f"GET {path}": (200, {})}) as (forge, script):
        assert not forge.require_reviews(REPO, "main", rules)
        assert script.asked == [f"GET {path}"]
    with (
        github({f"GET {path}": (403, {"message": "Upgrade"})}) as (forge, _),
        pytest.raises(RefusedError, match="Upgrade"),
    ):
        forge.require_reviews(REPO, "main", rules)
    with github({f"GET {path}": (500, {})}) as (forge, script):
        with pytest.raises(answers.ServerError):
            forge.require_reviews(REPO, "main", rules)
        assert f"PUT {path}" not in script.asked


def test_a_workflow_is_started_with_its_inputs_or_says_why_not() -> None:
    path = f"POST {R}/actions/workflows/ci.yaml/dispatches"
    with github({path: (204, {})}) as (forge, script):
        forge.dispatch_workflow(REPO, "ci.yaml", "main", {"a": "b"})
        assert script.sent[path] == {"ref": "main", "inputs": {"a": "b"}}
        forge.dispatch_workflow(REPO, "ci.yaml", "main", {})
        assert script.sent[path] == {"ref": "main"}
    cases: list[tuple[Reply, type[Exception], str]] = [
        ((404, {}), NotFoundError, "has no workflow ci.yaml"),
        ((422, {"message": "No ref"}), InvalidInputError, "is refused: No ref"),
        ((403, {}), AccessError, "start ci.yaml"),
    ]
    for said, error, text in cases:
        with github({path: said}) as (forge, _), pytest.raises(error, match=text):
            forge.dispatch_workflow(REPO, "ci.yaml", "main", {})


def test_only_runs_that_somebody_started_on_the_commit_are_listed() -> None:
    path = f"GET {R}/actions/workflows/ci.yaml/runs"
    run = {"id": 5, "url": "http://api/5", "html_url": "http://x/5"}
    wanted = f"{path}?event=workflow_dispatch&head_sha={HEAD}"
    with github({path: (200, {"workflow_runs": []}), wanted: (200, {"workflow_runs": [run]})}) as (
        forge,
        _,
    ):
        assert forge.workflows is forge
        assert forge.workflow_runs(REPO, "ci.yaml", HEAD) == (
            WorkflowRun(5, "http://api/5", "http://x/5"),
        )


def test_open_pull_requests_of_all_repositories_are_read_page_by_page() -> None:
    def page(name: str, number: int, after: str) -> Reply:
        found = {"nodes": [{"number": number, "updatedAt": "t"}]}
        nodes = [{"name": name, "pullRequests": found}, {"name": "none", "pullRequests": None}]
        info = {"hasNextPage": bool(after), "endCursor": after}
        shown = {"pageInfo": info, "nodes": nodes}
        return 200, {"data": {"organization": {"repositories": shown}}}

    with github({"POST /api/graphql": [page("a", 1, "c-1"), page("b", 2, "")]}) as (forge, script):
        assert list(forge.open_pulls("team")) == [
            OpenPullRef(RepoId("team", "a"), 1, "t"),
            OpenPullRef(RepoId("team", "b"), 2, "t"),
        ]
        assert script.sent["POST /api/graphql"]["variables"] == {"org": "team", "after": "c-1"}
    with github({"POST /api/graphql": (200, {"data": {"organization": None}})}) as (forge, _):
        assert list(forge.open_pulls("team")) == []


T = f"{ORG}/teams/devs"


def test_a_team_is_changed_only_where_it_differs_and_leavers_go_first() -> None:
    rights = {"admin": False, "push": True, "pull": True}
    replies: Replies = {
        f"GET {T}": (200, {"description": "", "permission": "push", "slug": "devs"}),
        f"GET {T}/members": (200, [{"id": 1, "login": "Eve"}, {"id": 2, "login": "old"}]),
        f"GET {T}/repos": (200, [
            {"id": 1, "name": "kept", "permissions": rights},
            {"id": 2, "name": "read", "permissions": {"pull": True}},
            {"id": 3, "name": "Gone", "permissions": rights},
        ]),
        f"DELETE {T}/memberships/old": (404, {}),
        f"PUT {T}/memberships/new": (200, {}),
        f"PUT {T}/repos/team/read": (204, {}),
        f"DELETE {T}/repos/team/gone": (204, {}),
        f"PATCH {T}": (200, {}),
    }  # fmt: skip
    how: dict[str, Any] = {"members": ["eve", "New"], "repositories": ["KEPT", "read"]}
    with github(replies) as (forge, script):
        forge.ensure_access("team", "Devs", right=TeamRight.WRITE, **how)
        assert [line for line in script.asked if not line.startswith("GET")] == [
            f"DELETE {T}/memberships/old",
            f"DELETE {T}/repos/team/gone",
            f"PUT {T}/repos/team/read",
            f"PUT {T}/memberships/new",
        ]
        assert script.sent[f"PUT {T}/repos/team/read"] == {"permission": "push"}
    strange = {**replies, f"PUT {T}/memberships/new": (404, {})}
    with github(strange) as (forge, _), pytest.raises(NotFoundError, match="is no user new"):
        forge.ensure_access("team", "devs", right=TeamRight.WRITE, **how)
    all_of_it: Replies = {
        **replies,
        f"GET {ORG}/repos": (200, [{"id": 1, "name": "kept"}, {"id": 2, "name": "read"}]),
    }
    with github(all_of_it) as (forge, script):
        forge.ensure_access("team", "devs", right=TeamRight.WRITE, members=["eve", "old"])
        assert script.sent[f"PATCH {T}"]["description"].startswith("Has every repository")


TEAMS: list[tuple[str, Replies, str, type[Exception], str]] = [
    ("the owners", {}, "Owners", RefusedError, "the team of owners is not changed"),
    ("a name that GitHub changes", {}, "a b", InvalidInputError, "letters, digits and dashes"),
    ("no organisation", {}, "devs", NotFoundError, "there is no organisation team"),
    ("no right", {f"GET {ORG}": (200, {}), f"POST {ORG}/teams": (404, {})}, "devs",
     AccessError, "no right"),
    ("no right, too", {f"GET {ORG}": (200, {}), f"POST {ORG}/teams": (403, {})}, "devs",
     AccessError, "no right"),
    ("a refused name", {f"GET {ORG}": (200, {}), f"POST {ORG}/teams": (422, {"message": "bad"})},
     "devs", InvalidInputError, "is refused: bad"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("replies", "team", "error", "text"), [pytest.param(*c[1:], id=c[0]) for c in TEAMS]
)
def test_a_team_that_is_not_made_says_why(
    replies: Replies, team: str, error: type[Exception], text: str
) -> None:
    with github(replies) as (forge, _), pytest.raises(error, match=text):
        forge.ensure_access("team", team, right=TeamRight.READ, members=[], repositories=[])


def test_members_of_a_team_or_of_all_are_listed_and_of_nothing_none() -> None:
    replies: Replies = {
        f"GET {T}/members": (200, [{"id": 1, "login": "eve"}]),
        f"GET {ORG}/members": (200, [{"id": 1, "login": "eve"}, {"id": 2, "login": "adam"}]),
    }
    with github(replies) as (forge, _):
        assert [user.login for user in forge.members("team", "Devs")] == ["eve"]
        assert [user.login for user in forge.members("team")] == ["eve", "adam"]
        assert forge.members("team", "others") == ()


def test_teams_of_everything_get_a_new_repository_each_with_its_right() -> None:
    mark = "Has every repository of this organisation (kept by Orderkit)"
    teams = [
        {"id": number, "slug": slug, "description": text, "permission": right}
        for number, slug, text, right in (
            (1, "one", mark, "push"), (2, "two", mark, "pull"), (3, "three", "", "admin"),
        )
    ]  # fmt: skip
    replies: Replies = {
        f"GET {ORG}/teams": (200, teams),
        f"POST {ORG}/repos": (201, {"id": 9}),
        f"PUT {ORG}/teams/two/repos/team/order": (204, {}),
    }
    with github(replies) as (forge, script):
        assert forge.ensure_repo(REPO, description="d", private=True, may_squash=False).empty
        assert script.sent[f"POST {ORG}/repos"]["team_id"] == 1
        assert script.sent[f"POST {ORG}/repos"]["allow_squash_merge"] is False
        assert script.sent[f"PUT {ORG}/teams/two/repos/team/order"] == {"permission": "pull"}
        assert len([line for line in script.asked if "/repos/team/order" in line]) == 2
    hidden = {**replies, f"GET {ORG}/teams": (403, {})}
    with github(hidden) as (forge, script):
        forge.ensure_repo(REPO, description="d")
        assert "team_id" not in script.sent[f"POST {ORG}/repos"]


def test_a_webhook_hears_the_events_by_githubs_names_and_is_made_once() -> None:
    path = f"{R}/hooks"
    hook = {"id": 3, "active": True, "events": ["push", "pull_request"],
            "config": {"url": "http://x"}}  # fmt: skip
    wanted = Webhook("http://x", ("push", "pull_request_only", "pull_request_sync"), "s-1")
    made: Replies = {f"GET {path}": [(200, []), (200, [hook])], f"POST {path}": (201, hook)}
    with github(made) as (forge, script):
        forge.ensure_webhook(REPO, wanted)
        sent = script.sent[f"POST {path}"]
    assert (sent["events"], sent["name"]) == (["pull_request", "push"], "web")
    assert sent["config"] == {"url": "http://x", "content_type": "json", "secret": "s-1"}
    with github({f"GET {path}": (200, [hook]), f"PATCH {path}/3": (200, hook)}) as (forge, script):
        assert forge.has_webhook(REPO, wanted)
        forge.ensure_webhook(REPO, wanted)
        assert "name" not in script.sent[f"PATCH {path}/3"]
    refused: Replies = {
        f"GET {path}": [(200, []), (200, [hook])],
        f"POST {path}": (403, {}),
        f"PATCH {path}/3": (200, hook),
    }
    with github(refused) as (forge, script):  # a proxy refused what GitHub made
        forge.ensure_webhook(REPO, wanted)
        assert script.asked.count(f"POST {path}") == 1
    none: Replies = {f"GET {path}": (200, []), f"POST {path}": (403, {})}
    with github(none) as (forge, _), pytest.raises(AccessError):
        forge.ensure_webhook(REPO, wanted)
