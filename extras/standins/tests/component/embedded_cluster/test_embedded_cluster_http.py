"""The HTTP API below kubectl: authentication, Status bodies, watches, and the Python client."""

from __future__ import annotations

import base64
import json
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import requests
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ground.objects.kube_objects import CONFIG_MAP, Kind, Manifest, ObjectKey
from orderkit_standins.cluster import EmbeddedCluster
from orderkit_standins.cluster.http import cluster_app, kubeconfig

if TYPE_CHECKING:
    from extras.standins.tests.component.embedded_cluster.conftest import Api

GARAGES = "/apis/blog.opsbogus.dev/v1alpha1/xgarages"
MAPS = "/api/v1/namespaces/default/configmaps"
GARAGE = Kind("blog.opsbogus.dev", "v1alpha1", "XGarage")
APPLY = {"Content-Type": "application/apply-patch+yaml"}


def garage(name: str = "g", **spec: Any) -> Manifest:
    return {
        "apiVersion": GARAGE.api_version,
        "kind": GARAGE.kind,
        "metadata": {"name": name},
        "spec": {"teamName": "ae86", **spec},
    }


def sheet(name: str, labels: dict[str, str] | None = None) -> Manifest:
    meta = {"name": name, "namespace": "default", "labels": labels or {}}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": {"a": "1"}}


@pytest.mark.parametrize("path", ["/api", "/apis", GARAGES, "/openapi/v3", "/nosuch"])
@pytest.mark.parametrize("given", ["", "Bearer wrong", "Basic !!", "Basic eDp3cm9uZw=="])
def test_without_the_token_everything_is_401(api: Api, path: str, given: str) -> None:
    answer = requests.get(api.url + path, headers={"Authorization": given}, timeout=60)

    assert answer.status_code == 401
    assert answer.json()["reason"] == "Unauthorized"


@pytest.mark.parametrize("path", ["/version", "/healthz", "/readyz", "/livez"])
def test_version_and_health_are_open(api: Api, path: str) -> None:
    assert requests.get(api.url + path, timeout=60).status_code == 200


def test_the_token_counts_as_a_basic_password(api: Api) -> None:
    answer = requests.get(f"{api.url}/apis", auth=("anybody", "test-token"), timeout=60)
    assert answer.status_code == 200


def test_an_empty_token_is_refused(cluster: EmbeddedCluster) -> None:
    with pytest.raises(ValueError, match="token"):
        cluster_app(cluster, token="")


@pytest.mark.parametrize(
    ("request_line", "body", "status"),
    [
        pytest.param(("GET", f"{GARAGES}/nope"), None, (404, "NotFound"), id="no such object"),
        pytest.param(("GET", "/apis/x.dev/v1/things"), None, (404, "NotFound"), id="no such kind"),
        pytest.param(
            ("POST", f"{GARAGES}/g"), {}, (405, "MethodNotAllowed"), id="post to an object"
        ),
        pytest.param(
            ("DELETE", f"{GARAGES}/g/status"), None, (405, "MethodNotAllowed"), id="status"
        ),
        pytest.param(
            ("GET", f"{MAPS}/a/status"), None, (404, "NotFound"), id="no such subresource"
        ),
        pytest.param(("POST", GARAGES), garage("G_"), (422, "Invalid"), id="a name off the rules"),
        pytest.param(("POST", GARAGES), garage(stage=5), (422, "Invalid"), id="a wrong type"),
        pytest.param(("POST", GARAGES), sheet("a"), (400, "BadRequest"), id="another kind"),
        pytest.param(("POST", GARAGES), [], (400, "BadRequest"), id="no object"),
        pytest.param(
            ("GET", f"{MAPS}?labelSelector=a%20b"), None, (400, "BadRequest"), id="selector"
        ),
        pytest.param(("GET", f"{MAPS}?fieldSelector=a=b"), None, (400, "BadRequest"), id="field"),
        pytest.param(
            ("POST", MAPS.replace("default", "no")),
            {"metadata": {"name": "x"}},
            (404, "NotFound"),
            id="no such namespace",
        ),
        pytest.param(
            ("PATCH", f"{GARAGES}/g"), {}, (415, "UnsupportedMediaType"), id="no patch type"
        ),
        pytest.param(
            ("DELETE", "/api/v1/namespaces/default"), None, (403, "Forbidden"), id="default"
        ),
    ],
)
def test_refusals_are_statuses(
    api: Api, request_line: tuple[str, str], body: object, status: tuple[int, str]
) -> None:
    answer = api.ask(*request_line, json=body)

    assert (answer.status_code, answer.json()["reason"]) == status, answer.text
    assert answer.json()["kind"] == "Status"
    assert answer.json()["code"] == answer.status_code


def test_an_invalid_object_comes_with_its_causes(api: Api) -> None:
    details = api.ask("POST", GARAGES, json=garage(stage="stage9")).json()["details"]

    assert (details["kind"], details["group"], details["name"]) == ("XGarage", GARAGE.group, "g")
    assert [(c["field"], c["reason"]) for c in details["causes"]] == [
        ("spec.stage", "FieldValueNotSupported")
    ]


def test_unknown_fields_are_dropped_with_a_warning_by_default(api: Api) -> None:
    answer = api.ask("POST", GARAGES, json=garage(colour="red"))

    assert answer.headers["Warning"] == '299 - "unknown field \\"spec.colour\\""'
    assert "colour" not in answer.json()["spec"]


def test_apply_reads_yaml_and_keeps_dates_as_text(api: Api) -> None:
    body = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\ndata:\n  day: 2026-11-21\n"
    path = f"{MAPS}/a?fieldManager=me&force=true"

    assert api.ask("PATCH", path, data=body, headers=APPLY).status_code == 201
    answer = api.ask("PATCH", path, data=body, headers=APPLY)
    assert answer.status_code == 200
    assert answer.json()["data"] == {"day": "2026-11-21"}


def test_apply_needs_a_field_manager(api: Api) -> None:
    answer = api.ask("PATCH", f"{MAPS}/a", json=sheet("a"), headers=APPLY)

    assert answer.status_code == 400
    assert "fieldManager" in answer.json()["message"]


def test_a_dry_run_changes_nothing(api: Api) -> None:
    before = api.cluster.store.version
    assert api.ask("POST", f"{GARAGES}?dryRun=All", json=garage()).status_code == 201
    api.cluster.create(garage(), owner="me")
    after = api.cluster.store.version
    assert api.ask("DELETE", f"{GARAGES}/g?dryRun=All").status_code == 200
    body = {"spec": {"stage": "stage3"}}
    headers = {"Content-Type": "application/merge-patch+json"}
    answer = api.ask("PATCH", f"{GARAGES}/g?dryRun=All", json=body, headers=headers)

    assert answer.json()["spec"]["stage"] == "stage3"
    assert (after, api.cluster.store.version) == (before + 1, after)


def test_a_collection_is_deleted_by_selector(api: Api) -> None:
    for name in ("a", "b"):
        api.cluster.create(sheet(name, {"name": name}), owner="me")
    api.ask("DELETE", f"{MAPS}?labelSelector=name%3Da")

    names = [m["metadata"]["name"] for m in api.cluster.list(CONFIG_MAP).items]
    assert names == ["b"]


def lines(answer: requests.Response) -> Any:
    return map(json.loads, answer.iter_lines(chunk_size=1))


def test_a_watch_starts_with_what_is_there_and_follows(api: Api) -> None:
    api.cluster.create(sheet("a"), owner="me")
    with api.ask("GET", f"{MAPS}?watch=true", stream=True) as answer:
        events = lines(answer)
        assert next(events)["type"] == "ADDED"
        api.cluster.delete(ObjectKey(CONFIG_MAP, "a", "default"))
        gone = next(events)

    assert (gone["type"], gone["object"]["data"]) == ("DELETED", {"a": "1"})


def test_labels_make_objects_appear_in_a_watch_and_vanish(api: Api) -> None:
    key = ObjectKey(CONFIG_MAP, "a", "default")
    since = api.cluster.create(sheet("a"), owner="me")["metadata"]["resourceVersion"]
    path = f"{MAPS}?watch=1&labelSelector=x%3Dy&timeoutSeconds=1&resourceVersion={since}"
    api.cluster.patch(key, {"metadata": {"labels": {"x": "y"}}}, owner="me")
    api.cluster.patch(key, {"data": {"a": "2"}}, owner="me")
    api.cluster.patch(key, {"metadata": {"labels": {"x": None}}}, owner="me")
    with api.ask("GET", path, stream=True) as answer:
        seen = [event["type"] for event in lines(answer)]

    assert seen == ["ADDED", "MODIFIED", "DELETED"]


def test_a_watch_ends_with_a_bookmark_when_its_time_is_over(api: Api) -> None:
    since = api.cluster.list(CONFIG_MAP).resource_version
    path = f"{MAPS}?watch=1&timeoutSeconds=1&allowWatchBookmarks=true&resourceVersion={since}"
    with api.ask("GET", path, stream=True) as answer:
        (event,) = lines(answer)

    assert event["type"] == "BOOKMARK"
    assert event["object"]["metadata"]["resourceVersion"] == since


def test_a_watch_from_too_long_ago_gets_410(api: Api) -> None:
    with api.ask("GET", f"{MAPS}?watch=1&resourceVersion=999999", stream=True) as answer:
        (event,) = lines(answer)

    assert event["type"] == "ERROR"
    assert (event["object"]["code"], event["object"]["reason"]) == (410, "Expired")


def watchers(cluster: EmbeddedCluster) -> int:
    watching = cluster.store._hub._watchers  # noqa: SLF001 - no public count, none needed
    return len(watching.get(("", "ConfigMap"), ()))


def test_a_watch_whose_client_left_is_dropped(api: Api) -> None:
    answer = api.ask("GET", f"{MAPS}?watch=1", stream=True)
    deadline = time.monotonic() + 90
    while watchers(api.cluster) != 1:
        assert time.monotonic() < deadline
        time.sleep(0.01)
    answer.close()
    while watchers(api.cluster):
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_closing_the_cluster_ends_http_watches_at_once(api: Api) -> None:
    with api.ask("GET", f"{MAPS}?watch=1", stream=True) as answer:
        timer = threading.Timer(0.1, api.cluster.close)
        timer.start()
        assert list(lines(answer)) == []
        timer.join()


def test_hundred_watches_cost_no_threads(api: Api) -> None:
    before = threading.active_count()
    answers = [api.ask("GET", f"{MAPS}?watch=1", stream=True) for _ in range(100)]
    api.cluster.create(sheet("a"), owner="me")
    try:
        assert all(next(lines(answer))["type"] == "ADDED" for answer in answers)
        assert threading.active_count() - before < 50, "the thread pool has 40 at most"
    finally:
        for answer in answers:
            answer.close()


def test_openapi_v3_changes_its_hash_with_a_definition(api: Api) -> None:
    def hashes() -> dict[str, str]:
        paths = api.ask("GET", "/openapi/v3").json()["paths"]
        return {name: entry["serverRelativeURL"] for name, entry in paths.items()}

    before = hashes()
    crd = ObjectKey(
        Kind("apiextensions.k8s.io", "v1", "CustomResourceDefinition"), "xgarages.blog.opsbogus.dev"
    )
    found = api.cluster.get(crd)
    assert found is not None
    schema = found["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    schema["properties"]["spec"]["properties"]["colour"] = {"type": "string"}
    api.cluster.replace(found, owner="me")

    changed = {name for name, url in hashes().items() if before.get(name) != url}
    assert changed == {"apis/blog.opsbogus.dev/v1alpha1"}
    assert api.ask("GET", before["api/v1"]).json()["openapi"] == "3.0.0"


def varint_field(number: int, payload: bytes) -> bytes:
    assert len(payload) < 128
    return bytes([number << 3 | 2, len(payload)]) + payload


def test_protobuf_bodies_of_unknown_kinds_are_refused(api: Api) -> None:
    type_meta = varint_field(1, b"v1") + varint_field(2, b"Pod")
    headers = {"Content-Type": "application/vnd.kubernetes.protobuf"}
    body = b"k8s\x00" + varint_field(1, type_meta)

    assert api.ask("POST", MAPS, data=body, headers=headers).status_code == 415
    for broken in (b"\x0a\xff", b"\x08\x01", b"\x0b\x08\x01\x0c"):  # cut off, a number, a group
        answer = api.ask("POST", MAPS, data=b"k8s\x00" + broken, headers=headers)
        assert answer.status_code == 400


def test_protobuf_bytes_arrive_as_base64(api: Api) -> None:
    entry = varint_field(1, b"k") + varint_field(2, b"\x00\xff")
    raw = varint_field(1, varint_field(1, b"s")) + varint_field(2, entry)
    envelope = varint_field(1, varint_field(1, b"v1") + varint_field(2, b"Secret"))
    body = b"k8s\x00" + envelope + varint_field(2, raw)
    headers = {"Content-Type": "application/vnd.kubernetes.protobuf"}
    answer = api.ask("POST", "/api/v1/namespaces/default/secrets", data=body, headers=headers)

    assert answer.json()["data"] == {"k": base64.b64encode(b"\x00\xff").decode()}


def test_the_python_client_finds_applies_and_watches(api: Api, tmp_path: Path) -> None:
    from kubernetes import config, dynamic

    file = tmp_path / "kubeconfig"
    file.write_text(yaml.safe_dump(kubeconfig(api.url, "test-token")))
    connect: Any = config.new_client_from_config
    with connect(str(file)) as client:
        make: Any = dynamic.DynamicClient
        cluster = make(client, cache_file=str(tmp_path / "discovery.json"))
        garages = cluster.resources.get(api_version=GARAGE.api_version, kind=GARAGE.kind)
        garages.server_side_apply(body=garage(), name="g", field_manager="me")
        change = garage(stage="stage3")
        api.cluster.apply(garage(stage="stage2"), owner="other")
        with pytest.raises(dynamic.exceptions.ConflictError):
            garages.server_side_apply(body=change, name="g", field_manager="me")
        garages.server_side_apply(body=change, name="g", field_manager="me", force_conflicts=True)
        (event,) = garages.watch(timeout=1)
        garages.delete(name="g", propagation_policy="Foreground")

    assert event["raw_object"]["spec"]["stage"] == "stage3"


def test_a_group_prefers_its_most_stable_and_newest_version(api: Api) -> None:
    """In the order that the documentation of Kubernetes gives as an example."""
    order = ["v10", "v2", "v1", "v11beta2", "v10beta3", "v3beta1", "v12alpha1", "v11alpha2", "foo1"]
    schema = {"openAPIV3Schema": {"type": "object"}}
    versions = [
        {"name": name, "served": True, "storage": name == "v1", "schema": schema}
        for name in sorted(order)
    ]
    names = {"kind": "Lap", "plural": "laps", "singular": "lap", "listKind": "LapList"}
    api.cluster.apply(
        {
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {"name": "laps.versions.dev"},
            "spec": {
                "group": "versions.dev", "scope": "Cluster", "names": names, "versions": versions,
            },
        },
        owner="test",
    )  # fmt: skip

    group = api.ask("GET", "/apis/versions.dev").json()

    assert [each["version"] for each in group["versions"]] == order
    assert group["preferredVersion"]["version"] == "v10"


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3)
    ),
    max_leaves=8,
)
BODIES = JSON_VALUES | st.fixed_dictionaries(
    {},
    optional={
        "apiVersion": st.just("v1") | JSON_VALUES,
        "kind": st.just("ConfigMap") | JSON_VALUES,
        "metadata": st.fixed_dictionaries(
            {},
            optional=dict.fromkeys(
                (
                    "name",
                    "namespace",
                    "labels",
                    "annotations",
                    "finalizers",
                    "ownerReferences",
                    "managedFields",
                    "resourceVersion",
                    "uid",
                ),
                JSON_VALUES,
            ),
        ),
        "data": JSON_VALUES,
    },
)
PATCH_TYPES = (
    "json-patch+json",
    "merge-patch+json",
    "strategic-merge-patch+json",
    "apply-patch+yaml",
)


def test_an_apply_with_half_characters_is_refused_as_yaml(api: Api) -> None:
    path = f"{MAPS}/half?fieldManager=me"
    whole = {**sheet("half"), "data": {"like an escape": "\\ud83c"}}

    refused = api.ask("PATCH", path, json={**whole, "data": {"car": "🏎"}}, headers=APPLY)

    assert refused.status_code == 400
    assert "found invalid Unicode character escape code" in refused.json()["message"]
    assert api.ask("PATCH", path, json=whole, headers=APPLY).status_code == 201


@settings(
    max_examples=80, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(body=BODIES, kind=st.sampled_from(PATCH_TYPES))
def test_no_body_makes_the_server_fail(api: Api, body: Any, kind: str) -> None:
    api.cluster.apply(sheet("a"), owner="me")
    headers = {"Content-Type": f"application/{kind}"}
    answers = [
        api.ask("POST", MAPS, json=body),
        api.ask("PUT", f"{MAPS}/a", json=body),
        api.ask("PATCH", f"{MAPS}/a?fieldManager=x&force=1", json=body, headers=headers),
    ]

    assert all(answer.status_code < 500 or _wrong_type(answer) for answer in answers)


def _wrong_type(answer: requests.Response) -> bool:
    return "failed to create typed patch object" in answer.json()["message"]


def test_what_is_shared_is_what_get_copies(cluster: EmbeddedCluster) -> None:
    made = cluster.create(garage(), owner="me")
    key = ObjectKey.of(made)

    shared, copied = cluster.shared(key), cluster.get(key)

    assert shared == copied == made
    assert copied is not None
    copied["spec"]["teamName"] = "other"
    assert cluster.shared(key) == made
    assert cluster.shared(ObjectKey(GARAGE, "nope")) is None
