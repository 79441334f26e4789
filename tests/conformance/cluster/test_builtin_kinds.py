"""Our own table of Kubernetes' kinds, held against what a real API server says of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from ground.objects.kube_objects import Kind
from kubeschema.extensions import PRESERVE
from kubeschema.known import built_in, openapi_kind
from orderkit.ports.cluster import Cluster

_OF_OTHERS = {"metadata", "status"}
"""Judged elsewhere, or never written by a composition."""


_IN_FACT = {"spec"}
"""Required by the server's code where its document does not say so."""


@pytest.fixture(autouse=True)
def _real(request: pytest.FixtureRequest) -> None:
    if "embedded" in request.node.name:
        pytest.skip("its own schemas are open inside")


def _schema(known: Any, version: str) -> Mapping[str, Any]:
    found: Mapping[str, Any] = known.validator.schema(version)
    return found


def _differences(ours: Any, theirs: Any, path: str) -> Iterator[str]:
    if ours.get(PRESERVE):
        return
    mine, real = ours.get("properties"), theirs.get("properties") or {}
    if mine is not None:
        yield from (f"{path}.{name}: ours only" for name in mine.keys() - real.keys())
        yield from (
            f"{path}.{name}: theirs only" for name in real.keys() - mine.keys() - _OF_OTHERS
        )
        for name in mine.keys() & real.keys():
            yield from _differences(mine[name], real[name], f"{path}.{name}")
        wanted = set(ours.get("required") or ()) - _IN_FACT, set(theirs.get("required") or ())
        if wanted[0] != wanted[1] - _IN_FACT:
            yield f"{path}: ours requires {wanted[0] - wanted[1]}, theirs {wanted[1] - wanted[0]}"
    if "items" in ours:
        yield from _differences(ours["items"], theirs.get("items") or {}, f"{path}[]")
    if "type" in ours and "type" in theirs and ours["type"] != theirs["type"]:
        yield f"{path}: {ours['type']} is {theirs['type']}"
    if "enum" in ours and "enum" in theirs and set(ours["enum"]) != set(theirs["enum"]):
        yield f"{path}: {ours['enum']} is {theirs['enum']}"


def test_the_table_of_built_in_kinds_is_what_the_server_has(cluster: Cluster) -> None:
    found: list[str] = []
    for (group, name), known in built_in().items():
        (version,) = known.validator.versions
        document = cluster.openapi(group, version)
        assert document is not None, group
        theirs = openapi_kind(document, Kind(group, version, name))
        assert theirs is not None, name
        assert (known.plural, known.namespaced) == (theirs.plural, theirs.namespaced)
        found += _differences(_schema(known, version), _schema(theirs, version), name)

    assert not found, "\n".join(found)
