"""The authority of a cluster that idpbuilder made: what counts as one, and where its copy is."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from pathlib import Path

import pytest

from ground.errors import InvalidInputError, NotFoundError
from orderkit.adapters.kube.idpbuilder_authority import SECRET, authority_file
from orderkit_standins.cluster import EmbeddedCluster

PEM = "-----BEGIN CERTIFICATE-----\nx\n-----END CERTIFICATE-----\n"


@pytest.fixture
def cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[EmbeddedCluster]:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    made = EmbeddedCluster(tmp_path / "cluster.sqlite")
    yield made
    made.close()


def keep(cluster: EmbeddedCluster, data: dict[str, str]) -> None:
    place = {"name": SECRET.name, "namespace": SECRET.namespace}
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": place, "data": data}
    cluster.apply(secret, owner="test")


def encoded(data: bytes) -> str:
    return base64.b64encode(data).decode()


def test_a_copy_of_each_authority_is_kept_under_a_name_of_its_content(
    cluster: EmbeddedCluster, tmp_path: Path
) -> None:
    keep(cluster, {"ca.crt": encoded(PEM.encode())})
    path = authority_file(cluster)
    assert path.parent == tmp_path / "cache" / "orderkit"
    assert path.read_text() == PEM
    path.write_text(f"{PEM}kept")

    assert authority_file(cluster) == path
    assert path.read_text() == f"{PEM}kept"
    keep(cluster, {"ca.crt": encoded(PEM.replace("x", "y").encode())})
    assert authority_file(cluster) != path


def test_without_a_cache_folder_of_its_own_the_home_has_one(
    cluster: EmbeddedCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    keep(cluster, {"ca.crt": encoded(PEM.encode())})

    assert authority_file(cluster).parent == tmp_path / "home" / ".cache" / "orderkit"


def test_a_cluster_without_an_authority_is_told_apart_from_one_with_a_bad_one(
    cluster: EmbeddedCluster,
) -> None:
    with pytest.raises(NotFoundError, match="no Secret default/idpbuilder-cert"):
        authority_file(cluster)
    keep(cluster, {"other": encoded(b"x")})
    with pytest.raises(InvalidInputError, match="holds no certificate"):
        authority_file(cluster)
    keep(cluster, {"ca.crt": encoded(b"no certificate")})
    with pytest.raises(InvalidInputError, match="holds no certificate"):
        authority_file(cluster)
    keep(cluster, {"ca.crt": encoded(b"\xff\xfe")})
    with pytest.raises(InvalidInputError, match="is not base64 text"):
        authority_file(cluster)
