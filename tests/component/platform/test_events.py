"""What the cluster says about one order, and about nobody else's."""

from __future__ import annotations

import json
from typing import Any

from commands import Command

from ground.objects.kube_objects import EVENT, Manifest, ObjectKey
from orderkit.flows.order.order_objects import order_events
from orderkit.flows.repeating import until
from orderkit.ports.clock import SystemClock
from orderkit_standins.serve_platform import Running


def event(about: ObjectKey, name: str, **said: Any) -> Manifest:
    reference = {
        "apiVersion": about.kind.api_version,
        "kind": about.kind.kind,
        "name": about.name,
        **({"namespace": about.namespace} if about.namespace else {}),
    }
    return {
        "apiVersion": "v1",
        "kind": EVENT.kind,
        "metadata": {"name": name, "namespace": about.namespace or "default"},
        "involvedObject": reference,
        **said,
    }


def test_an_orders_own_events_are_shown(orderkit: Command, platform: Running, team: str) -> None:
    order = f"garage-{team}"
    assert orderkit("order", "garage", f"team_name={team}", "stage=stage2").code == 0
    ports, now = platform.platform, platform.platform.clock.now()
    report = json.loads(orderkit("status", order, "--json").out)
    mine = ObjectKey.from_json(report["xr"])
    other = ObjectKey(mine.kind, "garage-somebody")
    late = now.replace(year=now.year + 1).strftime("%Y-%m-%dT%H:%M:%SZ")
    told = {"type": "Warning", "reason": "Tried", "message": "no luck", "lastTimestamp": late}
    ports.cluster.create(event(mine, f"{order}.1", count=3, **told), owner="test")
    ports.cluster.create(event(other, f"{order}.2", **told), owner="test")

    found = until(
        SystemClock(),
        lambda: order_events(ports, order, limit=50),
        lambda events: len(events) > 1,
        timeout_s=90,
        goal="the assembler's own events",
    )

    assert (found[0].object.key, found[0].reason, found[0].count) == (mine, "Tried", 3)
    assert other not in {each.object.key for each in found}
    shown = orderkit("events", order, "--limit", "1")
    assert "no luck" in shown.out
    assert "(3 times)" in shown.out
    assert len(json.loads(orderkit("events", order, "--limit", "1", "--json").out)["events"]) == 1


def test_an_unknown_order_is_told(orderkit: Command) -> None:
    assert orderkit("events", "garage-nobody").code == 1
