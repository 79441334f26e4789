"""What a forge's delivery asks for, what it does not, and what is none of a forge's."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import PurePosixPath
from typing import Any

import pytest
from bareplatform import platform_of
from countedforge import CountedForge
from faultproxy import Decision, Falsehood, Fault
from ownforge import OwnForge, Watched, unanswered
from rivals import Rival

from ground.errors import InProgressError, InvalidInputError
from ground.names import RepoId
from orderkit.adapters.gitea import GiteaForge
from orderkit.core.platform.webhook_key import GITHUB_PREFIX, HEADER, hook_key, signature
from orderkit.ports.clock import SystemClock
from orderkit.ports.forge import FileChange, Operation
from orderkit.ports.pulls import PullDraft
from orderkit.ports.requesters import UnprovedError
from orderkit.web.callers import CallerAccess
from orderkit.web.metrics import Metrics
from orderkit.web.operations import Service, ServiceOptions, ServiceRequest
from orderkit.web.webhook_handlers import (
    Asked,
    PullPlans,
    read_delivery,
    read_github_delivery,
    read_gitlab_delivery,
)

REPO = RepoId("ae86", "garage-a")
OURS = {"repository": {"full_name": "ae86/garage-a"}}
PULL = {**OURS, "action": "opened", "number": 7}
PROJECT = {"project": {"path_with_namespace": "ae86/garage-a"}}
MERGE = {**PROJECT, "object_attributes": {"action": "open", "iid": 7}}


def named(full_name: str) -> RepoId | None:
    return REPO if full_name == "ae86/garage-a" else None


def read(forge: str, event: str, payload: Any) -> Asked | str:
    body = payload if isinstance(payload, bytes) else json.dumps(payload).encode()
    if forge == "gitlab":
        return read_gitlab_delivery(event, body, named)
    return (read_delivery if forge == "gitea" else read_github_delivery)(event, body)


@pytest.mark.parametrize(
    ("forge", "event", "payload", "asked"),
    [
        ("gitea", "push", {**OURS, "ref": "refs/heads/main"}, (REPO, None)),
        ("gitea", "push", {**OURS, "ref": "refs/heads/other"}, "push to 'refs/heads/other'"),
        ("gitea", "push", {"ref": "refs/tags/" + "x" * 60}, "push to 'refs/tags/xxx"),
        ("gitea", "pull_request", PULL, (REPO, 7)),
        ("gitea", "pull_request", {**PULL, "action": "labeled"}, "action 'labeled'"),
        ("gitea", "star", b"{", "event 'star'"),
        ("github", "pull_request", {**PULL, "pull_request": {"number": 8}}, (REPO, 8)),
        ("gitlab", "Push Hook", {**PROJECT, "ref": "refs/heads/main"}, (REPO, None)),
        ("gitlab", "Push Hook", {**PROJECT, "ref": "refs/heads/x"}, "push to 'refs/heads/x'"),
        ("gitlab", "Merge Request Hook", MERGE, (REPO, 7)),
        (
            "gitlab",
            "Merge Request Hook",
            {**PROJECT, "object_attributes": {"action": "unlabel", "iid": 7}},
            "action 'unlabel'",
        ),
        ("gitlab", "Merge Request Hook", {**PROJECT, "object_attributes": []}, "action 'None'"),
        ("gitlab", "Job Hook", b"{", "event 'Job Hook'"),
    ],
)
def test_a_delivery_asks_for_the_plans_that_it_changes(
    forge: str, event: str, payload: Any, asked: Asked | str
) -> None:
    found = read(forge, event, payload)

    if isinstance(asked, str):
        assert isinstance(found, str)
        assert found.startswith(asked)
        assert found.endswith(" changes no plan")
        assert len(found) < 80
    else:
        assert found == asked


LONG = b"[" + b" " * 90 + b"]"


@pytest.mark.parametrize(
    ("forge", "event", "payload", "field", "value"),
    [
        ("gitea", "push", b"{" * 90, "body", b"{" * 80),
        ("gitea", "push", b"[" * 200_000, "body", b"[" * 80),
        ("gitea", "push", LONG, "body", LONG[:80]),
        ("gitea", "push", {"ref": "refs/heads/main"}, "repository.full_name", None),
        (
            "gitea",
            "push",
            {"ref": "refs/heads/main", "repository": {"full_name": "../x"}},
            "repository.full_name",
            "../x",
        ),
        (
            "gitea",
            "push",
            {"ref": "refs/heads/main", "repository": {"full_name": 7}},
            "repository.full_name",
            7,
        ),
        ("gitea", "pull_request", {**PULL, "number": 0}, "number", 0),
        ("gitea", "pull_request", {**PULL, "number": True}, "number", True),
        ("gitea", "pull_request", {**PULL, "number": "7"}, "number", "7"),
        ("gitea", "pull_request", {**PULL, "number": 10**9}, "number", 10**9),
        ("github", "pull_request", {**PULL, "pull_request": [7]}, "number", None),
        ("gitlab", "Push Hook", {"project": []}, "project.path_with_namespace", None),
        (
            "gitlab",
            "Push Hook",
            {"project": {"path_with_namespace": "a/b"}},
            "project.path_with_namespace",
            "a/b",
        ),
        (
            "gitlab",
            "Push Hook",
            {"project": {"path_with_namespace": ["a"]}},
            "project.path_with_namespace",
            ["a"],
        ),
        (
            "gitlab",
            "Merge Request Hook",
            {**PROJECT, "object_attributes": {"action": "open"}},
            "number",
            None,
        ),
    ],
)
def test_what_no_forge_sends_is_refused_by_its_field(
    forge: str, event: str, payload: Any, field: str, value: object
) -> None:
    with pytest.raises(InvalidInputError) as refused:
        read(forge, event, payload)

    assert (refused.value.field, refused.value.value) == (field, value)


def test_the_greatest_number_of_a_pull_request_is_read() -> None:
    assert read("gitea", "pull_request", {**PULL, "number": 10**9 - 1}) == (REPO, 10**9 - 1)


# --- the desk

SECRET = "s3cret"


class Patient(SystemClock):
    """Whoever sleeps wakes at once, and is counted."""

    def __init__(self) -> None:
        self.slept = 0

    def sleep(self, seconds: float) -> None:
        assert seconds > 0
        self.slept += 1


@dataclass
class Model:
    """What the live model is asked to look at."""

    asked: list[str] = field(default_factory=list)

    def look_at(self, repo: RepoId) -> None:
        self.asked.append(f"look at {repo}")

    def reread(self) -> None:
        self.asked.append("reread")

    def reread_changes(self) -> None:
        self.asked.append("reread changes")


def served(forge: Any = None, clock: Patient | None = None) -> Service:
    nothing: Any = None
    model: Any = Model()
    platform = platform_of(None, forge=forge, clock=clock or Patient())
    options = ServiceOptions(CallerAccess(SECRET, "X-Portal"))
    return Service(platform, options, Metrics(), model, nothing)


def delivery(event: str, payload: Any, signed: str | None = None, **more: str) -> ServiceRequest:
    body = json.dumps(payload).encode()
    proof = signature(hook_key(SECRET), body) if signed is None else signed
    headers = {"x-gitea-event": event, HEADER.lower(): proof, **more}
    return ServiceRequest(None, {}, {}, {}, raw=body, headers=headers)


PUSH = {**OURS, "ref": "refs/heads/main"}


def finished() -> None:
    """Wait for the threads of desks."""
    for thread in threading.enumerate():
        if thread.name == "pull-plans":
            thread.join(20)


def about(repo: RepoId) -> ServiceRequest:
    """Return what the forge delivers after a push to a repository's main."""
    return delivery("push", {"repository": {"full_name": str(repo)}, "ref": "refs/heads/main"})


def answering(own: OwnForge, *decisions: Decision) -> GiteaForge:
    """Return a client whose first requests for pull requests get these answers."""
    return own.proxied(Watched([*decisions], "/pulls"))


ARCHIVED = Decision(Fault.REFUSE_BEFORE, Falsehood(423, b'{"message":"it is archived"}'))


@pytest.mark.parametrize(
    ("client", "is_there", "state", "tries", "slept"),
    [
        (lambda own: own.client, True, "", 1, 0),
        (lambda own: answering(own, *unanswered(2)), True, "", 3, 2),
        (lambda own: answering(own, *unanswered(3)), True, "lost", 3, 2),
        (lambda own: own.client_of(scopes=("write:user",)), True, "lost", 1, 0),
        (lambda own: own.client, False, "ignored", 1, 0),
        (lambda own: answering(own, ARCHIVED), True, "ignored", 1, 0),
        (lambda own: Rival(own.client, "pulls", lambda: 1 / 0), True, "bug", 1, 0),
    ],
    ids=["fine", "silent twice", "silent", "no right", "no repository", "refused", "a bug"],
)
def test_what_fails_for_a_delivery_is_tried_again_and_counted(
    client: Callable[[OwnForge], Any],
    state: str,
    tries: int,
    slept: int,
    forge: OwnForge,
    *,
    is_there: bool,
) -> None:
    repo = RepoId(forge.named("ae86"), "garage-a")
    if is_there:
        forge.empty(repo)
    counted, clock, desk = CountedForge(client(forge), repo), Patient(), PullPlans()
    service = served(counted, clock)

    call = about(repo)
    answer = desk.post(service, call)
    finished()

    assert (answer.status, answer.body) == (202, {"state": "queued", "repository": str(repo)})
    assert (counted.calls["pulls"], clock.slept) == (tries, slept)
    told = [line for line in service.metrics.text().splitlines() if "pull_plans_total{" in line]
    assert told == [f'orderkit_pull_plans_total{{state="{state}"}} 1'] * bool(state)
    assert desk.under_way() == (0, 0)
    assert (call.audit_fields["repository"], call.audit_fields["pull"]) == (str(repo), "all")
    assert service.model.asked == [f"look at {repo}"]  # type: ignore[attr-defined]  # ours


EDIT = Operation("edit", "user:default/eve", "Edit")


@pytest.mark.parametrize("calls", [3, 9])
def test_a_pull_request_that_cannot_be_planned_has_that_as_its_status(
    calls: int, forge: OwnForge, caplog: pytest.LogCaptureFixture
) -> None:
    """The forge is silent for three tries; then it answers, or is silent further."""
    repo = RepoId(forge.org("ae86"), "garage-a")
    head = forge.repo(repo)
    forge.repo(forge.ledger, {f"apps/{repo.owner}/garage-a.yaml": ""})
    forge.client.ensure_branch(repo, "edit", head)
    commit = forge.client.write(
        repo, [FileChange(PurePosixPath("a"), b"a", None)], EDIT, branch="edit"
    ).commit
    pull = forge.client.open_pull(repo, PullDraft("Edit", "", "edit", "main"), EDIT)
    silent = forge.proxied(Watched(unanswered(calls), f"/pulls/{pull.number}"))
    service = served(silent)
    service = replace(service, platform=replace(service.platform, ledger=forge.ledger))

    PullPlans().post(
        service,
        delivery(
            "pull_request",
            {"action": "opened", "number": pull.number, "repository": {"full_name": str(repo)}},
        ),
    )
    finished()

    told = [(each.state, each.description) for each in forge.client.statuses(repo, commit)]
    failed = "no plan: the platform failed; it is planned again with the next push"
    assert 'orderkit_pull_plans_total{state="lost"} 1' in service.metrics.text()
    assert told == ([("error", failed)] if calls == 3 else [])
    assert any("its status cannot be set" in message for message in caplog.messages) == (calls == 9)


def test_a_delivery_that_changes_no_plan_is_answered_and_forgotten() -> None:
    call = delivery("star", {})

    answer = PullPlans().post(served(), call)

    assert (answer.status, answer.body["state"]) == (200, "ignored")
    assert call.audit_fields == {"caller": "forge", "via": "the webhook's signature"}


def test_a_push_to_the_pack_has_the_model_read_again() -> None:
    service = served()
    pack = {"repository": {"full_name": "platform/pack"}, "ref": "refs/heads/main"}

    PullPlans(workers=0).post(service, delivery("push", pack))

    assert service.model.asked == ["reread"]  # type: ignore[attr-defined]  # ours


@pytest.mark.parametrize(
    ("signed", "more", "name"),
    [
        ("", {}, HEADER),
        ("00", {}, HEADER),
        ("", {"x-github-event": "push", "x-hub-signature-256": "00"}, HEADER),
        ("", {"x-gitlab-event": "Push Hook"}, "webhook-signature"),
    ],
)
def test_a_delivery_that_is_not_signed_with_our_key_is_refused(
    signed: str, more: dict[str, str], name: str
) -> None:
    with pytest.raises(UnprovedError, match=f"{name} is missing or wrong"):
        PullPlans().post(served(), delivery("push", PUSH, signed, **more))


def test_a_delivery_of_github_is_proved_by_its_own_header() -> None:
    call = delivery("push", PUSH)
    proof = f"{GITHUB_PREFIX}{call.headers[HEADER.lower()]}"
    headers = {"x-github-event": "push", "x-hub-signature-256": proof}
    of_github = ServiceRequest(None, {}, {}, {}, raw=call.raw, headers=headers)

    assert PullPlans(workers=0).post(served(), of_github).status == 202


def test_a_desk_takes_so_many_pull_requests_and_the_same_one_once() -> None:
    desk, service = PullPlans(waiting_max=2, workers=0), served()

    def post(number: int) -> str:
        call = delivery("pull_request", {**PULL, "number": number})
        return str(desk.post(service, call).body["state"])

    assert [post(1), post(2), post(1)] == ["queued", "queued", "waiting"]
    assert desk.under_way() == (2, 0)
    with pytest.raises(InProgressError, match="2 pull requests wait for their plan"):
        post(3)


WAITING = Decision(Fault.HOOK_BEFORE)


def test_a_run_that_does_not_return_is_given_up_and_the_next_one_begins(forge: OwnForge) -> None:
    repo, other = (RepoId(forge.named(team), "garage-x") for team in "ab")
    for each in (repo, other):
        forge.empty(each)
    may_answer = threading.Event()
    plan = Watched([WAITING, Decision(), WAITING], "/pulls", act=lambda: may_answer.wait(20))
    desk, service = PullPlans(workers=1, limit_s=1.0), served(forge.proxied(plan))

    desk.post(service, about(repo))
    desk.post(service, about(other))
    asked = [plan.asked.get(timeout=20) for _ in range(2)]
    for _ in range(2_000):
        figures = service.metrics.text()
        if "stuck" in figures:
            break
        threading.Event().wait(0.005)
    again = desk.post(service, about(repo)).body["state"]
    may_answer.set()
    finished()

    assert [str(each) in path for each, path in zip((repo, other), asked, strict=True)] == [
        True
    ] * 2
    assert 'orderkit_pull_plans_total{state="stuck"} 1' in figures
    assert again == "queued"
    assert desk.under_way() == (0, 0)


def test_a_push_during_a_run_is_looked_at_once_more(forge: OwnForge) -> None:
    repo, may_answer = RepoId(forge.named("ae86"), "garage-a"), threading.Event()
    forge.empty(repo)
    plan = Watched([WAITING], "/pulls", act=lambda: may_answer.wait(20))
    counted, desk = CountedForge(forge.proxied(plan), repo), PullPlans(workers=1)
    service = served(counted)

    def post() -> str:
        return str(desk.post(service, about(repo)).body["state"])

    states = [post()]
    while desk.under_way() != (0, 1):
        threading.Event().wait(0.005)
    states += [post(), post()]
    may_answer.set()
    finished()

    assert states == ["queued", "waiting", "waiting"]
    assert counted.calls["pulls"] == 2
