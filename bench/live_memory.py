"""The memory of a live model of 10,000 orders with 22 parts; run by ``bench.live``."""

from __future__ import annotations

import gc
import json
import os
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from bench.ledger import HEAD, ORDERS, application, entry_of
from bench.platform import rss_mb
from ground.objects.kube_objects import APPLICATION, TRACKING_ID, Kind, Manifest
from orderkit.cli.connecting import connect, load_settings
from orderkit.flows.live.order_model import OrderModel
from orderkit.ports.cluster import ObjectList, WatchEvent, WatchStop

PARTS, PAGE = 22, 500
XGARAGE = Kind("blog.opsbogus.dev", "v1alpha1", "XGarage")
PART_KINDS = [Kind(f"k{n}.example.org", "v1", f"Part{n}") for n in range(PARTS)]


class MadeUpCluster:
    """Lists objects that it makes page by page, and never reports a change."""

    def list_pages(self, kind: Kind, *, namespace: str | None = None) -> Iterator[ObjectList]:
        del namespace
        for at in range(0, ORDERS, PAGE):
            yield ObjectList(tuple(_made(kind, number) for number in range(at, at + PAGE)), "1")

    def watch(
        self,
        kind: Kind,
        *,
        namespace: str | None = None,
        since: str,
        timeout_s: float,
        stop: WatchStop | None = None,
    ) -> Iterator[WatchEvent]:
        del kind, namespace, since
        assert stop is not None
        stop.wait(timeout_s)
        yield from ()


def _made(kind: Kind, number: int) -> Manifest:
    if kind == APPLICATION:
        return _application(number)
    return _xr(number) if kind == XGARAGE else _part(kind, number)


def _application(number: int) -> Manifest:
    return application(entry_of(number), "http://127.0.0.1:3000")


def _xr(number: int) -> Manifest:
    order = entry_of(number).order
    tracked = {TRACKING_ID: f"{order}:{XGARAGE.group}/{XGARAGE.kind}:/{order}"}
    references = [
        {
            "apiVersion": kind.api_version,
            "kind": kind.kind,
            "name": f"{order}-{n}",
            "namespace": order,
        }
        for n, kind in enumerate(PART_KINDS)
    ]
    return {
        **_identity(XGARAGE),
        "metadata": {"name": order, "uid": _uid(number), "generation": 1, "annotations": tracked},
        "spec": {"teamName": "crew", "stage": "stage2", "crossplane": {"resourceRefs": references}},
        "status": {"namespace": order, "stage": "stage2", "conditions": _conditions()},
    }


def _part(kind: Kind, number: int) -> Manifest:
    order, n = entry_of(number).order, PART_KINDS.index(kind)
    owner = {**_identity(XGARAGE), "name": order, "uid": _uid(number), "controller": True}
    return {
        **_identity(kind),
        "metadata": {
            "name": f"{order}-{n}",
            "namespace": order,
            "labels": {"crossplane.io/composite": order},
            "ownerReferences": [owner],
        },
        "spec": {"forProvider": {f"field{at}": f"value {number}" for at in range(10)}},
        "status": {"atProvider": {"id": HEAD}, "conditions": _conditions()},
    }


def _identity(kind: Kind) -> dict[str, Any]:
    return {"apiVersion": kind.api_version, "kind": kind.kind}


def _uid(number: int) -> str:
    return f"00000000-0000-4000-8000-{number:012d}"


def _conditions() -> list[Mapping[str, Any]]:
    at = {"status": "True", "lastTransitionTime": "2026-11-21T12:00:02Z", "observedGeneration": 1}
    return [{"type": type_, "reason": "Available", **at} for type_ in ("Synced", "Ready")]


def main(platform_file: str) -> None:
    made_up: Any = MadeUpCluster()
    platform = replace(connect(load_settings(platform_file)), cluster=made_up)
    gc.collect()
    before_mb, begin_s = rss_mb(os.getpid()), time.perf_counter()
    model = OrderModel(platform)
    model.start()
    model.wait_complete(600)
    complete_s = time.perf_counter() - begin_s
    rows = model.rows()
    assert len(rows) == ORDERS
    assert {row.row.parts.total for row in rows} == {PARTS}
    gc.collect()
    after_mb = rss_mb(os.getpid())
    measured = {"model_mb": after_mb - before_mb, "process_mb": after_mb, "complete_s": complete_s}
    print(json.dumps(measured))
    model.close()


if __name__ == "__main__":
    main(sys.argv[1])
