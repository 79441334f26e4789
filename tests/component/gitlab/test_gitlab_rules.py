"""Protection, approvals and rights of people: answers that the embedded forge does not give."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import PurePosixPath
from typing import Any

import pytest
from answering import Reply, Script, scripted
from tests.component.gitlab.conftest import op

from ground.errors import AccessError, NotFoundError, RefusedError
from ground.names import CommitSha, RepoId
from orderkit.adapters.forges import answers
from orderkit.adapters.gitlab import GitLabForge
from orderkit.adapters.gitlab.transport import GitLabPacer
from orderkit.ports.forge import FileChange, TeamRight

REPO = RepoId("team", "order")
API = "/api/v4"
G, P = f"{API}/groups/acme/team", f"{API}/projects/acme/team/order"
HEAD, OLD, NEW = (CommitSha(letter * 40) for letter in "abc")
ME: Reply = (200, {"id": 1, "username": "Warden"})
WAITS = {"only_allow_merge_if_pipeline_succeeds": True}
Replies = Mapping[str, Reply | list[Reply]]


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("PAUSE_FIRST_S", "PAUSE_MAX_S", "GET_PAUSE_S"):
        monkeypatch.setattr(answers, name, 0.001)


@contextmanager
def gitlab(replies: Replies) -> Iterator[tuple[GitLabForge, Script]]:
    with (
        scripted({f"GET {API}/user": ME, **replies}) as script,
        GitLabForge(script.url, token="t-1", group="acme", pacer=GitLabPacer()) as forge,
    ):
        yield forge, script


def rule(*levels: dict[str, Any], name: str = "main", **more: Any) -> dict[str, Any]:
    half = {"push_access_levels": list(levels), "merge_access_levels": [{"access_level": 40}]}
    return {"id": 1, "name": name, **half, **more}


MAINTAINERS = {"access_level": 40}
WIDE = {"access_level": 30}
PROTECTED: list[tuple[str, list[dict[str, Any]], dict[str, Any], bool]] = [
    ("maintainers", [rule(MAINTAINERS)], WAITS, True),
    ("nobody", [rule({"access_level": 0})], WAITS, True),
    ("us alone", [rule({"user_id": 1, "access_level": 30})], WAITS, True),
    ("developers", [rule(WIDE)], WAITS, False),
    ("a person", [rule({"user_id": 2, "access_level": 40})], WAITS, False),
    ("a deploy key", [rule({"deploy_key_id": 3, "access_level": 40})], WAITS, False),
    ("a group", [rule({"group_id": 4, "access_level": 40})], WAITS, False),
    ("one too many", [rule(MAINTAINERS, WIDE)], WAITS, False),
    ("an entry without a level", [rule({})], WAITS, False),
    ("no entry", [{"id": 1, "name": "main"}], WAITS, False),
    ("history may be replaced", [rule(MAINTAINERS, allow_force_push=True)], WAITS, False),
    ("no rule", [], WAITS, False),
    ("another branch", [rule(MAINTAINERS, name="release")], WAITS, False),
    ("a pattern", [rule(MAINTAINERS, name="m*n")], WAITS, True),
    ("a wide pattern beside it", [rule(MAINTAINERS), rule(WIDE, name="*")], WAITS, False),
    ("a wide rule of others", [rule(MAINTAINERS), rule(WIDE, name="mai.")], WAITS, True),
    ("no pipeline", [rule(MAINTAINERS)], {}, False),
    ("a skipped one counts", [rule(MAINTAINERS)],
     {**WAITS, "allow_merge_on_skipped_pipeline": True}, False),
]  # fmt: skip


@pytest.mark.parametrize(
    ("rules", "project", "is_protected"), [pytest.param(*c[1:], id=c[0]) for c in PROTECTED]
)
def test_a_branch_is_protected_if_every_rule_of_it_is_narrow(
    rules: list[dict[str, Any]], project: dict[str, Any], *, is_protected: bool
) -> None:
    replies: Replies = {
        f"GET {P}/protected_branches": (200, rules),
        f"GET {P}": (200, project),
    }
    with gitlab(replies) as (forge, _):
        assert forge.is_protected(REPO, "main", checks=["plan"]) is is_protected


def test_without_checks_no_pipeline_has_to_succeed() -> None:
    replies: Replies = {
        f"GET {P}/protected_branches": (200, [rule(MAINTAINERS)]), f"GET {P}": (200, {}),
    }  # fmt: skip
    with gitlab(replies) as (forge, _):
        assert forge.is_protected(REPO, "main", checks=[])


def test_our_rule_takes_the_place_of_a_wider_one_and_no_patterns() -> None:
    path = f"{P}/protected_branches"
    replies: Replies = {
        f"GET {path}": (200, [rule(WIDE)]),
        f"GET {P}": (200, {}),
        f"DELETE {path}/main": (404, {}),
        f"POST {path}": (409, {}),
        f"PUT {P}": (200, {}),
    }
    with gitlab(replies) as (forge, script):
        assert forge.protect_branch(REPO, "main", checks=["plan"])
        assert [line for line in script.asked if not line.startswith("GET")] == [
            f"DELETE {path}/main", f"POST {path}", f"PUT {P}",
        ]  # fmt: skip
        assert script.sent[f"POST {path}"]["allowed_to_push"] == [{"user_id": 1}]
        assert script.sent[f"PUT {P}"] == {**WAITS, "allow_merge_on_skipped_pipeline": False}
    narrow = {**replies, f"GET {path}": (200, [rule(MAINTAINERS), rule(WIDE, name="other")])}
    with gitlab(narrow) as (forge, script):
        assert forge.protect_branch(REPO, "main", checks=["plan"])
        assert [line for line in script.asked if not line.startswith("GET")] == [f"PUT {P}"]
    pattern = {**replies, f"GET {path}": (200, [rule(WIDE, name="m*")])}
    with gitlab(pattern) as (forge, script):
        with pytest.raises(RefusedError, match=r"the rule 'm\*' counts first"):
            forge.protect_branch(REPO, "main", checks=[])
        assert not [line for line in script.asked if not line.startswith("GET")]
    done = {**replies, f"GET {path}": (200, [rule(MAINTAINERS)]), f"GET {P}": (200, WAITS)}
    with gitlab(done) as (forge, script):
        assert not forge.protect_branch(REPO, "main", checks=["plan"])
    for refused in (f"DELETE {path}/main", f"POST {path}"):
        with gitlab({**replies, refused: (403, {})}) as (forge, _), pytest.raises(AccessError):
            forge.protect_branch(REPO, "main", checks=[])


RIGHTS = [(50, "owner"), (40, "admin"), (30, "write"), (20, "read"), (10, "none"), (0, "none")]


@pytest.mark.parametrize(("level", "right"), RIGHTS)
def test_the_right_of_a_person_follows_from_their_level(level: int, right: str) -> None:
    replies: Replies = {
        f"GET {API}/users?username=eve": (200, [{"id": 2, "username": "Eve"}]),
        f"GET {P}/members/all/2": (200, {"id": 2, "access_level": level}),
        f"GET {P}": (200, {"visibility": "private"}),
    }
    with gitlab(replies) as (forge, _):
        found = forge.user_with_right(REPO, "eve")
    assert found is not None
    assert (found[0].login, found[0].is_machine, found[1]) == ("Eve", False, right)


def test_what_is_public_is_read_by_everybody_and_unknown_logins_are_nobody() -> None:
    users = [{"id": 3, "username": "everett"}, {"id": 2, "username": "eve", "state": "active"}]
    replies: Replies = {
        f"GET {API}/users": (200, users),
        f"GET {API}/users/2": (200, {"bot": True}),
        f"GET {P}": (200, {"visibility": "public"}),
    }
    with gitlab(replies) as (forge, script):
        found = forge.user_with_right(REPO, "eve")
        assert found is not None
        assert (found[0].is_machine, found[1]) == (True, "read")
        forge.user_with_right(REPO, "eve")
        assert script.asked.count(f"GET {API}/users/2") == 1
        assert forge.user_with_right(REPO, "ev") is None
    blocked = {**replies, f"GET {API}/users": (200, [{**users[1], "state": "blocked"}])}
    with gitlab(blocked) as (forge, _):
        assert forge.user_with_right(REPO, "eve") is None


def test_the_user_of_an_access_token_is_a_machine_by_its_name() -> None:
    bot = {"id": 4, "username": "group_7_bot_ab12"}
    replies: Replies = {
        f"GET {API}/users": (200, [bot]),
        f"GET {P}": (200, {"visibility": "private"}),
    }
    with gitlab(replies) as (forge, script):
        found = forge.user_with_right(REPO, "group_7_bot_ab12")
        assert f"GET {API}/users/4" not in script.asked
    assert found is not None
    assert found[0].is_machine


def user(number: int, name: str) -> dict[str, Any]:
    return {"id": number, "username": name}


PULL = f"{P}/merge_requests/1"
VERSIONS = [
    {"id": 1, "head_commit_sha": OLD, "created_at": "2026-01-01T10:00:00Z"},
    {"id": 2, "head_commit_sha": NEW, "created_at": "2026-01-01T12:00:00Z"},
]


@pytest.mark.parametrize(
    ("when", "commit"),
    [
        ("2026-01-01T11:00:00Z", OLD),
        ("2026-01-01T12:00:00Z", OLD),
        ("2026-01-01T12:00:01Z", NEW),
        ("2026-01-01T10:00:00Z", ""),
    ],
)
def test_an_approval_is_for_the_newest_version_that_was_there_before_it(
    when: str, commit: str
) -> None:
    approvals = [{"user": user(2, "eve"), "approved_at": when}]
    members = [{**user(2, "eve"), "access_level": 30}, {**user(3, "kai"), "access_level": 20}]
    replies: Replies = {
        f"GET {PULL}/approvals": (200, {"approved_by": approvals}),
        f"GET {PULL}/notes": (200, []),
        f"GET {PULL}/versions": (200, VERSIONS),
        f"GET {P}/members/all": (200, members),
    }
    with gitlab(replies) as (forge, _):
        (review,) = forge.reviews(REPO, 1)
    assert (review.commit, review.state, review.official) == (commit, "approved", True)


def test_a_rejection_is_a_note_that_ends_in_its_hidden_line() -> None:
    line = f"<!-- orderkit-review: rejected {NEW} -->"
    notes = [
        {"id": 1, "body": f"no\n\n{line}\n", "author": user(2, "eve"), "created_at": "2026-01-01"},
        {"id": 2, "body": f"{line} quoted", "author": user(2, "eve"), "created_at": "2026-01-02"},
        {"id": 3, "body": f"no\n\n{line}", "author": user(3, "kai"), "created_at": "2026-01-03"},
    ]
    replies: Replies = {
        f"GET {PULL}/approvals": (200, {"approved_by": None}),
        f"GET {PULL}/notes": (200, notes),
        f"GET {P}/members/all": (200, [{**user(2, "eve"), "access_level": 30}]),
    }
    with gitlab(replies) as (forge, script):
        found = [(r.reviewer.login, r.state, r.commit, r.official) for r in forge.reviews(REPO, 1)]
        assert f"GET {PULL}/versions" not in script.asked
    assert found == [("eve", "rejected", NEW, True), ("kai", "rejected", NEW, False)]
    with gitlab({**replies, f"GET {PULL}/notes": (200, [])}) as (forge, script):
        assert forge.reviews(REPO, 1) == ()
        assert f"GET {P}/members/all" not in script.asked


def opened(**more: Any) -> dict[str, Any]:
    return {
        "iid": 1, "state": "opened", "source_branch": "change", "target_branch": "main",
        "sha": HEAD, "author": user(2, "eve"), "diff_refs": {"base_sha": OLD}, **more,
    }  # fmt: skip


def test_an_approval_is_given_anew_for_the_head_and_refusals_say_why() -> None:
    replies: Replies = {
        f"GET {PULL}": (200, opened()),
        f"GET {PULL}/approvals": (200, {"approved_by": []}),
        f"GET {PULL}/notes": (200, []),
        f"POST {PULL}/unapprove": (404, {}),
        f"POST {PULL}/approve": (201, {}),
    }
    with gitlab(replies) as (forge, script):
        forge.review(REPO, 1, "approved", head=HEAD, text="")
        assert script.sent[f"POST {PULL}/approve"] == {"sha": HEAD}
        sends = [line for line in script.asked if line.startswith("POST")]
    assert sends == [f"POST {PULL}/unapprove", f"POST {PULL}/approve"]
    for status in (403, 409):
        late = {**replies, f"POST {PULL}/approve": (status, {"message": "SHA does not match"})}
        with gitlab(late) as (forge, _), pytest.raises(RefusedError, match="SHA does not match"):
            forge.review(REPO, 1, "approved", head=HEAD, text="")
    member: Replies = {
        **replies,
        f"POST {PULL}/approve": (401, {}),
        f"GET {API}/users": (200, [user(1, "Warden")]),
        f"GET {P}/members/all/1": (200, {"access_level": 30}),
        f"GET {P}": (200, {"visibility": "private"}),
    }
    with gitlab(member) as (forge, _), pytest.raises(RefusedError, match="does not let Warden"):
        forge.review(REPO, 1, "approved", head=HEAD, text="")
    reader = {**member, f"GET {P}/members/all/1": (200, {"access_level": 20})}
    with gitlab(reader) as (forge, _), pytest.raises(AccessError, match="may not approve"):
        forge.review(REPO, 1, "approved", head=HEAD, text="")
    unknown = {**member, f"GET {API}/users": (200, [])}
    with gitlab(unknown) as (forge, _), pytest.raises(AccessError, match="may not approve"):
        forge.review(REPO, 1, "approved", head=HEAD, text="")
    for entry, why in (
        (opened(author=user(1, "warden")), "we opened it ourselves"),
        (opened(state="closed"), "it is not open"),
    ):
        with (
            gitlab({**replies, f"GET {PULL}": (200, entry)}) as (forge, _),
            pytest.raises(RefusedError, match=why),
        ):
            forge.review(REPO, 1, "approved", head=HEAD, text="")


def test_a_rejection_takes_an_approval_back_and_names_its_head() -> None:
    replies: Replies = {
        f"GET {PULL}": (200, opened()),
        f"GET {PULL}/approvals": (200, {"approved_by": []}),
        f"GET {PULL}/notes": (200, []),
        f"POST {PULL}/notes": (201, {}),
    }
    with gitlab(replies) as (forge, script):
        forge.review(REPO, 1, "rejected", head=HEAD, text="no \n")
        assert f"POST {PULL}/unapprove" in script.asked
        assert script.sent[f"POST {PULL}/notes"] == {
            "body": f"no\n\n<!-- orderkit-review: rejected {HEAD} -->\n"
        }


def test_who_pushed_what_to_a_branch_is_read_from_the_projects_events() -> None:
    def push(number: int, begin: str, end: str, **more: Any) -> dict[str, Any]:
        data = {"ref_type": "branch", "ref": "change", "commit_from": begin, "commit_to": end}
        when = f"2026-01-0{number}T00:00:00Z"
        by = user(number, f"p{number}")
        return {"id": number, "push_data": {**data, **more}, "author": by, "created_at": when}

    commits = [{"id": NEW, "parent_ids": [OLD]}, {"id": HEAD, "parent_ids": [NEW]}]
    notes = [
        {"id": 1, "system": True, "body": "changed target branch from `x` to `main`",
         "author": user(9, "mover"), "created_at": "2026-01-02T00:00:00Z"},
        {"id": 2, "system": True, "body": "added a label", "author": user(9, "mover")},
        {"id": 3, "body": "changed target branch from, I think", "author": user(8, "eve")},
    ]  # fmt: skip
    replies: Replies = {
        f"GET {PULL}": (200, opened()),
        f"GET {P}/repository/compare?from={OLD}&to={HEAD}": (200, {"commits": commits}),
        f"GET {P}/events?action=pushed": (200, [
            push(1, OLD, NEW), push(3, NEW, HEAD), push(4, HEAD, HEAD),
            push(5, OLD, NEW, ref="other"), push(6, OLD, NEW, ref_type="tag"),
        ]),
        f"GET {PULL}/notes": (200, notes),
    }  # fmt: skip
    with gitlab(replies) as (forge, _):
        found = [(e.kind, e.by.login, e.commits) for e in forge.pull_events(REPO, 1)]

    assert found == [("push", "p1", (NEW,)), ("retarget", "mover", ()), ("push", "p3", (HEAD,))]


def member(number: int, name: str, level: int, **more: Any) -> dict[str, Any]:
    return {"id": number, "username": name, "access_level": level, **more}


def test_a_team_has_exactly_these_direct_members_below_owner() -> None:
    listed = [
        member(1, "Warden", 40), member(2, "boss", 50), member(3, "old", 30),
        member(4, "group_1_bot_a", 30), member(5, "kept", 30), member(6, "risen", 40),
    ]  # fmt: skip
    path = f"{G}/members"
    names = {"kept": 5, "risen": 6, "fresh": 7, "Warden": 1}
    replies: Replies = {
        f"GET {G}": (200, {"id": 9}),
        f"GET {G}/projects": (200, []),
        f"GET {path}": (200, listed),
        **{f"GET {API}/users?username={n}": (200, [user(i, n)]) for n, i in names.items()},
        f"DELETE {path}/3": (404, {}),
        f"POST {path}": (409, {}),
        f"PUT {path}/6": (200, {}),
    }
    with gitlab(replies) as (forge, script):
        forge.ensure_access("team", "devs", right=TeamRight.WRITE, members=list(names))
        assert [line for line in script.asked if not line.startswith("GET")] == [
            f"DELETE {path}/3", f"PUT {path}/6", f"POST {path}",
        ]  # fmt: skip
        assert script.sent[f"POST {path}"] == {"user_id": 7, "access_level": 30}
        assert script.sent[f"PUT {path}/6"] == {"access_level": 30}
    for refused in (f"DELETE {path}/3", f"POST {path}", f"PUT {path}/6"):
        with gitlab({**replies, refused: (403, {})}) as (forge, _), pytest.raises(AccessError):
            forge.ensure_access("team", "devs", right=TeamRight.WRITE, members=list(names))
    nobody = {**replies, f"GET {API}/users": (200, [])}
    with gitlab(nobody) as (forge, _), pytest.raises(NotFoundError, match="no user nobody"):
        forge.ensure_access("team", "devs", right=TeamRight.WRITE, members=["nobody"])
    with gitlab(replies) as (forge, _), pytest.raises(NotFoundError, match="no repository team/x"):
        forge.ensure_access("team", "devs", right=TeamRight.WRITE, members=[], repositories=["x"])


def test_members_whose_membership_is_not_in_force_are_none() -> None:
    listed = [member(2, "boss", 50), member(3, "dev", 30), member(4, "x", 30, state="awaiting")]
    with gitlab({f"GET {G}/members": (200, listed)}) as (forge, _):
        assert [each.login for each in forge.members("team")] == ["boss", "dev"]
        assert [each.login for each in forge.members("team", "devs")] == ["dev"]
    with gitlab({}) as (forge, _):
        assert forge.members("team") == ()


def test_files_of_our_own_commit_are_known_without_reading_them() -> None:
    path = PurePosixPath("a.txt")
    replies: Replies = {
        f"GET {P}/repository/tree": (200, []),
        f"GET {P}/repository/branches/main": (200, {"commit": {"id": HEAD}}),
        f"POST {P}/repository/commits": (201, {"id": NEW, "parent_ids": [HEAD]}),
    }
    with gitlab(replies) as (forge, script):
        forge.tree(REPO, HEAD)
        assert forge.write(REPO, [FileChange(path, b"1", None)], op()).parent == HEAD
        script.asked.clear()
        assert list(forge.tree(REPO, NEW)) == [path]
        found = forge.read(REPO, path, NEW)
        assert found is not None
        assert (found.text, script.asked) == ("1", [])
