"""
Webhooks over HTTP, as Gitea 1.26.0 keeps and sends them (observed).

The CRUD cases share one repository. Each delivery case has a path of its own at one listener,
and looks for what it caused: a Gitea may still tell what happened before the webhook was made.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest
from hooklistener import Arrived, Listener, listening

from ground.names import RepoId

if TYPE_CHECKING:
    from tests.conformance.forge.conftest import Workshop

NOBODY = 999_999
NOTHING = "0" * 40
SECRET = "between us"
ALL_PULL = {
    "pull_request",
    "pull_request_assign",
    "pull_request_comment",
    "pull_request_label",
    "pull_request_milestone",
    "pull_request_review",
    "pull_request_review_request",
    "pull_request_sync",
}


@pytest.fixture(scope="module")
def repo(shop: Workshop) -> RepoId:
    return shop.seeded_repo()


@pytest.fixture(scope="module")
def listener() -> Iterator[Listener]:
    with listening() as made:
        yield made


def body(url: str = "http://127.0.0.1:9/x", **more: Any) -> dict[str, Any]:
    config = {"url": url, "content_type": "json"} | more.pop("config", {})
    return {"type": "gitea", "config": config, **more}


def new_hook(shop: Workshop, place: str, url: str, *events: str, **more: Any) -> dict[str, Any]:
    """Create an active webhook."""
    wanted = body(url, active=True, events=list(events), **more)
    made = shop.api("POST", f"{place}/hooks", wanted)
    assert made.status_code == 201, made.text
    found: dict[str, Any] = made.json()
    return found


def path() -> str:
    return f"/{secrets.token_hex(4)}"


# Kept


def test_h01_a_webhook_is_inactive_and_wants_pushes_unless_said(
    shop: Workshop, repo: RepoId
) -> None:
    made = shop.api("POST", f"/repos/{repo}/hooks", body())

    assert made.status_code == 201
    assert (made.json()["active"], made.json()["events"]) == (False, ["push"])
    assert made.json()["config"] == {"url": "http://127.0.0.1:9/x", "content_type": "json"}
    assert (made.json()["type"], made.json()["branch_filter"]) == ("gitea", "")


@pytest.mark.parametrize(
    ("wanted", "reason"),
    [
        ({"config": {"url": "http://x/", "content_type": "json"}}, "no type"),
        ({"type": "gitea"}, "no config"),
        (body() | {"type": "nope"}, "an unknown type"),
        ({"type": "gitea", "config": {"url": "http://x/"}}, "no content type"),
        ({"type": "gitea", "config": {"content_type": "json"}}, "no address"),
        (body(config={"content_type": "xml"}), "an unknown content type"),
        (body("nope"), "no address"),
        (body("ftp://127.0.0.1/x"), "another scheme"),
        (body(branch_filter="[a-"), "a broken glob"),
    ],
)
def test_h02_what_is_no_webhook_is_422(
    shop: Workshop, repo: RepoId, wanted: Any, reason: str
) -> None:
    assert shop.api("POST", f"/repos/{repo}/hooks", wanted).status_code == 422, reason


def test_h03_a_webhook_is_listed_and_removed(shop: Workshop) -> None:
    repo = shop.empty_repo()
    hooks = f"/repos/{repo}/hooks"
    made = [shop.api("POST", hooks, body()).json()["id"] for _ in range(2)]

    listed = shop.api("GET", hooks)
    page = shop.api("GET", f"{hooks}?limit=1&page=2")

    assert [each["id"] for each in listed.json()] == made
    assert [each["id"] for each in page.json()] == made[1:]
    assert listed.headers["X-Total-Count"] == "2"
    assert shop.api("DELETE", f"{hooks}/{made[0]}").status_code == 204
    assert shop.api("DELETE", f"{hooks}/{made[0]}").status_code == 404
    assert [each["id"] for each in shop.api("GET", hooks).json()] == made[1:]


def test_h04_a_change_without_events_falls_back_to_push(shop: Workshop, repo: RepoId) -> None:
    made = new_hook(
        shop,
        f"/repos/{repo}",
        "http://127.0.0.1:9/x",
        "issue_comment",
    )
    one = f"/repos/{repo}/hooks/{made['id']}"

    changed = shop.api("PATCH", one, {"active": False}).json()

    assert (made["events"], changed["events"]) == (["issue_comment"], ["push"])
    assert changed["active"] is False
    assert changed["config"]["url"] == "http://127.0.0.1:9/x"


def test_h05_address_content_type_and_activity_are_changed(shop: Workshop, repo: RepoId) -> None:
    one = f"/repos/{repo}/hooks/{shop.api('POST', f'/repos/{repo}/hooks', body()).json()['id']}"
    config = {"url": "http://127.0.0.1:9/other", "content_type": "json"}

    changed = shop.api(
        "PATCH", one, {"config": config, "active": True, "events": ["issue_comment"]}
    )

    assert changed.status_code == 200
    assert changed.json()["config"] == config
    assert (changed.json()["active"], changed.json()["events"]) == (True, ["issue_comment"])
    assert shop.api("PATCH", one, {"config": {"url": "nope"}}).status_code == 422
    assert shop.api("PATCH", f"/repos/{repo}/hooks/{NOBODY}", {}).status_code == 404


def test_h06_pull_request_switches_on_all_its_parts(shop: Workshop, repo: RepoId) -> None:
    made = new_hook(shop, f"/repos/{repo}", "http://127.0.0.1:9/x", "pull_request")
    only = new_hook(shop, f"/repos/{repo}", "http://127.0.0.1:9/x", "pull_request_only", "fly")

    assert set(made["events"]) >= {"pull_request", "pull_request_sync", "pull_request_comment"}
    assert only["events"] == ["pull_request"]


def test_h07_webhooks_are_for_admins_of_the_repository(shop: Workshop, repo: RepoId) -> None:
    hooks = f"/repos/{repo}/hooks"

    assert shop.api("GET", hooks, auth=shop.outsider).status_code == 403
    assert shop.api("POST", hooks, body(), auth=shop.outsider).status_code == 403
    assert shop.api("GET", hooks, auth=None).status_code == 401


def test_h08_webhooks_of_an_organisation_are_for_its_owners(shop: Workshop) -> None:
    hooks = f"/orgs/{shop.org()}/hooks"

    made = shop.api("POST", hooks, body())

    assert made.status_code == 201
    assert [each["id"] for each in shop.api("GET", hooks).json()] == [made.json()["id"]]
    assert shop.api("GET", hooks, auth=shop.outsider).status_code == 403
    assert shop.api("GET", hooks, auth=None).status_code == 401
    one = f"{hooks}/{made.json()['id']}"
    assert shop.api("PATCH", one, {"active": True}).json()["active"] is True
    assert shop.api("DELETE", one).status_code == 204
    assert shop.api("GET", one).status_code == 404
    assert shop.api("GET", "/orgs/no-such-org-1/hooks").status_code == 404


@pytest.mark.parametrize(
    ("scope", "place", "status"),
    [
        ("read:repository", "repos", 200),
        ("read:organization", "repos", 403),
        ("read:repository", "orgs", 403),
        ("read:organization", "orgs", 200),
    ],
)
def test_h09_scopes(shop: Workshop, repo: RepoId, scope: str, place: str, status: int) -> None:
    name = str(repo) if place == "repos" else repo.owner

    answer = shop.api("GET", f"/{place}/{name}/hooks", auth=shop.token(scope))

    assert answer.status_code == status


# Sent


def test_h20_a_push_tells_what_changed(shop: Workshop, listener: Listener) -> None:
    repo, at = shop.seeded_repo(), path()
    before = shop.forge.head(repo)
    new_hook(shop, f"/repos/{repo}", listener.url + at, "push")

    written = shop.forge.write(repo, [shop.new("n/1", "1"), shop.new("n/2", "2")], shop.op())

    (arrived,) = listener.wait(at, lambda each: each.data["after"] == written.commit)
    data = arrived.data
    assert (data["ref"], data["before"], data["after"]) == (
        "refs/heads/main",
        before,
        written.commit,
    )
    assert data["repository"]["full_name"] == str(repo)
    assert data["repository"]["clone_url"] == f"{shop.target.url}/{repo}.git"
    assert data["pusher"]["login"] == data["sender"]["login"] == shop.target.user
    assert data["total_commits"] == 1
    assert data["head_commit"]["id"] == data["commits"][0]["id"] == written.commit
    assert data["commits"][0]["added"] == ["n/1", "n/2"]
    assert (data["commits"][0]["removed"], data["commits"][0]["modified"]) == ([], [])


def test_h21_the_payload_is_signed_over_its_bytes(
    shop: Workshop, repo: RepoId, listener: Listener
) -> None:
    at = path()
    new_hook(
        shop,
        f"/repos/{repo}",
        listener.url + at,
        "push",
        config={"secret": SECRET},
    )
    shop.forge.write(repo, [shop.new(secrets.token_hex(4), "ä")], shop.op())

    (arrived,) = listener.wait(at)

    assert_headers(arrived, "push", "push", "repository")
    assert_signed(arrived, arrived.body)
    assert arrived.headers["Content-Type"] == "application/json"


def assert_headers(arrived: Arrived, event: str, event_type: str, target: str) -> None:
    assert arrived.headers["X-Gitea-Event"] == event
    assert arrived.headers["X-Gitea-Event-Type"] == event_type
    assert len(arrived.headers["X-Gitea-Delivery"]) == 36
    assert arrived.headers["X-Gitea-Hook-Installation-Target-Type"] == target


def assert_signed(arrived: Arrived, text: bytes) -> None:
    sha256 = hmac.new(SECRET.encode(), text, hashlib.sha256).hexdigest()
    assert arrived.headers["X-Gitea-Signature"] == sha256


def test_h23_without_a_secret_the_signatures_are_empty(
    shop: Workshop, repo: RepoId, listener: Listener
) -> None:
    at = path()
    new_hook(shop, f"/repos/{repo}", listener.url + at, "push")
    shop.forge.write(repo, [shop.new(secrets.token_hex(4), "1")], shop.op())

    (arrived,) = listener.wait(at)

    assert arrived.headers["X-Gitea-Signature"] == ""


def test_h25_a_git_push_tells_its_five_newest_commits(shop: Workshop, listener: Listener) -> None:
    repo, at = shop.seeded_repo(), path()
    copy = shop.clone(repo)
    new_hook(shop, f"/repos/{repo}", listener.url + at, "push")
    for number in range(7):
        (copy / f"f{number}").write_text(str(number))
        shop.git("add", ".", cwd=copy)
        shop.git("commit", "-qm", f"c{number}", cwd=copy)
    (copy / "f1").unlink()
    (copy / "f2").write_text("changed")
    shop.git("commit", "-qam", "mixed", cwd=copy)

    assert shop.git("push", "-q", "origin", "HEAD:main", cwd=copy).returncode == 0

    (main,) = listener.wait(at, lambda each: each.data.get("total_commits") == 8)
    assert main.data["ref"] == "refs/heads/main"
    messages = [each["message"].strip() for each in main.data["commits"]]
    assert messages == ["mixed", "c6", "c5", "c4", "c3"]
    newest = main.data["commits"][0]
    assert (newest["added"], newest["removed"], newest["modified"]) == ([], ["f1"], ["f2"])


def test_h27_an_organisation_hears_of_all_its_repositories(
    shop: Workshop, listener: Listener
) -> None:
    org, at = shop.org(), path()
    new_hook(shop, f"/orgs/{org}", listener.url + at, "push")

    shop.api("POST", f"/orgs/{org}/repos", {"name": "one"})
    shop.api("POST", f"/repos/{org}/one/contents/n", {"content": ""})
    (pushed,) = listener.wait(at)

    assert_headers(pushed, "push", "push", "organization")
    assert pushed.data["before"] == NOTHING


def test_h29_one_attempt_is_made_and_the_write_does_not_wait_for_it(shop: Workshop) -> None:
    repo, at = shop.seeded_repo(), path()
    with listening() as broken:
        broken.answer = 500
        new_hook(shop, f"/repos/{repo}", broken.url + at, "push")

        commits = []
        for name in ("n", "m"):
            commits.append(shop.forge.write(repo, [shop.new(name, "1")], shop.op()).commit)
            broken.wait(at, lambda each: each.data["after"] == commits[-1])

    afters = [each.data["after"] for each in broken.at(at)]
    assert [each for each in afters if each in commits] == commits


def test_h30_comments_on_an_issue_are_told(
    shop: Workshop, repo: RepoId, listener: Listener
) -> None:
    at = path()
    new_hook(shop, f"/repos/{repo}", listener.url + at, "issue_comment")

    issue = shop.api("POST", f"/repos/{repo}/issues", {"title": "T"}).json()["number"]
    shop.api("POST", f"/repos/{repo}/issues/{issue}/comments", {"body": "C"})

    (created,) = listener.wait(at, lambda each: each.data["action"] == "created")
    assert_headers(created, "issue_comment", "issue_comment", "repository")
    assert (created.data["comment"]["body"], created.data["is_pull"]) == ("C", False)


def test_h31_a_pull_request_is_told_from_opening_to_merge(
    shop: Workshop, listener: Listener
) -> None:
    repo, at = shop.seeded_repo(), path()
    events = ("pull_request", "issue_comment")
    new_hook(shop, f"/repos/{repo}", listener.url + at, *events)
    shop.api("POST", f"/repos/{repo}/branches", {"new_branch_name": "feature"})
    shop.api("POST", f"/repos/{repo}/contents/n", {"content": "", "branch": "feature"})
    draft = {"title": "T", "head": "feature", "base": "main"}

    number = shop.api("POST", f"/repos/{repo}/pulls", draft).json()["number"]
    pull, issue = (f"/repos/{repo}/{kind}/{number}" for kind in ("pulls", "issues"))
    seen = {"opened": told(listener, at, "opened")}
    shop.api("POST", f"/repos/{repo}/contents/m", {"content": "", "branch": "feature"})
    seen["synchronized"] = told(listener, at, "synchronized")
    shop.api("POST", f"{issue}/comments", {"body": "C"})
    seen["created"] = told(listener, at, "created")
    shop.api("PATCH", pull, {"title": "T2"})
    seen["edited"] = told(listener, at, "edited")
    shop.api("PATCH", pull, {"state": "closed"})
    seen["closed"] = told(listener, at, "closed")
    shop.api("PATCH", pull, {"state": "open"})
    seen["reopened"] = told(listener, at, "reopened")

    kinds = {each: arrived.headers["X-Gitea-Event-Type"] for each, arrived in seen.items()}
    assert kinds == {
        "opened": "pull_request",
        "synchronized": "pull_request_sync",
        "created": "pull_request_comment",
        "edited": "pull_request",
        "closed": "pull_request",
        "reopened": "pull_request",
    }
    assert {each.event for each in seen.values()} == {"pull_request", "issue_comment"}
    opened, comment = seen["opened"].data, seen["created"].data
    assert (opened["number"], opened["pull_request"]["head"]["ref"]) == (number, "feature")
    assert opened["repository"]["full_name"] == str(repo)
    assert (comment["is_pull"], comment["comment"]["body"]) == (True, "C")
    assert comment["pull_request"]["number"] == comment["issue"]["number"] == number
    assert seen["edited"].data["pull_request"]["title"] == "T2"


def told(listener: Listener, at: str, action: str) -> Arrived:
    return listener.wait(at, lambda each: each.data["action"] == action)[-1]


def test_h32_a_merge_is_told_as_closed_and_merged(shop: Workshop, listener: Listener) -> None:
    repo, at = shop.seeded_repo(), path()
    shop.api("POST", f"/repos/{repo}/branches", {"new_branch_name": "feature"})
    shop.api("POST", f"/repos/{repo}/contents/n", {"content": "", "branch": "feature"})
    draft = {"title": "T", "head": "feature", "base": "main"}
    number = shop.api("POST", f"/repos/{repo}/pulls", draft).json()["number"]
    new_hook(shop, f"/repos/{repo}", listener.url + at, "pull_request", "push")
    merge = f"/repos/{repo}/pulls/{number}/merge"

    shop.eventually(lambda: shop.api("POST", merge, {"Do": "squash"}).status_code == 200)

    closed = told_of(listener, at, "pull_request").data
    merged = closed["pull_request"]["merge_commit_sha"]
    # the push that seeded the repository may be told late, to this hook too
    (pushed,) = listener.wait(at, lambda each: each.data.get("after") == merged)
    assert (closed["action"], closed["pull_request"]["merged"]) == ("closed", True)
    assert (pushed.event, pushed.data["ref"]) == ("push", "refs/heads/main")
    assert merged == shop.forge.head(repo)
    assert closed["sender"]["login"] == shop.target.user


def told_of(listener: Listener, at: str, event: str) -> Arrived:
    return listener.wait(
        at, lambda each: each.event == event and each.data.get("action") == "closed"
    )[-1]
