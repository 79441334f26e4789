"""What survives: kill -9, closing and opening, and what a second process must not do."""

from __future__ import annotations

import signal
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from ground.errors import RefusedError
from ground.objects.kube_objects import CONFIG_MAP, NAMESPACE, Manifest, ObjectKey
from orderkit.ports.cluster import ExpiredError
from orderkit_standins.cluster import EmbeddedCluster

_WRITER = """
import sys
from pathlib import Path
from orderkit_standins.cluster import EmbeddedCluster

cluster = EmbeddedCluster(Path(sys.argv[1]))
number = 0
while True:
    number += 1
    made = cluster.apply(
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": f"n{number % 50}", "namespace": "default"},
            "data": {"number": str(number)},
        },
        owner="writer",
    )
    print(number, made["metadata"]["resourceVersion"], flush=True)
"""


def sheet(name: str, **data: str) -> Manifest:
    meta = {"name": name, "namespace": "default"}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": data}


@pytest.mark.parametrize("writes", [1, 73, 400])
def test_every_acknowledged_write_survives_kill_9(cluster_file: Path, writes: int) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", _WRITER, str(cluster_file)], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        lines = [process.stdout.readline() for _ in range(writes)]
        process.send_signal(signal.SIGKILL)
        lines += [line for line in process.stdout if line.endswith("\n")]
    acknowledged = {}
    for line in lines:
        number, version = map(int, line.split())
        acknowledged[f"n{number % 50}"] = (number, version)

    cluster = EmbeddedCluster(cluster_file)
    try:
        for name, (number, version) in acknowledged.items():
            found = cluster.get(ObjectKey(CONFIG_MAP, name, "default"))
            assert found is not None
            assert int(found["data"]["number"]) >= number
            assert int(found["metadata"]["resourceVersion"]) >= version
        newest = max(version for _, version in acknowledged.values())
        made = cluster.create(sheet("after"), owner="me")
        assert int(made["metadata"]["resourceVersion"]) > newest
    finally:
        cluster.close()


def test_a_write_that_the_disk_refuses_fails_and_leaves_nothing(cluster_file: Path) -> None:
    EmbeddedCluster(cluster_file).close()
    with closing(sqlite3.connect(cluster_file)) as database:
        database.execute(
            "CREATE TRIGGER full BEFORE INSERT ON changes WHEN NEW.name = 'refused'"
            " BEGIN SELECT RAISE(ABORT, 'disk full'); END"
        )
    cluster = EmbeddedCluster(cluster_file)

    with pytest.raises(sqlite3.Error, match="disk full"):
        cluster.create(sheet("refused"), owner="me")
    cluster.create(sheet("after"), owner="me")

    cluster.close()
    with closing(EmbeddedCluster(cluster_file)) as reopened:
        assert reopened.get(ObjectKey(CONFIG_MAP, "refused", "default")) is None
        assert reopened.get(ObjectKey(CONFIG_MAP, "after", "default")) is not None


def test_a_watch_resumes_after_a_restart(cluster_file: Path) -> None:
    cluster = EmbeddedCluster(cluster_file)
    since = cluster.list(CONFIG_MAP).resource_version
    cluster.create(sheet("a", x="1"), owner="me")
    cluster.apply(sheet("a", x="2"), owner="me")
    cluster.delete(ObjectKey(CONFIG_MAP, "a", "default"))
    cluster.close()

    cluster = EmbeddedCluster(cluster_file)
    events = list(cluster.watch(CONFIG_MAP, since=since, timeout_s=0.05))
    cluster.close()
    assert [event.type for event in events] == ["ADDED", "MODIFIED", "DELETED", "BOOKMARK"]
    assert events[2].object["data"] == {"x": "2"}


def test_a_position_older_than_the_history_expires(cluster_file: Path) -> None:
    cluster = EmbeddedCluster(cluster_file, history=10)
    since = cluster.create(sheet("a"), owner="me")["metadata"]["resourceVersion"]
    for number in range(1000):
        cluster.apply(sheet("a", n=str(number)), owner="me")
    with pytest.raises(ExpiredError, match="too old resource version"):
        list(cluster.watch(CONFIG_MAP, since=since, timeout_s=0.05))
    cluster.close()

    cluster = EmbeddedCluster(cluster_file, history=10)
    with pytest.raises(ExpiredError, match="too old resource version"):
        list(cluster.watch(CONFIG_MAP, since=since, timeout_s=0.05))
    cluster.close()


def test_a_position_from_the_future_expires(cluster_file: Path) -> None:
    cluster = EmbeddedCluster(cluster_file)
    with pytest.raises(ExpiredError):
        list(cluster.watch(CONFIG_MAP, since="999999", timeout_s=0.05))
    cluster.close()


def test_a_second_process_is_refused(cluster_file: Path) -> None:
    cluster = EmbeddedCluster(cluster_file)
    with pytest.raises(RefusedError, match="locked") as caught:
        EmbeddedCluster(cluster_file)
    cluster.close()

    assert "another process" in caught.value.hint


def test_a_file_of_a_newer_version_is_refused(cluster_file: Path) -> None:
    EmbeddedCluster(cluster_file).close()
    db = sqlite3.connect(cluster_file)
    db.execute("PRAGMA user_version=99")
    db.close()

    with pytest.raises(RefusedError, match="newer Orderkit"):
        EmbeddedCluster(cluster_file)


def test_the_first_namespaces_are_there_and_stay(cluster_file: Path) -> None:
    cluster = EmbeddedCluster(cluster_file)
    first = cluster.get(ObjectKey(NAMESPACE, "kube-system"))
    cluster.close()
    cluster = EmbeddedCluster(cluster_file)
    assert cluster.get(ObjectKey(NAMESPACE, "kube-system")) == first
    assert cluster.get(ObjectKey(NAMESPACE, "default")) is not None
    cluster.close()


def test_closing_ends_open_watches(cluster_file: Path) -> None:
    cluster = EmbeddedCluster(cluster_file)
    since = cluster.list(CONFIG_MAP).resource_version
    stream = cluster.watch(CONFIG_MAP, since=since, timeout_s=60)
    cluster.create(sheet("a"), owner="me")
    assert next(stream).type == "ADDED"
    cluster.close()
    assert [event.type for event in stream] == ["BOOKMARK"]
