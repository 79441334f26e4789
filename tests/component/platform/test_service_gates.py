"""Over HTTP: what is used up is 402, what is not known 503, and neither looks like the other."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import requests
import yaml
from changingpack import changing_pack
from platformsettings import settings_with

from ground.objects.kube_objects import Kind, Manifest, ObjectKey
from orderkit.cli.connecting import SECRET_HEADER, connect, service_options, token
from orderkit.core.platform.service_access import (
    AccessSettings,
    Client,
    Right,
    digest_of,
    write_clients,
)
from orderkit.flows.order.placing import TaskRequest, run_task
from orderkit.flows.platform import Platform
from orderkit.flows.repeating import until
from orderkit.flows.team.teams import add_team
from orderkit.ports.requesters import Requester
from orderkit.web.service import service_app
from orderkit.web.serving import HttpServer, bind
from orderkit_standins.platform import Ports
from orderkit_standins.serve_platform import EmbeddedRunRequest, Running, running

TEAM, OTHER = "ae86", "rx7"
CHAT, STRANGER = "okt_chat_0123456789", "okt_stranger_0123456789"
XGARAGE = Kind("blog.opsbogus.dev", "v1alpha1", "XGarage")
XMETER = Kind("blog.opsbogus.dev", "v1alpha1", "XMeter")
GARAGE = ObjectKey(XGARAGE, f"garage-{TEAM}")
GATE = {"paused": "paused", "cause": "cause", "exhausted": ["budget-exhausted"]}
STATUS = {
    "paused": {"type": "boolean"},
    "cause": {"type": "string", "enum": ["running", "budget-exhausted", "agent-unreachable"]},
}
TEST = "test"


def gated_pack(target: Path) -> Path:
    """A pack whose garage has a gate, with a second kit in namespaces that has one too."""
    pack = changing_pack(target)
    kit = pack / "templates/garage/kit.yaml"
    found = yaml.safe_load(kit.read_text())
    found["spec"]["gate"] = GATE
    kit.write_text(yaml.safe_dump(found, sort_keys=False))
    definition = pack / "gitops/apis/garage/definition.yaml"
    xrd = yaml.safe_load(definition.read_text())
    schema = xrd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]
    schema.setdefault("status", {"type": "object"}).setdefault("properties", {}).update(STATUS)
    definition.write_text(yaml.safe_dump(xrd, sort_keys=False))
    _meter(pack, xrd)
    return pack


def _meter(pack: Path, garage: dict[str, Any]) -> None:
    names = {"kind": XMETER.kind, "plural": "xmeters", "singular": "xmeter"}
    spec = {**garage["spec"], "names": names, "scope": "Namespaced"}
    spec.pop("defaultCompositionRef", None)
    place = pack / "gitops/apis/meter"
    place.mkdir()
    xrd = {**garage, "metadata": {"name": "xmeters.blog.opsbogus.dev"}, "spec": spec}
    (place / "definition.yaml").write_text(yaml.safe_dump(xrd, sort_keys=False))
    kit = {
        "apiVersion": "orderkit.dev/v1alpha1",
        "kind": "Kit",
        "metadata": {"name": "meter"},
        "spec": {"nameFrom": "teamName", "teamFrom": "teamName", "gate": GATE},
    }
    listed = yaml.safe_load((pack / "pack.yaml").read_text())
    listed["spec"]["kits"].append("meter")
    (pack / "pack.yaml").write_text(yaml.safe_dump(listed, sort_keys=False))
    (pack / "templates/meter").mkdir()
    (pack / "templates/meter/kit.yaml").write_text(yaml.safe_dump(kit, sort_keys=False))


def there(here: Running, key: ObjectKey) -> None:
    """Wait until what was ordered is delivered: a task of the portal does not."""
    platform = here.platform
    until(
        platform.clock, lambda: platform.cluster.get(key), bool, timeout_s=120, goal=f"{key.name}"
    )


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    folder = tmp_path_factory.mktemp("gates")
    request = EmbeddedRunRequest(
        folder / "state", gated_pack(folder / "pack"), Ports(0, 0, 0, 0), (TEAM,)
    )
    with running(request, on_step=lambda *_: None) as found:
        add_team(found.platform, OTHER, requester="user:default/test")
        values = {"team_name": TEAM, "stage": "stage1"}
        run_task(found.platform, TaskRequest("garage", values, Requester("user:default/eve")))
        there(found, GARAGE)
        yield found


@dataclass(frozen=True)
class Site:
    url: str
    secret: str

    def ask(self, path: str, bearer: str = "") -> requests.Response:
        headers = {"Authorization": f"Bearer {bearer}"} if bearer else {SECRET_HEADER: self.secret}
        with requests.Session() as session:
            session.trust_env = False
            return session.get(f"{self.url}/v1/gates/{path}", headers=headers, timeout=60)


def serving(here: Running, platform: Platform, folder: Path) -> Iterator[Site]:
    clients = folder / "clients.yaml"
    read = frozenset[Right]({"read"})
    clients.write_text(
        write_clients(
            [
                Client("chat", digest_of(CHAT), "user:default/chat", (TEAM,), read),
                Client("stranger", digest_of(STRANGER), "user:default/other", (OTHER,), read),
            ]
        )
    )
    settings = settings_with(
        here.settings,
        service__access=AccessSettings(tokens_file=clients, requests_per_minute=100_000),
    )
    server = HttpServer(
        service_app(platform, service_options(settings, audit=None)), bind("service", 0)
    )
    server.start()
    yield Site(f"http://127.0.0.1:{server.port}", token(here.settings.service))
    server.stop()


@pytest.fixture(scope="module")
def site(here: Running, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    yield from serving(here, connect(here.settings), tmp_path_factory.mktemp("service"))


@pytest.fixture
def without_cluster(here: Running, tmp_path: Path) -> Iterator[Site]:
    """A service whose cluster nobody answers for."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    config = yaml.safe_load((here.embedded.state.folder / "kubeconfig").read_text())
    config["clusters"][0]["cluster"]["server"] = f"https://127.0.0.1:{port}"
    (tmp_path / "kubeconfig").write_text(yaml.safe_dump(config))
    dead = connect(settings_with(here.settings, cluster__kubeconfig=tmp_path / "kubeconfig"))
    yield from serving(here, dead, tmp_path)


def say(here: Running, status: dict[str, Any], key: ObjectKey) -> None:
    """Write a status as a station would have."""
    cleared = dict.fromkeys(("paused", "cause"))
    here.platform.cluster.patch(key, {"status": {**cleared, **status}}, owner=TEST, status=True)


STATES = [
    ({"paused": False, "cause": "running"}, 200),
    ({"paused": True, "cause": "budget-exhausted"}, 402),
    ({"paused": True, "cause": "agent-unreachable"}, 503),
    ({"paused": True}, 503),
    ({}, 503),
]


@pytest.mark.parametrize(("status", "code"), STATES, ids=str)
def test_a_status_is_one_answer(
    here: Running, site: Site, status: dict[str, Any], code: int
) -> None:
    say(here, status, GARAGE)

    answer = site.ask(f"garage/{GARAGE.name}", CHAT)

    assert answer.status_code == code, answer.text
    if code != 503:
        assert answer.headers["Cache-Control"] == "no-store"
        state = "exhausted" if code == 402 else "open"
        expected = {"kit": "garage", "name": GARAGE.name, "namespace": "", "state": state}
        assert answer.json() == {**expected, "cause": status["cause"]}
    else:
        assert "paused" in answer.json()["error"]["message"]


def test_what_changes_is_seen_at_once(here: Running, site: Site) -> None:
    codes = []
    for paused in (True, False, True, False):
        say(here, {"paused": paused, "cause": "budget-exhausted"}, GARAGE)
        codes.append(site.ask(f"garage/{GARAGE.name}", CHAT).status_code)

    assert codes == [402, 200, 402, 200]


def test_what_is_not_there_is_no_empty_purse(site: Site) -> None:
    assert site.ask("garage/garage-nobody").status_code == 503
    assert site.ask("meter/nobody").status_code == 503
    assert site.ask("meter/nobody?namespace=nowhere").status_code == 503


def test_no_such_kit(site: Site) -> None:
    answer = site.ask("boat/x")

    assert answer.status_code == 404


@pytest.mark.parametrize("path", ["garage/NO", "garage/x?namespace=A", "garage/x?other=1"])
def test_what_no_name_can_be_is_refused(site: Site, path: str) -> None:
    assert site.ask(path).status_code == 400


def test_another_teams_looks_like_one_that_is_not_there(here: Running, site: Site) -> None:
    say(here, {"paused": False, "cause": "running"}, GARAGE)

    theirs = site.ask(f"garage/{GARAGE.name}", STRANGER)
    missing = site.ask("garage/garage-nobody", STRANGER)

    assert (theirs.status_code, missing.status_code) == (403, 403)
    told, none = theirs.json()["error"], missing.json()["error"]
    assert told["message"].replace(GARAGE.name, "garage-nobody") == none["message"]


def test_nobody_is_let_in_without_a_proof(site: Site) -> None:
    assert site.ask(f"garage/{GARAGE.name}", "okt_wrong_0123456789").status_code == 401


@pytest.fixture(scope="module")
def meters(here: Running) -> list[ObjectKey]:
    """A meter that the garage made, and one of the same name in another namespace."""
    cluster = here.platform.cluster
    garage = cluster.get(GARAGE)
    assert garage is not None
    owner = {
        "apiVersion": XGARAGE.api_version,
        "kind": XGARAGE.kind,
        "name": GARAGE.name,
        "uid": garage["metadata"]["uid"],
        "controller": True,
    }
    keys = [ObjectKey(XMETER, "one", name) for name in ("meters-a", "meters-b")]
    for key, owners in zip(keys, ([owner], []), strict=True):
        space: Manifest = {"apiVersion": "v1", "kind": "Namespace"}
        cluster.create({**space, "metadata": {"name": key.namespace}}, owner=TEST)
        meta = {"name": key.name, "namespace": key.namespace, "ownerReferences": owners}
        meter = {"apiVersion": XMETER.api_version, "kind": XMETER.kind, "metadata": meta}
        spec = {"teamName": TEAM, "stage": "stage1"}
        cluster.create({**meter, "spec": spec}, owner=TEST)
        say(here, {"paused": True, "cause": "budget-exhausted"}, key)
    return keys


def test_a_nested_xr_belongs_to_the_order_above_it(site: Site, meters: list[ObjectKey]) -> None:
    inside, outside = (f"meter/one?namespace={key.namespace}" for key in meters)

    assert site.ask(inside, CHAT).status_code == 402
    assert site.ask(inside, CHAT).json()["namespace"] == "meters-a"
    assert site.ask(inside, STRANGER).status_code == 403
    assert site.ask(outside, CHAT).status_code == 403
    assert site.ask(outside).status_code == 402


def test_a_name_in_two_namespaces_needs_its_namespace(site: Site, meters: list[ObjectKey]) -> None:
    answer = site.ask("meter/one")

    assert answer.status_code == 400
    assert "meters-a, meters-b" in answer.json()["error"]["message"]
    assert len(meters) == 2


def test_a_cluster_that_does_not_answer_is_no_empty_purse(
    here: Running, without_cluster: Site
) -> None:
    say(here, {"paused": True, "cause": "budget-exhausted"}, GARAGE)

    answer = without_cluster.ask(f"garage/{GARAGE.name}", CHAT)

    assert answer.status_code == 503
    assert "cannot be read now" in answer.json()["error"]["message"]
