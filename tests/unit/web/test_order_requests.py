"""Which order a request is about, who may know of it, and when an agent has to ask a person."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from ownforge import OwnForge, SharedForge

from ground.errors import InvalidInputError, NotFoundError, OrderkitError, RefusedError
from ground.names import OrderId, RepoId, TeamName
from orderkit.core.order.end_record import EndRecord
from orderkit.core.order.order_view import OrderQuery
from orderkit.core.order.team_file import TeamFile, path_of
from orderkit.core.platform.service_access import RIGHTS, Right
from orderkit.flows.platform import Platform
from orderkit.ports.requesters import Requester, UnprovedError
from orderkit.web.approval_handlers import post_approval
from orderkit.web.callers import Caller, CallerAccess
from orderkit.web.change_handlers import EndedOrderError, get_end_form, post_merge
from orderkit.web.end_handlers import EndRuns, find_entry
from orderkit.web.metrics import Metrics
from orderkit.web.operations import Service, ServiceOptions, ServiceRequest
from orderkit.web.order_handlers import entry_for, must_propose, order_query, post_task
from orderkit.web.view_handlers import get_statement, get_team

ACCESS = CallerAccess("s", "X")


def record(order: str, **parts: Any) -> str:
    whole: dict[str, Any] = {
        "order": OrderId(order),
        "requester": "user:default/eve",
        "kit": "garage",
        "repository": "archive",
        "step": "closing",
        "ended_at": "2026-11-23T05:51:24Z",
        "must_be_gone": (),
    }
    return EndRecord(**{**whole, **parts}).to_yaml()


FILES = {
    "teams/toyota.yaml": "",
    "teams/other.yaml": "",
    "apps/toyota/garage-lives.yaml": "",
    **{
        f"{place}/garage-{name}{file}": text
        for name in ("ends", "hidden", "lost")
        for place, file, text in (
            ("apps/toyota", ".yaml", ""),
            ("data/toyota", "/end.yaml", record(f"garage-{name}", ended_at="", step="removing")),
        )
    },
    "data/toyota/garage-gone/tombstone-20261122T055124.yaml": record("garage-gone"),
    "data/toyota/garage-gone/tombstone-20261123T055124.yaml": record(
        "garage-gone", repository="delete", survives=("a bucket",)
    ),
    "data/toyota/garage-kept/tombstone-20261123T055124.yaml": record("garage-kept"),
}


PACK = """\
apiVersion: orderkit.dev/v1alpha1
kind: Pack
metadata: {name: ours}
spec: {kits: []}
"""


@dataclass
class Model:
    """How often somebody asked for the ledger to be read again."""

    rereads: list[str] = field(default_factory=list)

    def reread(self) -> None:
        self.rereads.append("reread")


@pytest.fixture(scope="module")
def whole(one_forge: SharedForge) -> Iterator[Platform]:
    """A platform whose ledger has `FILES`; of its orders' repositories one is lost, one private."""
    with ExitStack() as undo:
        own = OwnForge(one_forge, undo)
        own.repo(own.ledger, FILES)
        for name in ("lives", "ends", "hidden", "gone", "kept"):
            repo = RepoId("toyota", f"garage-{name}")
            own.client.ensure_org(repo.owner)
            own.client.ensure_repo(repo, description="", private=name == "hidden")
        yield own.platform()


Serving = Callable[..., Service]


@pytest.fixture
def service(whole: Platform, forge: OwnForge) -> Serving:
    """Return a service, of another ledger if it is to have more files."""

    def serve(files: Mapping[str, str] | None = None, **options: Any) -> Service:
        streams: Any = None
        model: Any = Model()
        if files:
            forge.repo(forge.ledger, {**FILES, **files})
        platform = forge.platform() if files else whole
        return Service(platform, ServiceOptions(ACCESS, **options), Metrics(), model, streams)

    return serve


PORTAL = Caller(ACCESS, portal=True, proof=None)


def member(*teams: str, rights: frozenset[Right] = RIGHTS) -> Caller:
    groups = frozenset(f"group:default/{team}" for team in teams)
    return Caller(ACCESS, portal=False, proof=Requester("user:default/eve", "t", groups, rights))


def call(caller: Caller | None, body: Any = None, **path: str) -> ServiceRequest:
    return ServiceRequest(caller, body or {}, path, {})


def told(act: Any) -> str:
    """Return what a request was refused with; empty if it was not."""
    try:
        act()
    except OrderkitError as error:
        return f"{type(error).__name__}: {error}"
    return ""


@pytest.mark.parametrize(
    ("caller", "order", "found", "living"),
    [
        (PORTAL, "garage-lives", "", ""),
        (PORTAL, "garage-ends", "", ""),
        (PORTAL, "garage-gone", "", "NotFoundError: garage-gone has ended"),
        (
            PORTAL,
            "garage-none",
            "NotFoundError: no order 'garage-none' in the ledger",
            "NotFoundError: no order 'garage-none' in the ledger",
        ),
        (member("toyota"), "garage-lives", "", ""),
        (member("toyota"), "garage-gone", "", "RefusedError: {}garage-gone'"),
        (
            member("toyota"),
            "garage-none",
            "RefusedError: {}garage-none'",
            "RefusedError: {}garage-none'",
        ),
        (
            member("other"),
            "garage-lives",
            "RefusedError: {}garage-lives'",
            "RefusedError: {}garage-lives'",
        ),
        (
            member("other"),
            "garage-gone",
            "RefusedError: {}garage-gone'",
            "RefusedError: {}garage-gone'",
        ),
    ],
)
def test_an_order_is_found_by_those_who_may_know_of_it(
    caller: Caller, order: str, found: str, living: str, service: Serving
) -> None:
    may_not = "user:default/eve may not act for order '"
    ended, alive = call(caller, order=order), call(caller, order=order)

    said = told(lambda: find_entry(service(), ended, "read"))
    said_living = told(lambda: entry_for(service(), alive, "read"))

    assert said == found.format(may_not)
    assert said_living == living.format(may_not)
    assert (ended.audit_fields.get("team"), alive.audit_fields.get("team")) == (
        None if found else "toyota",
        None if living else "toyota",
    )


def test_an_agent_runs_no_template_that_orders_nothing(forge: OwnForge, service: Serving) -> None:
    """Nobody would see a proposal of what it does."""
    template = """\
apiVersion: scaffolder.backstage.io/v1beta3
kind: Template
metadata: {name: rename}
spec: {type: service, steps: [{id: say, action: debug:log, input: {message: hello}}]}
"""
    forge.repo(forge.pack, {"pack.yaml": PACK, "templates/rename/template.yaml": template})
    of = replace(service(), platform=forge.platform())
    body = {"template": "rename", "values": {}, "requester": "user:default/eve", "agent": "bot"}

    with pytest.raises(RefusedError, match="template 'rename' orders no kit, and an agent") as no:
        post_task(of, call(PORTAL, body))

    assert no.value.hint == "a person types: orderkit run rename"


def end(of: Service, order: str) -> dict[str, Any]:
    answer = EndRuns().get(of, call(PORTAL, order=order))
    assert answer.status == 200
    return dict(answer.body)


def test_an_end_that_no_process_carries_out_has_stopped(service: Serving) -> None:
    answer = end(service(), "garage-ends")

    assert (answer["state"], answer["reason"]) == ("stopped", "it was cut off")
    assert answer["status"] == "/v1/orders/garage-ends/end"


def test_an_end_is_told_by_the_newest_tombstone(service: Serving) -> None:
    answer = end(service(), "garage-gone")

    assert (answer["state"], answer["repository"]) == ("ended", "delete")
    assert "its repository is deleted" in answer["message"]
    assert answer["message"].endswith("Survives:\n- a bucket")
    assert "nothing was there" in answer["message"]
    assert "Survives" not in end(service(), "garage-kept")["message"]


def test_an_order_that_lives_again_is_not_ending(service: Serving) -> None:
    again = {"apps/toyota/garage-gone.yaml": ""}

    for order, files in (("garage-gone", again), ("garage-lives", {})):
        with pytest.raises(NotFoundError, match=f"{order} is not ending"):
            EndRuns().get(service(files), call(PORTAL, order=order))


def agents(right: str) -> dict[str, str]:
    team = TeamName("toyota")
    return {str(path_of(team)): TeamFile(team, agents=right).to_yaml()}  # type: ignore[arg-type]  # one of three


@pytest.mark.parametrize(
    ("body", "files", "refusal"),
    [
        ({"confirm": "garage-live"}, {}, "InvalidInputError: confirm: 'garage-live' is not"),
        (
            {"confirm": "garage-lives", "agent": "bot"},
            agents("read"),
            "RefusedError: agents may only read the orders of team toyota",
        ),
        (
            {"confirm": "garage-lives", "agent": "bot", "repository": "delete"},
            agents("propose"),
            "InvalidInputError: repository: 'delete' is decided by the kit",
        ),
        (
            {"confirm": "garage-lives", "agent": "bot", "take": {"bucket": True}},
            agents("propose"),
            "InvalidInputError: take: {'bucket': True} is decided by the kit",
        ),
    ],
)
def test_an_end_is_refused_before_anything_is_done(
    body: dict[str, Any], files: dict[str, str], refusal: str, service: Serving
) -> None:
    asked = call(PORTAL, {"requester": "user:default/eve", **body}, order="garage-lives")

    assert told(lambda: EndRuns().post(service(files), asked)).startswith(refusal)


@pytest.mark.parametrize(
    ("right", "agent", "proposes"),
    [
        ("propose", None, False),
        ("propose", "", False),
        ("propose", "bot", True),
        ("write", "bot", False),
    ],
)
def test_an_agent_proposes_unless_its_team_lets_it_write(
    right: str, agent: str | None, proposes: object, service: Serving
) -> None:
    asked = call(PORTAL)

    assert (
        must_propose(service(agents(right)), asked, TeamName("toyota"), agent, "a command")
        is proposes
    )
    assert asked.audit_fields == ({"agent": agent} if agent else {})


def test_an_agent_that_may_only_read_is_told_what_a_person_types(service: Serving) -> None:
    with pytest.raises(RefusedError) as refused:
        must_propose(service(agents("read")), call(PORTAL), TeamName("toyota"), "bot", "a command")

    assert refused.value.hint == "a person types: a command"


@pytest.mark.parametrize(
    ("caller", "order", "options", "refusal"),
    [
        (None, "garage-none", {}, "NotFoundError: there is no order 'garage-none' whose forms"),
        (None, "garage-ends", {}, "RefusedError: garage-ends is ending and cannot be changed"),
        (None, "garage-hidden", {}, "NotFoundError: there is"),
        (None, "garage-lost", {}, "NotFoundError: there is"),
        (None, "garage-hidden", {"open_forms": True}, "RefusedError: garage-hidden is ending"),
        (None, "garage-lost", {"open_forms": True}, "NotFoundError: there is"),
        (member("toyota"), "garage-hidden", {}, "RefusedError: garage-hidden is ending"),
        (PORTAL, "garage-hidden", {}, "RefusedError: garage-hidden is ending"),
        (member("other"), "garage-hidden", {}, "NotFoundError: there is"),
        (
            None,
            "garage-gone",
            {},
            "EndedOrderError: garage-gone ended on 2026-11-23; user:default/eve asked for it",
        ),
    ],
)
def test_a_link_to_a_form_tells_of_an_order_what_its_reader_may_know(
    caller: Caller | None, order: str, options: dict[str, Any], refusal: str, service: Serving
) -> None:
    asked = call(caller, order=order)

    assert told(lambda: get_end_form(service(**options), asked)).startswith(refusal)
    assert asked.audit_fields.get("team") == (None if "NotFound" in refusal else "toyota")


def test_a_link_to_an_ended_order_says_what_became_of_its_repository(service: Serving) -> None:
    hints = []
    for order in ("garage-gone", "garage-kept"):
        with pytest.raises(EndedOrderError) as ended:
            get_end_form(service(), call(None, order=order))
        hints.append(ended.value.hint)

    assert "its repository is deleted" in hints[0]
    assert "its repository is archived and keeps its history" in hints[1]


@pytest.mark.parametrize("number", ["", "x", "-1", "1" * 10, "²", "٣"])
def test_what_is_no_number_of_a_pull_request_is_refused(number: str, service: Serving) -> None:
    asked = call(PORTAL, {"requester": "user:default/eve"}, order="garage-lives", number=number)

    with pytest.raises(InvalidInputError, match="is not a number of a pull request"):
        post_merge(service(), asked)


DECISION = {"decision": "approve"}


def test_nobody_approves_by_the_portals_secret(service: Serving) -> None:
    with pytest.raises(UnprovedError, match="nothing proves who approves"):
        post_approval(service(), call(PORTAL, DECISION, order="garage-lives"))


@pytest.mark.parametrize(
    ("caller", "order", "refusal"),
    [
        (member("other"), "garage-none", "may not act for order 'garage-none'"),
        (member("other"), "garage-gone", "may not act for order 'garage-gone'"),
        (replace(member(), proof=Requester("user:default/eve", "t", everywhere=True)),
         "garage-none", "no order 'garage-none'"),
    ],
)  # fmt: skip
def test_an_approval_tells_other_teams_nothing_of_an_order(
    caller: Caller, order: str, refusal: str, service: Serving
) -> None:
    of = service()

    assert refusal in told(lambda: post_approval(of, call(caller, DECISION, order=order)))
    assert of.model.rereads == []  # type: ignore[attr-defined]  # ours


@pytest.mark.parametrize(
    ("caller", "team", "refusal"),
    [
        (member("other"), "toyota", "RefusedError: user:default/eve may not act for team 'toyota'"),
        (PORTAL, "none", "NotFoundError: team 'none' is not in the ledger"),
        (member("none"), "none", "NotFoundError: team 'none' is not in the ledger"),
    ],
)
def test_a_team_is_shown_to_its_members_only(
    caller: Caller, team: str, refusal: str, service: Serving
) -> None:
    for handler in (get_team, get_statement):
        assert told(lambda handler=handler: handler(service(), call(caller, team=team))).startswith(
            refusal
        )


@pytest.mark.parametrize(
    ("query", "selected"),
    [
        ({}, OrderQuery(sort="team")),
        (
            {"team": "a", "kit": "k", "owner": "o", "text": "t", "sort": "phase", "cursor": "c"},
            OrderQuery(team="a", kit="k", owner="o", text="t", sort="phase", cursor="c"),
        ),
        ({"phase": "Ready,Failing", "limit": "7"}, OrderQuery(phase=("Ready", "Failing"), limit=7)),
    ],
)
def test_the_parameters_of_a_list_select_orders(
    query: dict[str, str], selected: OrderQuery
) -> None:
    assert order_query(query) == replace(selected, sort=query.get("sort", "team"))


def test_a_request_without_a_caller_has_none_to_ask_for() -> None:
    with pytest.raises(RuntimeError, match="this operation has no caller"):
        _ = call(None).who
