"""Which way an order's registration goes: in the command's process, or to the service."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import PurePosixPath
from typing import Any

import pytest
from bays import Bay, new_repository
from faultproxy import Decision, Falsehood, Fault, Listed, open_proxy
from forgehands import client_at
from replicas import until
from rivals import Rival

from ground.errors import (
    AccessError,
    AlreadyOrderedError,
    IncompleteError,
    InvalidInputError,
    NotFoundError,
    OrderkitError,
    RefusedError,
)
from ground.names import OrderId, RepoId, TeamName
from ground.objects.kube_objects import APPLICATION, Manifest, ObjectKey
from orderkit.adapters.folders.pack_folder import read_folder, reference_pack
from orderkit.core.order.order_file import PATH as RECORD
from orderkit.flows.argocd.refreshing import application_key
from orderkit.flows.install.bootstrapping.steps import BootstrapContext, BootstrapRequest
from orderkit.flows.install.bootstrapping.team_steps import PortalStep
from orderkit.flows.install.pack_rendering import PlatformValues
from orderkit.flows.order.placing import TaskRequest, order
from orderkit.flows.order.registering import Registration, register
from orderkit.flows.order.template_services import REGISTER_PATH, RegisteringPortal
from orderkit.flows.platform import Platform, ledger_snapshot
from orderkit.flows.team.teams import TeamChange, change_team
from orderkit.ports.catalog import Location
from orderkit.ports.portal import PortalResponse
from orderkit.ports.requesters import Requester
from orderkit_standins.serve_platform import Running


class Portal:
    """The platform's portal, with a list of what was asked of it."""

    def __init__(self, platform: Platform) -> None:
        self._portal, self.asked = platform.portal, list[str]()

    def request(self, method: str, path: str, **options: Any) -> PortalResponse:
        self.asked.append(f"{method} {path}")
        return self._portal.request(method, path, **options)


class ReadOnlyLedger:
    """The forge, as credentials see it that may write everything but the ledger."""

    def __init__(self, platform: Platform) -> None:
        self._platform = platform

    def __getattr__(self, name: str) -> Any:
        return getattr(self._platform.forge, name)

    def write(self, repo: Any, *arguments: Any, **options: Any) -> Any:
        if repo == self._platform.ledger:
            raise AccessError(f"{repo}: may not be written")
        return self._platform.forge.write(repo, *arguments, **options)


class RefreshedCluster:
    """The cluster, with the Applications that were refreshed, before or after it has the orders."""

    def __init__(self, platform: Platform, *, has_orders: bool) -> None:
        self._cluster, self._has_orders = platform.cluster, has_orders
        self.refreshed = list[str]()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._cluster, name)

    def get(self, key: ObjectKey) -> Manifest | None:
        is_hidden = key.kind == APPLICATION and key.name.startswith("garage-")
        return None if is_hidden and not self._has_orders else self._cluster.get(key)

    def patch(self, key: ObjectKey, *arguments: Any, **options: Any) -> Any:
        self.refreshed.append(key.name)
        return self._cluster.patch(key, *arguments, **options)


def place(platform: Platform, team: str, *, agent: str = "") -> None:
    values = {"team_name": team, "stage": "stage2"}
    request = TaskRequest("garage", values, Requester("user:default/eve", agent=agent))
    order(platform, request, wait_s=None)


def is_registered(platform: Platform, team: str) -> bool:
    path = PurePosixPath("apps", team, f"garage-{team}.yaml")
    return platform.forge.read(platform.ledger, path, "main") is not None


def test_an_order_registers_itself(platform: Running, team: str) -> None:
    portal = Portal(platform.platform)

    place(replace(platform.platform, portal=portal), team)

    assert portal.asked == []
    assert is_registered(platform.platform, team)


@pytest.mark.parametrize("agent", ["", "robot"])
@pytest.mark.parametrize("has_orders", [False, True])
def test_an_order_that_was_cut_off_before_its_refresh_is_refreshed_by_repeating_it(
    platform: Running, team: str, agent: str, *, has_orders: bool
) -> None:
    place(platform.platform, team)
    application = application_key(f"garage-{team}")
    until(lambda: platform.platform.cluster.get(application), "it is delivered", 60)
    cluster: Any = RefreshedCluster(platform.platform, has_orders=has_orders)

    place(replace(platform.platform, cluster=cluster), team, agent=agent)

    assert cluster.refreshed == ([] if has_orders else [f"team-{team}"])


def test_the_service_registers_where_the_platform_says_so(platform: Running, team: str) -> None:
    portal = Portal(platform.platform)

    place(replace(platform.platform, portal=portal, service_registers=True), team)

    assert portal.asked == ["POST /proxy/orderkit/v1/orders"]
    assert is_registered(platform.platform, team)


def test_the_service_is_asked_where_the_ledger_may_not_be_written(
    platform: Running, team: str
) -> None:
    portal, whole = Portal(platform.platform), platform.platform

    place(replace(whole, portal=portal, forge=ReadOnlyLedger(whole)), team)

    assert portal.asked == ["POST /proxy/orderkit/v1/orders"]
    assert is_registered(whole, team)


def test_an_order_that_cannot_be_registered_is_finished_by_the_same_request(
    platform: Running, team: str
) -> None:
    whole = platform.platform

    class Nobody:
        def request(self, *_: Any, **__: Any) -> PortalResponse:
            raise AccessError("the service does not know us")

    with pytest.raises(IncompleteError, match="published but not delivered yet"):
        place(replace(whole, portal=Nobody(), forge=ReadOnlyLedger(whole)), team)
    assert not is_registered(whole, team)

    place(whole, team)

    assert is_registered(whole, team)


@pytest.mark.parametrize("field", ["order", "kit", "team"])
def test_what_the_service_would_refuse_is_refused_with_the_same_status(
    field: str, platform: Running, team: str
) -> None:
    body = {"order": f"garage-{team}", "kit": "garage", "team": team, field: "../x"}
    headers = {"content-type": "application/json"}
    ask = ("POST", REGISTER_PATH)
    ours = RegisteringPortal(platform.platform, Requester("user:default/eve"))

    answer = ours.request(*ask, headers=headers, body=json.dumps(body).encode())
    service = platform.platform.portal.request(
        *ask, headers=headers, body=json.dumps(body).encode()
    )

    assert (answer.code, service.code) == (400, 400)


def test_nothing_is_registered_for_a_portal_that_reads_orders(platform: Running, team: str) -> None:
    """The entity comes from the portal's plugin; a location as well would give it twice."""
    reading = replace(platform.platform, portal_reads_orders=True)
    values = {"team_name": team, "stage": "stage2"}
    request = TaskRequest("garage", values, Requester("user:default/eve"))

    ordered = order(reading, request, wait_s=None)

    assert ordered.outputs["links"][1]["entityRef"] == f"component:default/garage-{team}"
    assert not _locations(platform.platform, team)
    assert is_registered(platform.platform, team)


def _locations(platform: Platform, team: str) -> list[str]:
    return [at.target for at in platform.catalog.locations() if f"/garage-{team}/" in at.target]


class CatalogOf:
    """The platform's catalog, as if it held the locations of one team only."""

    def __init__(self, platform: Platform, team: str) -> None:
        self._catalog, self._team = platform.catalog, team

    def locations(self) -> list[Location]:
        return [at for at in self._catalog.locations() if f"/garage-{self._team}/" in at.target]

    def register(self, _target: str) -> list[str]:
        return []

    def unregister(self, target: str) -> bool:
        return self._catalog.unregister(target)


def test_a_bootstrap_removes_locations_that_the_portals_plugin_replaces(
    platform: Running, team: str
) -> None:
    place(platform.platform, team)
    catalog: Any = CatalogOf(platform.platform, team)
    values = PlatformValues(platform.settings.forge.url, "0" * 40, "registry.local")
    wanted = BootstrapRequest(read_folder(reference_pack()), values, "user:default/test")

    for reads_orders, left in ((False, 1), (True, 0)):
        at = replace(platform.platform, catalog=catalog, portal_reads_orders=reads_orders)
        PortalStep(BootstrapContext(at, wanted)).ensure(lambda _: None)
        assert len(_locations(platform.platform, team)) == left


def recorded(bay: Bay, old: str, new: str) -> Registration:
    """Let the order's record say something else."""
    bay.put({RECORD: bay.text(RECORD).replace(old, new)})
    return bay_registration(bay)


def bay_registration(bay: Bay, **more: str) -> Registration:
    asked = {"order": bay.order, "kit": "garage", "team": bay.repo.owner, **more}
    return Registration(
        OrderId(asked["order"]), asked["kit"], TeamName(asked["team"]), "user:default/eve"
    )


def archived(bay: Bay) -> Registration:
    bay.platform.forge.archive(bay.repo)
    return bay_registration(bay)


def without(bay: Bay, path: PurePosixPath) -> Registration:
    bay.put({path: None})
    return bay_registration(bay)


def hooked(bay: Bay) -> Registration:
    """Add a hook, in a team whose orders are counted: what exceeds is taken back."""
    counted = TeamChange(limits={"orders": "50"})
    change_team(bay.platform, bay.repo.owner, requester="user:default/test", change=counted)
    bay.edit("metadata:", "metadata:\n  annotations: {argocd.argoproj.io/hook: PreSync}")
    return bay_registration(bay)


UNREGISTERED: list[tuple[str, Callable[[Bay], Registration], type[OrderkitError], str]] = [
    ("another kit", lambda b: bay_registration(b, kit="shed"), InvalidInputError, "of kit 'shed'"),
    ("archived", archived, AlreadyOrderedError, "is archived: the order ended"),
    ("no record", lambda b: without(b, RECORD), NotFoundError, "no .orderkit/order.yaml"),
    (
        "the record of another order",
        lambda b: recorded(b, f"name: {b.order}", "name: garage-other"),
        InvalidInputError,
        "says: 'garage-other'",
    ),
    (
        "the record of another team",
        lambda b: recorded(b, f"team: {b.repo.owner}", "team: rx7"),
        InvalidInputError,
        "says: 'rx7'",
    ),
    ("a hook of Argo CD", hooked, RefusedError, "manifests/xgarage.yaml: "),
]


@pytest.mark.parametrize("case", UNREGISTERED, ids=lambda case: case[0])
def test_what_is_not_an_order_as_it_claims_is_not_registered(
    platform: Running, case: tuple[str, Callable[[Bay], Registration], type[OrderkitError], str]
) -> None:
    _, prepare, error, says = case
    bay = new_repository(platform.platform, f"unready-{UNREGISTERED.index(case)}")
    asked = prepare(bay)

    with pytest.raises(error) as refused:
        register(platform.platform, asked)

    assert says in str(refused.value)
    assert bay.order not in str(sorted(ledger_snapshot(platform.platform).blobs))


def test_an_order_never_replaces_an_application_of_the_platform(platform: Running) -> None:
    bay = new_repository(platform.platform, "of-the-platform")
    key = application_key(bay.order)
    spec = {"project": "default", "destination": {"namespace": "default"}, "sources": []}
    meta = {"name": key.name, "namespace": key.namespace}
    application = {"apiVersion": key.kind.api_version, "kind": key.kind.kind, "metadata": meta}
    platform.platform.cluster.create({**application, "spec": spec}, owner="test")

    with pytest.raises(RefusedError, match="one of the platform's own Applications"):
        register(platform.platform, bay_registration(bay))


def test_an_agents_order_is_not_handed_to_the_service_as_its_persons_own(
    platform: Running, team: str
) -> None:
    """The service would take it for the person's; the forge refuses us the ledger."""
    portal, whole = Portal(platform.platform), platform.platform
    forbidden = Decision(Fault.REFUSE_BEFORE, Falsehood(403, b'{"message": "not yours"}'))
    plan = Listed([forbidden] * 20, lambda how, at: how != "GET" and f"/{whole.ledger}/" in at)
    bay = new_repository(whole, team, team)
    body = {"order": bay.order, "kit": "garage", "team": team}
    with (
        open_proxy(platform.settings.forge.url) as proxy,
        proxy.using(plan),
        client_at(proxy.url, platform.settings.forge, None, read_timeout_s=10) as forge,
    ):
        away = replace(whole, forge=forge, portal=portal)
        asking = RegisteringPortal(away, Requester("user:default/eve", agent="robot"))
        with pytest.raises(AccessError, match="not yours"):
            asking.request("POST", REGISTER_PATH, headers=JSON, body=json.dumps(body).encode())

    assert portal.asked == []
    assert not is_registered(whole, team)


JSON = {"content-type": "application/json"}
SETTINGS_PATH = "/proxy/orderkit/v1/kits/garage/settings"


@pytest.mark.parametrize("path", [REGISTER_PATH, SETTINGS_PATH])
@pytest.mark.parametrize("body", [b"{", b"[]", b"{}"])
def test_a_body_that_cannot_be_read_is_refused_in_the_services_words(
    platform: Running, path: str, body: bytes
) -> None:
    ours = RegisteringPortal(platform.platform, Requester("user:default/eve"))

    try:
        said = ours.request("POST", path, headers=JSON, body=body).code
    except InvalidInputError as refused:
        said = refused.http_status

    assert said == platform.platform.portal.request("POST", path, headers=JSON, body=body).code


def test_a_kit_whose_form_takes_no_yaml_reads_none(platform: Running) -> None:
    ours = RegisteringPortal(platform.platform, Requester("user:default/eve"))

    with pytest.raises(InvalidInputError, match="has no yamlFields: its form takes no YAML"):
        ours.request("POST", SETTINGS_PATH, headers=JSON, body=b'{"text": "stage: stage3"}')


def test_of_two_who_order_one_name_at_the_same_moment_both_get_the_same_order(
    platform: Running, team: str
) -> None:
    whole = platform.platform
    rival: Any = Rival(whole.forge, "write", lambda: place(whole, team))

    place(replace(whole, forge=rival), team)

    assert rival.has_acted
    assert len(whole.forge.commits(RepoId(team, f"garage-{team}"))) == 1


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("ordered: {}", "ordered: {stage: stage3, teamName: TEAM}", "was 'stage3', asked for"),
        ("kit: garage", "kit: shed", "kit shed of team TEAM"),
    ],
)
def test_an_order_that_somebody_else_publishes_at_the_same_moment_is_a_conflict(
    platform: Running, team: str, old: str, new: str, says: str
) -> None:
    whole = platform.platform

    def publish() -> None:
        bay = new_repository(whole, team, team)
        bay.put({RECORD: bay.text(RECORD).replace(old, new.replace("TEAM", team))})

    rival: Any = Rival(whole.forge, "write", publish)

    with pytest.raises(AlreadyOrderedError, match=says.replace("TEAM", team)):
        place(replace(whole, forge=rival), team)
    assert not is_registered(whole, team)
