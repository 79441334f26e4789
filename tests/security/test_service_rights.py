"""
What the installed service may do in the cluster is what a running one does, and no more.

A real ``orderkit serve`` answers every kind of request while a proxy notes what it asks the API
server for. What it does once in a while is done here as it does it: sweeping and notifying.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from changingpack import changing_pack
from commands import as_process
from platformsettings import settings_with
from recordedcalls import Right, recording
from servedprocess import ServedProcess, served_process

from ground.objects.kube_objects import ARGOCD_NAMESPACE, ObjectKey
from orderkit.adapters.folders.pack_folder import read_folder
from orderkit.cli.connecting import connect, token
from orderkit.core.kit.checked_kits import checked_kits
from orderkit.core.kit.order_kinds import service_rules
from orderkit.core.kit.pack import read_pack
from orderkit.core.notify.order_event import row_events
from orderkit.core.order.order_view import OrderRow
from orderkit.core.platform.notification_settings import NAMESPACE_NAME
from orderkit.core.platform.service_access import ServiceInstall
from orderkit.core.platform.service_objects import NAME, NAMESPACE, ServiceParts, rights
from orderkit.flows.leader_election import LEASE, Candidate, LeaderElection
from orderkit.flows.lease.sweeper import SWEEP_LEASE
from orderkit.flows.notify.notified_events import (
    GivenUp,
    NotifiedEvents,
    ensure_namespace,
    given_up,
)
from orderkit.flows.notify.notifying import LEASE_NAME
from orderkit.flows.platform import Platform
from orderkit_standins.platform import Ports
from orderkit_standins.serve_platform import EmbeddedRunRequest, Running, running

ACCOUNT = f"system:serviceaccount:{NAMESPACE}:{NAME}"
ORDER, OTHER = "garage-ae86", "garage-fd3s"
CLAIM = {"requester": "user:default/ann"}
REQUESTS: tuple[tuple[str, str, object], ...] = (
    ("GET", "/v1/kits", None),
    ("GET", "/v1/kits/garage/teams", None),
    ("POST", "/v1/kits/garage/plan", {"values": {"team_name": "rx7", "stage": "stage1"}, **CLAIM}),
    ("GET", "/v1/orders", None),
    ("GET", f"/v1/orders/{ORDER}", None),
    ("GET", f"/v1/orders/{ORDER}/view", None),
    ("GET", f"/v1/orders/{ORDER}/trace", None),
    ("GET", f"/v1/orders/{ORDER}/events", None),
    ("GET", f"/v1/orders/{ORDER}/history", None),
    ("GET", f"/v1/orders/{ORDER}/lease", None),
    ("GET", f"/v1/orders/{ORDER}/end/preview", None),
    ("GET", "/v1/teams/ae86", None),
    ("GET", "/v1/teams/ae86/statement", None),
    ("GET", "/v1/approvals", None),
    ("GET", "/v1/campaigns", None),
    ("POST", f"/v1/orders/{ORDER}/plan", {"values": {"stage": "stage2"}}),
    ("POST", f"/v1/orders/{ORDER}/changes", {"values": {"stage": "stage2"}, **CLAIM}),
    ("GET", "/v1/gates/garage/ae86", None),
    ("POST", f"/v1/orders/{ORDER}/end", {"confirm": ORDER, **CLAIM}),
    ("GET", f"/v1/orders/{ORDER}/end", None),
    ("GET", "/metrics", None),
)


@pytest.fixture(scope="module")
def pack(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """
    The reference pack; its garage is changed without a review, and has no role.

    So a plan looks for what Crossplane may do in the cluster.
    """
    folder = changing_pack(tmp_path_factory.mktemp("rights") / "pack")
    role = folder / "gitops" / "apis" / "garage" / "rbac.yaml"
    role.write_text(role.read_text().partition("rules:")[0] + "rules: []\n")
    return folder


@pytest.fixture(scope="module")
def platform(pack: Path) -> Iterator[Running]:
    request = EmbeddedRunRequest(pack.parent / "state", pack, Ports(0, 0, 0, 0), ("ae86",))
    with running(request, on_step=lambda *_: None) as site:
        yield site


@pytest.fixture(scope="module")
def used(platform: Running, tmp_path_factory: pytest.TempPathFactory) -> set[Right]:
    """What was asked for, by what RBAC calls it."""
    folder = tmp_path_factory.mktemp("recorded")
    orderkit = as_process(platform.embedded.state.folder / "platform.yaml")
    ordered = orderkit("order", "garage", "team_name=ae86", "stage=stage1")
    assert ordered.code == 0, ordered.err
    ensure_namespace(platform.platform.cluster, NAMESPACE_NAME)
    with recording(Path(platform.settings.cluster.kubeconfig), folder, ACCOUNT) as record:
        settings = settings_with(platform.settings, cluster__kubeconfig=record.kubeconfig)
        (folder / "platform.yaml").write_text(settings.to_yaml())
        with served_process(folder / "platform.yaml", folder) as service:
            service.wait_until_ready()
            serve_everything(service, token(settings.service))
        sweep_and_notify(connect(settings))
    return record.rights


def serve_everything(service: ServedProcess, secret: str) -> None:
    task = {"template": "garage", "values": {"team_name": "fd3s", "stage": "stage1"}, **CLAIM}
    answers = [("/v1/tasks", service.ask("POST", "/v1/tasks", secret, json=task))]
    for method, path, body in REQUESTS:
        answers.append((path, service.ask(method, path, secret, json=body)))
    failed = [(path, answer.text) for path, answer in answers if answer.status_code >= 500]
    assert failed == []


def sweep_and_notify(platform: Platform) -> None:
    rows = [OrderRow(f"garage-{name}", "ae86", "garage", "Ready") for name in ("a", "b")]
    ensure_namespace(platform.cluster, NAMESPACE_NAME)
    notified = NotifiedEvents(platform, NAMESPACE_NAME, "chat")
    notified.load()
    for event in (event for row in rows for event in row_events(row, None)):
        notified.note(event)
        notified.flush()
        notified.report(GivenUp(event.order, event.kind, "now", "it is down"))
    assert given_up(platform.cluster, NAMESPACE_NAME).keys() == {"chat"}
    for key in (SWEEP_LEASE, ObjectKey(LEASE, LEASE_NAME, NAMESPACE_NAME)):
        election = LeaderElection(platform.cluster, platform.clock, Candidate(key, "replica"))
        assert [election.try_acquire() for _ in range(2)] == [True, True]
        election.release()


def granted(pack: Path) -> set[Right]:
    """Return what the roles of the layer allow."""
    rules = service_rules(checked_kits(read_pack(read_folder(pack))))
    parts = ServiceParts(ServiceInstall(("any",)), "", "", "", NAMESPACE_NAME, rules)
    return {
        Right(role["metadata"].get("namespace", ""), group, resource, verb)
        for role in rights(parts)
        for rule in role.get("rules", ())
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }


def covering(right: Right, allowed: set[Right]) -> set[Right]:
    """Return the rights of roles that let a request pass."""
    places = {right, replace(right, namespace="")}
    if right.resource == "namespaces":  # a role in a namespace may let its account read the object
        places.add(replace(right, namespace=NAMESPACE_NAME))
    return places & allowed


def words(rights_: Iterable[Right]) -> list[str]:
    return sorted(f"{r.namespace or '*'}: {r.verb} {r.group}/{r.resource}" for r in rights_)


def test_the_service_asks_for_nothing_that_it_may_not(pack: Path, used: set[Right]) -> None:
    allowed = granted(pack)

    assert words(right for right in used if not covering(right, allowed)) == []


def test_the_service_may_do_nothing_that_it_never_asks_for(pack: Path, used: set[Right]) -> None:
    allowed = granted(pack)

    assert words(allowed.difference(*(covering(right, allowed) for right in used))) == []


def test_the_service_may_write_no_object_but_leases_notes_and_refreshes(pack: Path) -> None:
    writing = {
        (right.namespace, right.resource)
        for right in granted(pack)
        if right.verb not in {"get", "list", "watch"}
    }

    assert writing == {
        (ARGOCD_NAMESPACE, "applications"),
        (ARGOCD_NAMESPACE, "leases"),
        (NAMESPACE_NAME, "leases"),
        (NAMESPACE_NAME, "configmaps"),
    }
