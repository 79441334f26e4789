"""What rows wait for: looks at silent parts, and reads of Secrets before a text is shown."""

from __future__ import annotations

import contextlib
import json
import logging
import queue
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from bareplatform import platform_of
from ownforge import OwnForge
from refusedreads import RefusedReads
from rivals import Rival
from tests.unit.order import test_order_summary as summary

from ground.names import CommitSha, OrderId, TeamName
from ground.objects.kube_objects import Kind, Manifest, ObjectKey
from ground.shapes import located
from orderkit.core.order.ledger import OrderEntry
from orderkit.core.order.order_view import FailingPart, OrderRow, OrderSources, Parts, PartState
from orderkit.core.order.part_failures import MISSING, UNREAD, UNSYNCED
from orderkit.core.secret_values import SecretTexts
from orderkit.flows.live.row_looks import BEING_CHECKED, RowCauses, RowHeads, RowLooks, RowMasks
from orderkit.ports.clock import SystemClock
from orderkit_standins.cluster import EmbeddedCluster
from orderkit_standins.testing import permissive_crd

ENTRY = OrderEntry(TeamName("ae86"), OrderId("garage-a"))
CLAIM = Kind("", "v1", "PersistentVolumeClaim")
KEY = ObjectKey(CLAIM, "disk", "shop")
XR_KEY = ObjectKey(Kind("example.org", "v1", "XGarage"), "garage-a")
EVENT = "no volume fits"
SIZE = {"requests": {"storage": "1Gi"}}
Announced = queue.Queue[str]


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[EmbeddedCluster]:
    found = EmbeddedCluster(tmp_path / "cluster.sqlite")
    found.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}}, owner="x")
    claim = found.create(
        {
            "apiVersion": "v1",
            "kind": CLAIM.kind,
            "metadata": {"name": "disk", "namespace": "shop"},
            "spec": {
                "accessModes": ["ReadWriteOnce"],
                "resources": {"requests": {"storage": "1Gi"}},
            },
        },
        owner="x",
    )
    found.replace({**claim, "status": {"phase": "Pending"}}, owner="x", status=True)
    found.create(
        {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"name": "one", "namespace": "shop"},
            "involvedObject": {"uid": claim["metadata"]["uid"], "namespace": "shop"},
            "type": "Warning",
            "reason": "FailedBinding",
            "message": EVENT,
            "firstTimestamp": "2026-11-24T07:00:00Z",
            "lastTimestamp": "2026-11-24T07:00:00Z",
            "source": {"component": "test"},
        },
        owner="x",
    )
    yield found
    found.close()


def silent(key: ObjectKey = KEY) -> PartState:
    return PartState(key, "True", "False")


def xr(ready: str, reason: str = "", status: dict[str, Any] | None = None) -> Manifest:
    conditions = [
        {"type": "Synced", "status": "False" if reason else "True", "message": reason},
        {"type": "Ready", "status": ready},
    ]
    return {
        "apiVersion": "example.org/v1",
        "kind": "XGarage",
        "metadata": {"name": "garage-a", "namespace": "shop"},
        "spec": {"plate": "AE 86", "pit": {"size": 3}},
        "status": {"conditions": conditions} if status is None else status,
    }


# --- looks at parts


def test_an_order_is_looked_at_until_its_parts_say_more(cluster: EmbeddedCluster) -> None:
    found: Announced = queue.Queue()
    causes = RowCauses(platform_of(cluster), found.put)
    other = PartState(ObjectKey(Kind("", "v1", "Secret"), "s", "shop"), "True", "True")

    before = causes.of("garage-a", [other, silent()])
    causes.start()
    told = found.get(timeout=20)
    after = causes.of("garage-a", [other, silent()])
    causes.stop()
    causes.join(20)

    assert (before, told) == ((other, silent()), "garage-a")
    assert after[0] == other
    assert EVENT in after[1].reason
    assert after[1].fails_from


def test_a_part_that_is_gone_or_fails_for_no_reason_stays_as_it_is(
    cluster: EmbeddedCluster,
) -> None:
    found: Announced = queue.Queue()
    causes = RowCauses(platform_of(cluster), found.put)
    gone = silent(replace(KEY, name="gone"))
    causes.of("garage-b", [gone])
    causes.of("garage-a", [gone, silent()])
    causes.start()

    orders = {found.get(timeout=20) for _ in range(2)}
    parts = causes.of("garage-a", [gone, silent()])
    causes.stop()
    causes.join(20)

    assert orders == {"garage-a", "garage-b"}
    assert (parts[0], EVENT in parts[1].reason) == (gone, True)
    assert causes.of("garage-b", [gone]) == (gone,)


def test_an_order_whose_parts_speak_for_themselves_is_looked_at_no_more(
    cluster: EmbeddedCluster,
) -> None:
    found: Announced = queue.Queue()
    causes = RowCauses(platform_of(cluster), found.put)
    causes.of("garage-a", [silent()])
    loud = replace(silent(), reason="quota", fails_from="2026-11-24T07:00:00Z")

    assert causes.of("garage-a", [loud]) == (loud,)
    causes.of("garage-b", [silent()])
    causes.start()

    assert found.get(timeout=20) == "garage-b"
    causes.stop()
    causes.join(20)
    assert found.empty()


@pytest.mark.parametrize("bug", [False, True], ids=["the cluster gives no answer", "a bug"])
def test_a_look_that_fails_keeps_no_other_order_from_being_looked_at(
    cluster: EmbeddedCluster,
    refused: RefusedReads,
    caplog: pytest.LogCaptureFixture,
    *,
    bug: bool,
) -> None:
    found: Announced = queue.Queue()
    limited: Any = refused.of(cluster, {"Job"}, silent=True)
    broken = Rival(cluster, "get", lambda: 1 / 0)
    causes = RowCauses(platform_of(broken if bug else limited), found.put)
    causes.of("garage-b", [silent(ObjectKey(Kind("batch", "v1", "Job"), "j", "shop"))])
    causes.of("garage-a", [silent()])
    with caplog.at_level(logging.WARNING):
        causes.start()
        told = found.get(timeout=20)
        causes.stop()
        causes.join(20)

    assert (told, found.empty()) == ("garage-a", True)
    words = "a bug while looking at garage-b" if bug else "garage-b cannot be looked at now"
    assert words in caplog.text


def sources(live: Manifest | None, *parts: PartState) -> OrderSources:
    return OrderSources(ENTRY, ending=False, application=None, xr=live, parts=parts)


class Found(RowCauses):
    """What a look found a moment ago, of each key that is asked about."""

    def _last(self, order: str, target: tuple[ObjectKey, ...]) -> dict[ObjectKey, PartState]:
        del order
        return {key: PartState(key, "False", "-", EVENT, "2026-11-24T07:00:00Z") for key in target}


def delivered(ready: str, message: str = "") -> OrderSources:
    """Return the sources of an order whose commit Argo CD delivered."""
    live = summary.xr(ready)
    if message:
        live["status"]["conditions"][0] |= {"status": "False", "message": message}
    application = summary.application()
    sources = OrderSources(summary.ENTRY, ending=False, application=application, xr=live)
    return replace(sources, parts=(silent(),))


def test_only_an_order_that_assembles_or_was_refused_is_looked_at() -> None:
    causes = Found(platform_of(None), lambda _: None)
    assembling = delivered("False")
    seen = (assembling, delivered("True"), delivered("False", f"{UNSYNCED}: disk"))

    phases = [causes.added_to("agent-bot", XR_KEY, each) for each in seen]

    assert [each.parts[0].reason for each in phases] == [EVENT, "", EVENT]
    assert [each.own and each.own.key for each in phases] == [None, None, XR_KEY]
    assert causes.added_to("agent-bot", None, assembling) == assembling


@pytest.mark.parametrize("count", [20, 21])
def test_twenty_parts_of_an_order_are_looked_at(count: int) -> None:
    causes = Found(platform_of(None), lambda _: None)
    parts = [silent(replace(KEY, name=f"disk-{number}")) for number in range(count)]

    reasons = [part.reason for part in causes.of("garage-a", parts)]

    assert reasons == [EVENT] * 20 + [""] * (count - 20)


def test_a_head_that_is_delivered_hides_nothing(forge: OwnForge) -> None:
    entry = OrderEntry(TeamName(forge.named("ae86")), OrderId("garage-a"))
    first = forge.repo(entry.repository)
    looked: Announced = queue.Queue()

    class Noting(RowHeads):
        def _look(self, order: str, target: Any) -> Any:
            result = super()._look(order, target)
            looked.put(order)
            return result

    heads = Noting(forge.platform(), lambda _: None)

    assert heads.of(entry, None) is None
    assert heads.of(entry, first) is None
    heads.start()
    assert looked.get(timeout=20) == "garage-a"
    assert heads.of(entry, first) is None
    assert heads.of(entry, CommitSha("d" * 40)) is None
    heads.stop()
    heads.join(20)


class Fast(SystemClock):
    """A second is over in a hundredth."""

    def monotonic_s(self) -> float:
        return time.monotonic() * 100


class Numbers(RowLooks[int, int]):
    """Looks that find their target divided by two, and wait for leave to do so."""

    EVERY_S = 3_600.0

    def __init__(self, found: Announced) -> None:
        super().__init__("numbers", platform_of(None, clock=Fast()), found.put)
        self.looked: queue.Queue[tuple[str, int]] = queue.Queue()
        self.leave = threading.Semaphore(100)

    def of(self, order: str, target: int) -> int | None:
        return self._last(order, target)

    def _look(self, order: str, target: int) -> int:
        self.looked.put((order, target))
        assert self.leave.acquire(timeout=20)
        return target // 2


@contextlib.contextmanager
def running(looks: Numbers) -> Iterator[Numbers]:
    looks.start()
    yield looks
    looks.stop()
    looks.join(20)


def test_a_new_target_is_looked_at_at_once_and_what_is_the_same_is_told_once() -> None:
    found: Announced = queue.Queue()
    with running(Numbers(found)) as looks:
        seen = [looks.of("a", 4)]
        assert looks.looked.get(timeout=20) == ("a", 4)
        assert found.get(timeout=20) == "a"
        seen.append(looks.of("a", 5))
        assert looks.looked.get(timeout=20) == ("a", 5)
        seen.append(looks.of("a", 6))
        assert looks.looked.get(timeout=20) == ("a", 6)
        assert found.get(timeout=20) == "a"
        seen.append(looks.of("a", 6))

    assert seen == [None, 2, 2, 3]
    assert found.empty()
    assert looks.looked.empty()


def test_an_order_is_looked_at_again_when_somebody_says_so() -> None:
    found: Announced = queue.Queue()
    with running(Numbers(found)) as looks:
        looks.of("a", 4)
        looks.look_again("unknown")
        assert looks.looked.get(timeout=20) == ("a", 4)
        assert found.get(timeout=20) == "a"
        looks.look_again("a", in_s=1.0)
        assert looks.looked.get(timeout=20) == ("a", 4)

    assert looks.looked.empty()


def test_an_order_that_is_gone_while_it_is_looked_at_is_told_of_no_more() -> None:
    found: Announced = queue.Queue()
    looks = Numbers(found)
    looks.leave = threading.Semaphore(0)
    with running(looks):
        looks.of("a", 4)
        assert looks.looked.get(timeout=20) == ("a", 4)
        looks.forget("a")
        looks.of("b", 8)
        looks.leave.release(2)
        assert found.get(timeout=20) == "b"

    assert found.empty()
    assert looks.of("a", 4) is None


# --- Secrets


def make(seen: OrderSources, texts: SecretTexts) -> OrderRow:
    """Return a row that shows everything that its sources say."""
    shown = json.dumps([seen.xr, [part.reason for part in seen.parts]])
    failing = [
        FailingPart(**located(part.key), reason=part.reason) for part in seen.parts if part.reason
    ]
    parts = Parts(1, 2, failing[0] if failing else None)
    return OrderRow(
        "garage-a", "ae86", "garage", "Failing", reason=texts.redact(shown), parts=parts
    )


def conditioned(**condition: str) -> dict[str, Any]:
    return {"conditions": [{"type": "Ready", "status": "False", **condition}]}


OPEN: dict[str, tuple[Any, tuple[PartState, ...]]] = {
    "numbers and times": ({"a": ["-1.5", "2026-11-24T07:00:00Z", 7, True, None]}, ()),
    "its name and namespace": ({"a": {"b": ["garage-a", "shop"]}}, ()),
    "a value of its own spec": ({"plate": "AE 86"}, ()),
    "the name of a part": ({"disk": "disk"}, (silent(),)),
    "a reason of Crossplane": (conditioned(reason="Creating"), ()),
    "words of Crossplane": (conditioned(message="Unready resources: disk"), ()),
    "a part that is missing": ({}, (replace(silent(), reason=MISSING),)),
    "a part that may not be read": ({}, (replace(silent(), reason=UNREAD),)),
    "a part that waits": ({}, (replace(silent(), reason="Unsynced resources: x"),)),
}
HIDDEN: dict[str, tuple[Any, tuple[PartState, ...]]] = {
    "a foreign text": ({"a": [{"b": "hunter2"}]}, ()),
    "very many digits": ({"a": "1" * 41}, ()),
    "a reason of a provider": (conditioned(reason="Hunter2"), ()),
    "words of a provider": (conditioned(message="the password is hunter2"), ()),
    "a condition that is none": ({"conditions": ["hunter2"]}, ()),
    "a status that is a text": ("hunter2", ()),
    "the words of a part": ({}, (replace(silent(), reason="hunter2 is wrong"),)),
}


def of(case: tuple[Any, tuple[PartState, ...]]) -> OrderSources:
    status, parts = case
    return sources(xr("False") | {"status": status}, *parts)


@pytest.mark.parametrize("case", OPEN)
def test_what_cannot_be_a_secret_is_shown_at_once(case: str) -> None:
    seen = of(OPEN[case])
    whole = make(seen, SecretTexts(()))
    shown = RowMasks(platform_of(None), lambda _: None).masked(seen, XR_KEY, make)

    assert shown == whole


@pytest.mark.parametrize("case", HIDDEN)
def test_what_may_be_a_secret_is_shown_once_secrets_were_read(
    case: str, cluster: EmbeddedCluster
) -> None:
    checked: Announced = queue.Queue()
    masks = RowMasks(platform_of(cluster), checked.put)
    seen = of(HIDDEN[case])
    whole = make(seen, SecretTexts(()))

    hidden = masks.masked(seen, XR_KEY, make)
    masks.start()
    told = checked.get(timeout=20)
    shown = [masks.masked(seen, XR_KEY, make) for _ in range(2)]
    masks.stop()
    masks.join(20)

    assert "unter2" not in str(hidden.to_json())
    assert (hidden.phase, hidden.parts.ready, hidden.parts.total) == ("Failing", 1, 2)
    assert (told, shown) == ("garage-a", [whole, whole])


def test_a_row_that_changed_after_its_secrets_were_read_is_checked_again(
    cluster: EmbeddedCluster,
) -> None:
    checked: Announced = queue.Queue()
    masks = RowMasks(platform_of(cluster), checked.put)
    first, second = of(HIDDEN["a foreign text"]), of(HIDDEN["words of a provider"])
    masks.masked(first, XR_KEY, make)
    masks.start()
    checked.get(timeout=20)

    assert "hunter2" not in str(masks.masked(second, XR_KEY, make).to_json())
    masks.stop()
    masks.join(20)


def test_a_row_without_an_xr_has_nothing_to_hide() -> None:
    masks = RowMasks(platform_of(None), lambda _: None)
    seen = of(HIDDEN["a foreign text"])

    assert masks.masked(seen, None, make) == make(seen, SecretTexts(()))
    gone = replace(seen, xr=None)
    assert masks.masked(gone, XR_KEY, make) == make(gone, SecretTexts(()))


@pytest.mark.parametrize("bug", [False, True], ids=["the cluster gives no answer", "a bug"])
def test_a_row_stays_hidden_while_its_secrets_cannot_be_read(
    cluster: EmbeddedCluster,
    refused: RefusedReads,
    caplog: pytest.LogCaptureFixture,
    *,
    bug: bool,
) -> None:
    checked: Announced = queue.Queue()
    cluster.create(permissive_crd(XR_KEY.kind, namespaced=False), owner="x")
    limited: Any = refused.of(cluster, {"XGarage"}, silent=True)
    broken = Rival(cluster, "get", lambda: 1 / 0)
    masks = RowMasks(platform_of(broken if bug else limited), checked.put)
    seen = of(HIDDEN["a foreign text"])
    masks.masked(seen, XR_KEY, make)
    words = "a bug while reading the Secrets of garage-a" if bug else "the Secrets of garage-a"
    with caplog.at_level(logging.WARNING):
        masks.start()
        for _ in range(200):
            SystemClock().sleep(0.1)
            if words in caplog.text:
                break
        masks.stop()
        masks.join(20)

    assert words in caplog.text
    assert checked.empty()
    assert "hunter2" not in str(masks.masked(seen, XR_KEY, make).to_json())


def test_a_hidden_reason_says_so_and_no_reason_says_nothing() -> None:
    masks = RowMasks(platform_of(None), lambda _: None)

    def silent_row(seen: OrderSources, texts: SecretTexts) -> OrderRow:
        made = make(seen, texts)
        text = made.reason if "hunter2" in made.reason else ""
        return OrderRow("garage-a", "ae86", "garage", "Failing", reason=text, cost="")

    part = of(HIDDEN["the words of a part"])
    hidden = masks.masked(part, XR_KEY, silent_row)
    making: Callable[..., OrderRow] = lambda seen, texts: OrderRow(  # noqa: E731 - one row
        "garage-a", "ae86", "garage", "Ready", repository=make(seen, texts).reason
    )

    assert hidden.reason == BEING_CHECKED
    assert masks.masked(part, XR_KEY, making).reason == ""
    assert masks.masked(part, XR_KEY, make).parts.failing is not None
