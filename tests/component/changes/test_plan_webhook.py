"""The forge tells the service of pull requests, and whoever else does is not believed."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
import requests
from bays import Bay, new_bay
from commands import Command
from faultproxy import Decision, Fault, open_proxy
from faultproxy import Plan as Faults
from pullhand import Hand

from ground.errors import InProgressError
from ground.names import RepoId
from orderkit.adapters.gitea import GiteaForge
from orderkit.cli.connecting import SECRET_HEADER, token
from orderkit.core.platform.webhook_key import HEADER, PATH, hook_key, signature
from orderkit.flows.live.order_model import OrderModel
from orderkit.flows.plan.pull_requests import CONTEXT
from orderkit.flows.platform import Platform
from orderkit.flows.repeating import until
from orderkit.ports.forge import CommitStatus, PullRequest
from orderkit.web.callers import CallerAccess
from orderkit.web.event_stream import OrderStreams
from orderkit.web.metrics import Metrics
from orderkit.web.operations import Service, ServiceOptions, ServiceRequest
from orderkit.web.webhook_handlers import TEAM_MAX, PullPlans
from orderkit_standins.serve_platform import Running

SECRET = "secret-of-a-test"


@pytest.fixture(scope="module")
def hand(site: Running) -> Hand:
    """An order that the forge tells nobody of."""
    return Hand(site.settings, new_bay(site.platform))


@pytest.fixture
def hooked(site: Running, bay: Bay, orderkit: Command) -> Hand:
    """An order whose pull requests the forge tells the platform's own service."""
    done = orderkit("platform", "webhook", "--repository", str(bay.repo), "--json")
    assert done.code == 0, done.err
    assert done.json["targets"] == [str(bay.repo)]
    return Hand(site.settings, bay)


def payload(repo: str, number: Any, action: str = "opened", **more: Any) -> bytes:
    found = {"action": action, "number": number, "repository": {"full_name": repo}, **more}
    return json.dumps(found).encode()


def deliver(
    site: Running, data: bytes, *, signed: str | None = None, event: str = "pull_request"
) -> requests.Response:
    key = hook_key(token(site.settings.service))
    given = signature(key, data) if signed is None else signed
    headers = {HEADER: given, "X-Gitea-Event": event, "Content-Type": "application/json"}
    return requests.post(f"{site.settings.service.url}{PATH}", data, headers=headers, timeout=90)


def stated(hand: Hand, pull: PullRequest) -> str:
    """Wait for the status of a pull request's head."""
    clock = hand.bay.platform.clock
    found = until(
        clock,
        lambda: hand.status(pull.head_commit),
        lambda seen: seen is not None,
        timeout_s=120,
        goal="the status",
    )
    assert found is not None
    return found.state


def test_a_pull_request_on_the_forge_is_planned_without_being_asked(
    site: Running, hooked: Hand
) -> None:
    pull = hooked.edits("stage1", "stage2")
    assert stated(hooked, pull) == "success"

    hooked.bay.edit("stage2", "stage9", branch=pull.head)
    later = hooked.bay.platform.forge.pull(hooked.bay.repo, pull.number)
    assert later is not None
    assert stated(hooked, later) == "failure"
    (comment,) = hooked.comments(pull)
    assert later.head_commit[:7] in comment["body"]
    headers = {SECRET_HEADER: token(site.settings.service)}
    until(
        hooked.bay.platform.clock,
        lambda: (
            requests.get(f"{site.settings.service.url}/metrics", headers=headers, timeout=90).text
        ),
        lambda figures: "orderkit_pull_plans_total{state=" in figures,
        timeout_s=120,
        goal="the figures",
    )


def test_when_main_moves_on_what_is_open_is_planned_anew(site: Running, hooked: Hand) -> None:
    pulls = [hooked.edits("stage1", new) for new in ("stage2", "stage3")]
    for pull in pulls:
        assert stated(hooked, pull) == "success"

    hooked.bay.edit("stage1", "stage2")

    until(
        site.platform.clock,
        lambda: hooked.status(pulls[1].head_commit),
        lambda seen: seen is not None and seen.state == "failure",
        timeout_s=120,
        goal="the plan of what is now in conflict with main",
    )
    until(
        site.platform.clock,
        lambda: hooked.comments(pulls[0])[0]["body"],
        lambda text: "`stage1`" not in text,
        timeout_s=120,
        goal="the plan of what main has already",
    )
    assert stated(hooked, pulls[0]) == "success"


def test_a_push_to_main_plans_what_is_open_into_it(site: Running) -> None:
    hand = Hand(site.settings, new_bay(site.platform))
    one, other = (hand.edits("stage1", "stage2") for _ in range(2))
    data = json.dumps(
        {"ref": "refs/heads/main", "repository": {"full_name": str(hand.bay.repo)}}
    ).encode()

    answer = deliver(site, data, event="push")

    assert answer.status_code == 202
    assert answer.json() == {"state": "queued", "repository": str(hand.bay.repo)}
    for pull in (one, other):
        assert stated(hand, pull) == "success"


def test_what_the_service_was_not_told_of_is_planned_when_asked(
    site: Running, orderkit: Command
) -> None:
    """What has a plan is left alone, as is what goes into another branch, or another order's."""
    hand, other = (Hand(site.settings, new_bay(site.platform)) for _ in range(2))
    good, bad = hand.edits("stage1", "stage2"), hand.edits("stage1", "stage9")
    elsewhere = hand.edits("stage1", "stage3", base=good.head)
    stranger = other.edits("stage1", "stage2")
    where = ["platform", "webhook", "--missed", "--repository", str(hand.bay.repo)]
    hand.bay.platform.forge.set_status(
        hand.bay.repo, bad.head_commit, CommitStatus(CONTEXT, "error", "no plan: lost")
    )

    done = orderkit(*where, "--url", "http://127.0.0.1:9", "--json")

    assert done.code == 0, done.err
    places = [f"{hand.bay.repo}#{pull.number}" for pull in (good, bad)]
    told = {each["pull"]: each["state"] for each in done.json["planned"]}
    assert told == dict(zip(places, ("success", "failure"), strict=True))
    assert stated(hand, good) == "success"
    for where_else, pull in ((hand, elsewhere), (other, stranger)):
        assert where_else.status(pull.head_commit) is None
    again = orderkit(*where, "--url", "http://127.0.0.1:9")
    assert again.out.splitlines()[1:] == []


def test_every_team_is_registered_if_none_is_named(orderkit: Command, hand: Hand) -> None:
    done = orderkit("platform", "webhook", "--url", "http://127.0.0.1:9")

    assert done.code == 0, done.err
    assert (
        f"{hand.bay.repo.owner}: pull requests are reported to http://127.0.0.1:9{PATH}" in done.out
    )
    assert orderkit("platform", "webhook", "--repository", "nonsense").code == 2
    assert orderkit("platform", "webhook", "--url", "ftp://x").code == 2
    assert orderkit("platform", "webhook", "--team", "no-such-team").code == 1


@pytest.mark.parametrize("signed", ["", "0" * 64, "ä", "sha256=" + "0" * 64])
def test_a_wrong_signature_is_refused(site: Running, hand: Hand, signed: str) -> None:
    pull = hand.edits("stage1", "stage3")
    data = payload(str(hand.bay.repo), pull.number)
    other = signature(hook_key("another secret"), data)

    for given in (signed, other, signature(token(site.settings.service), data)):
        answer = deliver(site, data, signed=given.encode().decode("latin-1"))
        assert answer.status_code == 401, answer.text
        assert HEADER in answer.json()["error"]["message"]


@pytest.mark.parametrize(
    ("data", "told"),
    [
        (b"", "is not JSON"),
        (b"[]", "is not an object"),
        (b"[" * 100_000, "is not JSON"),
        (payload("no slash", 1), "full_name"),
        (payload("a/../b", 1), "full_name"),
        (payload("a/b", "1"), "number"),
        (payload("a/b", number=True), "number"),
        (payload("a/b", -1), "number"),
        (payload("a/b", 10**30), "number"),
        (json.dumps({"action": "opened", "repository": "a/b", "number": 1}).encode(), "full_name"),
        (b" " * 2_000_001, "too many"),
    ],
    ids=lambda value: str(value)[:24],
)
def test_a_signed_payload_of_nonsense_is_refused(site: Running, data: bytes, told: str) -> None:
    answer = deliver(site, data)

    assert answer.status_code == 400, answer.text
    assert told in answer.text


@pytest.mark.parametrize(
    ("event", "told"),
    [
        ("push", payload("a/b", 1, ref="refs/heads/aside")),
        ("push", payload("a/b", 1, ref="refs/tags/main")),
        ("push", payload("a/b", 1, ref=["refs/heads/main"])),
        ("push", payload("a/b", 1)),
        ("issue_comment", payload("a/b", 1, "created")),
        ("", payload("a/b", 1)),
        ("pull_request", payload("a/b", 1, "labeled")),
    ],
    ids=str,
)
def test_other_events_change_nothing(site: Running, event: str, told: bytes) -> None:
    answer = deliver(site, told, event=event)

    assert (answer.status_code, answer.json()["state"]) == (200, "ignored")


def test_a_payload_is_believed_nothing_but_its_number(site: Running, hand: Hand) -> None:
    """It claims another head, another base and a merge; what counts is what the forge says."""
    pull = hand.edits("stage1", "stage2")
    lies = {"head": {"sha": "0" * 40}, "base": {"ref": "aside"}, "merged": True, "state": "closed"}

    answer = deliver(site, payload(str(hand.bay.repo), pull.number, pull_request=lies))

    assert answer.status_code == 202
    assert stated(hand, pull) == "success"


def test_repositories_that_are_no_orders_get_nothing(site: Running, hand: Hand) -> None:
    last = hand.edits("stage1", "stage2")
    for repo in (str(site.platform.ledger), "elsewhere/garage-x", f"elsewhere/{hand.bay.order}"):
        assert deliver(site, payload(repo, 1)).status_code == 202
    deliver(site, payload(str(hand.bay.repo), last.number))

    assert stated(hand, last) == "success"
    head = site.platform.forge.head(site.platform.ledger)
    assert head is not None
    assert not site.platform.forge.statuses(site.platform.ledger, head)


@contextmanager
def patient(site: Running, plan: Faults) -> Iterator[Service]:
    """A service whose forge is behind a proxy, and waits for its answers."""
    with (
        open_proxy(site.settings.forge.url) as proxy,
        GiteaForge(
            proxy.url,
            token=token(site.settings.forge),
            read_timeout_s=120,
            signatures=site.platform.signatures,
        ) as forge,
    ):
        proxy.plan = plan
        options = ServiceOptions(access=CallerAccess(SECRET, SECRET_HEADER))
        platform = replace(site.platform, forge=forge)
        model = OrderModel(platform)
        yield Service(platform, options, Metrics(), model, OrderStreams(model.log, options.streams))


def tell(desk: PullPlans, service: Service, hand: Hand, pull: PullRequest) -> str:
    """Deliver an event to a desk past HTTP; return the state that is answered."""
    return tell_of(desk, service, str(hand.bay.repo), pull.number)


def tell_of(desk: PullPlans, service: Service, repo: str, number: int) -> str:
    data = payload(repo, number, "synchronized")
    headers = {
        HEADER.lower(): signature(hook_key(SECRET), data),
        "x-gitea-event": "pull_request",
    }
    answer = desk.post(service, ServiceRequest(None, {}, {}, {}, raw=data, headers=headers))
    return str(answer.body["state"])


def _push(desk: PullPlans, service: Service, repo: RepoId) -> None:
    """Deliver a push to main to a desk past HTTP."""
    data = json.dumps({"ref": "refs/heads/main", "repository": {"full_name": str(repo)}}).encode()
    headers = {HEADER.lower(): signature(hook_key(SECRET), data), "x-gitea-event": "push"}
    answer = desk.post(service, ServiceRequest(None, {}, {}, {}, raw=data, headers=headers))
    assert answer.status == 202, answer.body


@dataclass
class Gated(Faults):
    """Lets nothing pass until it is opened."""

    gate: threading.Event = field(default_factory=threading.Event)
    seen: list[str] = field(default_factory=list)

    def decide(self, method: str, path: str) -> Decision:
        self.seen.append(f"{method} {path}")
        self.gate.wait(100)
        return Decision()


def test_the_queue_is_bounded_and_holds_each_pull_request_once(site: Running, hand: Hand) -> None:
    pulls = [hand.edits("stage1", "stage2") for _ in range(4)]
    gated, desk = Gated(), PullPlans(waiting_max=2, workers=1)
    with patient(site, gated) as service:
        first = tell(desk, service, hand, pulls[0])
        _until(site.platform, desk, (0, 1))
        later = (pulls[0], pulls[0], pulls[1], pulls[1], pulls[2])
        states = [tell(desk, service, hand, pull) for pull in later]
        with pytest.raises(InProgressError, match="wait for their plan"):
            tell(desk, service, hand, pulls[3])
        gated.gate.set()

        assert (first, states) == ("queued", ["waiting", "waiting", "queued", "waiting", "queued"])
        for pull in pulls[:3]:
            assert stated(hand, pull) == "success"
        assert hand.status(pulls[3].head_commit) is None
        _until(site.platform, desk, (0, 0))


def test_a_storm_of_pushes_costs_what_two_do(site: Running) -> None:
    """Five hundred deliveries while the first is looked at: one more look sees all of them."""
    repos = [new_bay(site.platform).repo for _ in range(2)]
    alone = _requests_of(site, repos[:1], deliveries=1)
    alone = _requests_of(site, repos[:1], deliveries=1)  # the first one sets the commit's status

    assert alone > 0
    assert _requests_of(site, repos[:1], deliveries=500) <= 2 * alone
    assert _requests_of(site, repos, deliveries=500) <= 4 * alone


def _requests_of(site: Running, repos: Sequence[RepoId], *, deliveries: int) -> int:
    """Return how many requests to the forge so many pushes cost, which come before any ends."""
    gated, desk = Gated(), PullPlans(workers=len(repos))
    with patient(site, gated) as service:
        for number in range(deliveries):
            _push(desk, service, repos[number % len(repos)])
        gated.gate.set()
        _until(site.platform, desk, (0, 0))
        return len(gated.seen)


def test_teams_take_turns(site: Running, caplog: pytest.LogCaptureFixture) -> None:
    """A member who opens more pull requests than can be planned keeps other teams not waiting."""
    caplog.set_level("INFO", logger="orderkit.web.webhook_handlers")
    gated, desk = Gated(), PullPlans(workers=1)
    with patient(site, gated) as service:
        tell_of(desk, service, "crowd/one", 1)
        _until(site.platform, desk, (0, 1))
        for number in range(2, TEAM_MAX + 2):
            assert tell_of(desk, service, "crowd/one", number) == "queued"
        with pytest.raises(InProgressError, match=f"{TEAM_MAX} pull requests wait"):
            tell_of(desk, service, "crowd/two", 1)
        assert tell_of(desk, service, "calm/one", 1) == "queued"
        gated.gate.set()
        _until(site.platform, desk, (0, 0))

    done = [message.split(" ")[0] for message in caplog.messages if " is left out" in message]
    assert done[:3] == ["crowd/one#1", "calm/one#1", "crowd/one#2"]


@dataclass
class Holding(Faults):
    """Holds the first look at what a branch has, and lets everything else pass."""

    gate: threading.Event = field(default_factory=threading.Event)
    held: bool = False

    def decide(self, method: str, path: str) -> Decision:  # noqa: ARG002 - as the plan has it
        if "/compare/" in path and not self.held:
            self.held = True
            return Decision(Fault.HOOK_BEFORE)
        return Decision()

    def hook(self) -> None:
        self.gate.wait(100)


def test_one_that_never_ends_keeps_nobody_else_waiting(site: Running) -> None:
    hand = Hand(site.settings, new_bay(site.platform))
    stuck, other = (hand.edits("stage1", "stage2") for _ in range(2))
    holding, desk = Holding(), PullPlans(workers=1, limit_s=120.0)
    with patient(site, holding) as service:
        for pull in (stuck, other):
            tell(desk, service, hand, pull)
        until(
            site.platform.clock, lambda: holding.held, bool,
            timeout_s=100, goal="the first being held",
        )  # fmt: skip
        time_is_over(desk)

        assert stated(hand, stuck) == "error"
        assert stated(hand, other) == "success"
        assert 'orderkit_pull_plans_total{state="stuck"} 1' in service.metrics.text()
        holding.gate.set()
        until(
            site.platform.clock,
            lambda: hand.status(stuck.head_commit),
            lambda seen: seen is not None and seen.state == "success",
            timeout_s=120,
            goal="the late plan",
        )
        _until(site.platform, desk, (0, 0))


def time_is_over(desk: PullPlans) -> None:
    """Let the limit of the one that is being planned be over, whatever the clock says."""
    (limit,) = (
        each for each in threading.enumerate()
        if isinstance(each, threading.Timer) and each.function == desk._give_up  # noqa: SLF001
    )  # fmt: skip
    limit.function(*limit.args)


def _until(platform: Platform, desk: PullPlans, counts: tuple[int, int]) -> None:
    until(
        platform.clock, desk.under_way, lambda seen: seen == counts, timeout_s=60, goal="the desk"
    )
