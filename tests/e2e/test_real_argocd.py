"""
Argo CD of the lab: reads a private repository of the lab's Gitea, delivers, heals, prunes.

And waits: for an approval, and for a maintenance window.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest
import yaml
from deliveries import Delivery
from lab.realargocd import ArgoCD
from lab.realgitea import Gitea

from ground.names import CommitSha, OrderId, RepoId, TeamName
from ground.objects.kube_objects import (
    APPLICATION,
    CONFIG_MAP,
    NAMESPACE,
    Kind,
    Manifest,
    ObjectKey,
    dig,
)
from orderkit.adapters.gitea.client import GiteaForge
from orderkit.adapters.kube.cluster import KubeCluster
from orderkit.core.kit.order_kinds import OrderKinds
from orderkit.core.kit.order_terms import DAYS, MaintenanceWindow
from orderkit.core.order import ledger_applications
from orderkit.core.order.ledger import OrderEntry, team_namespace
from orderkit.core.order.ledger_applications import TeamPlace
from yamlfiles.manifests import parse_manifests

ORGANISATION = "lab"
ASKED_EACH_S = 2.0


@pytest.fixture(scope="module")
def forge(real_gitea: Gitea) -> GiteaForge:
    return GiteaForge(real_gitea.url, token=real_gitea.token, allow_http=True)


@pytest.fixture(scope="module")
def cluster(real_argocd: ArgoCD, real_gitea: Gitea) -> Iterator[KubeCluster]:
    real_argocd.lend(real_gitea.url, (real_gitea.user, real_gitea.token))
    with KubeCluster.from_kubeconfig(real_argocd.kube.kubeconfig) as found:
        yield found


@pytest.fixture
def namespace(cluster: KubeCluster) -> Iterator[str]:
    name = f"lab-{secrets.token_hex(4)}"
    metadata = {"name": name}
    cluster.create({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata}, owner="test")
    yield name
    cluster.delete(ObjectKey.from_json({"apiVersion": "v1", "kind": "Namespace", "name": name}))


@pytest.fixture
def delivery(forge: GiteaForge, cluster: KubeCluster) -> Iterator[Delivery]:
    made = Delivery(forge, cluster, organisation=ORGANISATION)
    yield made
    made.remove()


def config_map(name: str, value: str) -> str:
    manifest = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}}
    return yaml.safe_dump(manifest | {"data": {"value": value}})


def delivered_at(commit: str, application: Manifest) -> bool:
    status = application.get("status", {})
    sync, operation = status.get("sync", {}), status.get("operationState", {})
    return (sync.get("status"), sync.get("revision"), operation.get("phase")) == (
        "Synced",
        commit,
        "Succeeded",
    )


def test_it_delivers_a_private_repository_heals_and_prunes(
    delivery: Delivery, namespace: str
) -> None:
    first = delivery.push({"a.yaml": config_map("a", "1"), "b.yaml": config_map("b", "1")})
    delivery.deliver(namespace)
    delivery.await_application(lambda found: delivered_at(first, found))
    a, b = (ObjectKey(CONFIG_MAP, name, namespace) for name in "ab")

    delivery.cluster.patch(a, {"data": {"value": "by hand"}}, owner="somebody")
    delivery.await_application(
        lambda _: dig(delivery.cluster.get(a), "data", "value") == "1"  # self-heal
    )
    second = delivery.push({"a.yaml": config_map("a", "2"), "b.yaml": None})
    delivery.refresh()
    delivery.await_application(lambda found: delivered_at(second, found))

    assert dig(delivery.cluster.get(a), "data", "value") == "2"
    assert delivery.cluster.get(b) is None


@pytest.fixture
def own(forge: GiteaForge, cluster: KubeCluster) -> Iterator[Delivery]:
    """The repository of an order, of kit `app` and a team of its own."""
    made = Delivery(forge, cluster, organisation=f"lab-{secrets.token_hex(4)}")
    yield made
    made.remove()
    cluster.delete(ObjectKey(NAMESPACE, config_map_of(made).namespace))


def team_of(delivery: Delivery) -> TeamName:
    return TeamName(delivery.repository.owner)


def config_map_of(delivery: Delivery) -> ObjectKey:
    return ObjectKey(CONFIG_MAP, "a", team_namespace(team_of(delivery)))


def allow(delivery: Delivery, window: MaintenanceWindow | None = None) -> None:
    """Write what the team's file in the ledger has: namespace, and AppProject with its windows."""
    kinds = OrderKinds(namespaced=(("", "ConfigMap"),))
    windows = {"app": (window,)} if window else {}
    team, url = team_of(delivery), delivery.forge.base_url
    place = TeamPlace(team, url, RepoId(team, "ledger"), kinds, windows=windows)
    for manifest in parse_manifests("team", ledger_applications.team_file(place).encode()):
        if Kind.of(manifest) != APPLICATION:
            delivery.cluster.apply(manifest, owner="ledger")


def enter(delivery: Delivery, commit: CommitSha, stage: ledger_applications.Stage) -> None:
    """Write the order's Application, as the ledger has it."""
    order = OrderEntry(team_of(delivery), OrderId(delivery.name))
    url = delivery.forge.base_url
    application = ledger_applications.order_application(
        order, kit="app", forge_url=url, commit=commit, stage=stage
    )
    delivery.cluster.apply(application, owner="ledger")


class RefreshRequests:
    """Asks for a refresh every other second."""

    def __init__(self, delivery: Delivery) -> None:
        self._delivery, self._asked_s = delivery, time.monotonic()

    def look(self) -> None:
        if time.monotonic() - self._asked_s > ASKED_EACH_S:
            self._asked_s = time.monotonic()
            self._delivery.refresh_again()


def await_undelivered(delivery: Delivery, commit: CommitSha) -> None:
    """Wait until Argo CD looked at a commit twice and delivered none of it."""
    looked: set[str] = set()
    requests = RefreshRequests(delivery)

    def looked_twice(application: Manifest) -> bool:
        sync = dig(application, "status", "sync", default={})
        if (sync.get("status"), sync.get("revision")) == ("OutOfSync", commit):
            looked.add(str(dig(application, "status", "reconciledAt")))
        requests.look()
        return len(looked) > 1

    delivery.await_application(looked_twice)


def await_delivered(delivery: Delivery, commit: CommitSha) -> None:
    """Wait for a commit. A look at an older AppProject would not be repeated for minutes."""
    requests = RefreshRequests(delivery)

    def is_delivered(application: Manifest) -> bool:
        requests.look()
        return delivered_at(commit, application)

    delivery.await_application(is_delivered)


def around(day: datetime) -> MaintenanceWindow:
    """Return a window of that day."""
    return MaintenanceWindow((DAYS[day.weekday()],), "00:00", "23:59", "UTC")


def test_a_proposed_order_is_not_synced_before_it_is_agreed_to(own: Delivery) -> None:
    allow(own)
    commit = own.push({"a.yaml": config_map("a", "1")})
    key = config_map_of(own)

    enter(own, commit, "proposed")
    await_undelivered(own, commit)
    before = own.cluster.get(key)
    enter(own, commit, "living")
    await_delivered(own, commit)

    assert before is None
    assert dig(own.cluster.get(key), "data", "value") == "1"


def test_a_merged_change_waits_for_its_window_and_is_delivered_when_it_opens(own: Delivery) -> None:
    now = datetime.now(UTC)
    allow(own)
    first = own.push({"a.yaml": config_map("a", "1")})
    enter(own, first, "living")
    own.await_application(lambda found: delivered_at(first, found))
    key = config_map_of(own)

    allow(own, around(now + timedelta(days=3)))
    second = own.push({"a.yaml": config_map("a", "2")})
    enter(own, second, "living")
    await_undelivered(own, second)
    before = dig(own.cluster.get(key), "data", "value")
    allow(own, around(now))
    await_delivered(own, second)

    assert before == "1"
    assert dig(own.cluster.get(key), "data", "value") == "2"
