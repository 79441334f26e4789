"""Which requests KubeCluster sends, and what it makes of each answer."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import yaml
from answering import Reply, Script, scripted

from ground.errors import ConflictError, NotFoundError, RemoteError
from ground.objects.kube_objects import CONFIG_MAP, NAMESPACE, Kind, ObjectKey
from orderkit.adapters.kube.cluster import KubeCluster
from orderkit.ports.cluster import InvalidObjectError, NoSuchKindError

CAR = Kind("garage.example.org", "v1", "Car")
CARS = "/apis/garage.example.org/v1"
CORE: Reply = (200, {"resources": [
    {"name": "configmaps", "kind": "ConfigMap", "namespaced": True},
    {"name": "namespaces", "kind": "Namespace", "namespaced": False},
    {"name": "namespaces/status", "kind": "Namespace", "namespaced": False},
]})  # fmt: skip
SERVED: Reply = (200, {"resources": [
    {"name": "cars/status", "kind": "Car", "namespaced": True},
    {"name": "cars", "kind": "Car", "namespaced": True},
    {"name": "wheels", "kind": "Wheel"},
]})  # fmt: skip
GONE: Reply = (404, b"404 page not found")
ITEM = "/api/v1/namespaces/n/configmaps/a"
KEY = ObjectKey(CONFIG_MAP, "a", "n")
Replies = Mapping[str, Reply | list[Reply]]
Open = Callable[[Replies], Any]


@pytest.fixture
def kube(tmp_path: Path) -> Open:
    @contextmanager
    def opened(replies: Replies) -> Iterator[tuple[KubeCluster, Script]]:
        with scripted({"GET /api/v1": CORE, f"GET {CARS}": SERVED, **replies}) as script:
            named = {"name": "x"}
            path = tmp_path / "kubeconfig"
            content = {
                "apiVersion": "v1", "kind": "Config", "current-context": "x",
                "clusters": [{**named, "cluster": {"server": script.url}}],
                "users": [{**named, "user": {}}],
                "contexts": [{**named, "context": {"cluster": "x", "user": "x"}}],
            }  # fmt: skip
            path.write_text(yaml.safe_dump(content))
            with KubeCluster.from_kubeconfig(path) as client:
                yield client, script

    return opened


def config(**meta: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", **meta}}


def test_a_kind_of_the_core_is_asked_for_once_and_another_each_time(kube: Open) -> None:
    with kube({}) as (client, script):
        assert client.serves(NAMESPACE)
        assert client.serves(NAMESPACE)
        assert script.asked == ["GET /api/v1"]
        assert client.serves(CAR)
        assert client.serves(CAR)
        assert client.plural(CAR) == "cars"
        assert client.is_namespaced(CAR)
        assert not client.is_namespaced(NAMESPACE)
        assert script.asked.count(f"GET {CARS}") == 3


def test_a_kind_that_is_not_served_may_be_served_later(kube: Open) -> None:
    car = {"metadata": {"name": "a"}}
    replies: Replies = {
        f"GET {CARS}": [GONE, (200, {"resources": [{"name": "wheels", "kind": "Wheel"}]}), SERVED],
        f"GET {CARS}/namespaces/n/cars/a": (200, car),
    }
    with kube(replies) as (client, _):
        for _again in range(2):
            with pytest.raises(NoSuchKindError, match='no matches for kind "Car" in version'):
                client.get(ObjectKey(CAR, "a", "n"))
        assert client.get(ObjectKey(CAR, "a", "n")) == car
    with kube({f"GET {CARS}": (404, {})}) as (client, _):
        assert client.plural(CAR) is None
        assert not client.serves(CAR)


def test_a_kind_whose_path_is_gone_is_asked_for_again(kube: Open) -> None:
    path = f"GET {CARS}/namespaces/n/cars/a"
    with kube({path: GONE}) as (client, script):
        for _again in range(2):
            with pytest.raises(NoSuchKindError):
                client.get(ObjectKey(CAR, "a", "n"))
        assert script.asked == [f"GET {CARS}", path] * 2


def test_an_object_that_is_not_there_is_none_and_a_failure_is_not(kube: Open) -> None:
    missing = {"reason": "NotFound", "details": {"kind": "configmaps", "name": "a"}}
    with kube({f"GET {ITEM}": (404, missing)}) as (client, script):
        assert client.get(KEY) is None
        script.asked.clear()
        assert client.get(ObjectKey(CONFIG_MAP, "a")) is None
        assert script.asked == []
    with kube({f"GET {ITEM}": (503, {})}) as (client, _), pytest.raises(RemoteError, match="503"):
        client.get(KEY)


def listed(*names: str, version: str = "7", token: str = "") -> Reply:
    items = [{"metadata": {"name": name}} for name in names]
    return 200, {"metadata": {"resourceVersion": version, "continue": token}, "items": items}


def test_a_list_is_read_page_by_page_with_its_labels(kube: Open) -> None:
    path = "GET /api/v1/namespaces/n/configmaps"
    replies: Replies = {
        f"{path}?limit=500&labelSelector=a=b,c=d": listed("a", version="6", token="t-1"),
        f"{path}?limit=500&labelSelector=a=b,c=d&continue=t-1": listed("b"),
    }
    with kube(replies) as (client, _):
        found = client.list(CONFIG_MAP, namespace="n", labels={"a": "b", "c": "d"})

    assert [item["metadata"]["name"] for item in found.items] == ["a", "b"]
    assert {(item["apiVersion"], item["kind"]) for item in found.items} == {("v1", "ConfigMap")}
    assert found.resource_version == "7"
    pages: Replies = {
        "GET /api/v1/configmaps": listed("a", token="t-1"),
        "GET /api/v1/configmaps?continue=t-1": (200, {"metadata": {}, "items": None}),
    }
    with kube(pages) as (client, _):
        sizes = [len(page.items) for page in client.list_pages(CONFIG_MAP)]
        assert sizes == [1, 0]


def test_the_end_of_an_object_names_how_and_which(kube: Open) -> None:
    path = f"DELETE {ITEM}"
    with kube({path: (200, {})}) as (client, script):
        assert client.delete(KEY)
        assert script.sent[path]["propagationPolicy"] == "Background"
        assert "preconditions" not in script.sent[path]
        assert client.delete(KEY, propagation="Foreground", uid="u-1")
        assert script.sent[path]["propagationPolicy"] == "Foreground"
        assert script.sent[path]["preconditions"] == {"uid": "u-1"}
        script.asked.clear()
        assert not client.delete(ObjectKey(CONFIG_MAP, "a"))
        assert script.asked == []
    missing = {"reason": "NotFound", "details": {"kind": "configmaps", "name": "a"}}
    with kube({path: (404, missing)}) as (client, _):
        assert not client.delete(KEY)
    with kube({path: (409, {})}) as (client, _), pytest.raises(ConflictError):
        client.delete(KEY)


def test_writes_go_to_the_object_or_to_its_status(kube: Open) -> None:
    manifest = config(namespace="n")
    place = {"name": "n"}
    space = {"apiVersion": "v1", "kind": "Namespace", "metadata": place}
    done: Reply = (200, {})
    replies: Replies = {
        "POST /api/v1/namespaces/n/configmaps": done,
        "POST /api/v1/namespaces": done,
        f"PUT {ITEM}": done,
        f"PATCH {ITEM}": done,
        "PUT /api/v1/namespaces/n/status": done,
        "PATCH /api/v1/namespaces/n/status": done,
    }
    with kube(replies) as (client, script):
        client.create(manifest, owner="me")
        client.create(space, owner="me")
        client.replace(manifest, owner="me")
        client.apply(manifest, owner="me")
        client.patch(KEY, {"data": {}}, owner="me")
        client.replace(space, owner="me", status=True)
        client.apply(space, owner="me", status=True)
        client.patch(ObjectKey(NAMESPACE, "n"), {}, owner="me", status=True)
        assert [line for line in script.asked if not line.startswith("GET")] == [
            "POST /api/v1/namespaces/n/configmaps", "POST /api/v1/namespaces",
            f"PUT {ITEM}", f"PATCH {ITEM}", f"PATCH {ITEM}",
            "PUT /api/v1/namespaces/n/status", "PATCH /api/v1/namespaces/n/status",
            "PATCH /api/v1/namespaces/n/status",
        ]  # fmt: skip
        with pytest.raises(NotFoundError, match="has no status subresource"):
            client.apply(manifest, owner="me", status=True)
        with pytest.raises(NotFoundError, match="has no status subresource"):
            client.patch(KEY, {}, owner="me", status=True)
        with pytest.raises(InvalidObjectError, match=r'"a" is invalid: metadata\.namespace'):
            client.create(config(), owner="me")


def test_the_servers_clock_is_in_its_answers(kube: Open) -> None:
    with kube({"GET /version": (200, {"gitVersion": "v1.34"})}) as (client, _):
        assert client.version() == "v1.34"
        clock = client.clock()
    assert clock is not None
    assert abs((clock - datetime.now(UTC)).total_seconds()) < 600
    assert client.clock() is None  # nobody answers any more
    with kube({"GET /version": (200, {})}) as (client, _):
        assert client.version() == ""


def test_descriptions_of_a_group_are_none_where_there_is_no_such_group(kube: Open) -> None:
    core, cars = {"openapi": "core"}, {"openapi": "cars"}
    replies: Replies = {
        "GET /openapi/v3/api/v1": (200, core),
        "GET /openapi/v3/apis/garage.example.org/v1": (200, cars),
    }
    with kube(replies) as (client, _):
        assert client.openapi("", "v1") == core
        assert client.openapi("garage.example.org", "v1") == cars
        assert client.openapi("other", "v1") is None
    with kube({"GET /openapi/v3/api/v1": (503, {})}) as (client, _), pytest.raises(RemoteError):
        client.openapi("", "v1")
