"""Which way an order's registration goes: in the command's process, or to the service."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import PurePosixPath
from typing import Any

import pytest
from replicas import until

from ground.errors import AccessError, IncompleteError
from ground.objects.kube_objects import APPLICATION, Manifest, ObjectKey
from orderkit.adapters.folders.pack_folder import read_folder, reference_pack
from orderkit.flows.argocd.refreshing import application_key
from orderkit.flows.install.bootstrapping.steps import BootstrapContext, BootstrapRequest
from orderkit.flows.install.bootstrapping.team_steps import PortalStep
from orderkit.flows.install.pack_rendering import PlatformValues
from orderkit.flows.order.placing import TaskRequest, order
from orderkit.flows.order.template_services import REGISTER_PATH, RegisteringPortal
from orderkit.flows.platform import Platform
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
