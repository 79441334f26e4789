"""How many requests a caller may send, what the figures say, and who is in the clients' file."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from datetime import UTC, date, datetime
from pathlib import PurePath

import pytest
import yaml
from platformsettings import settings_with
from webrequests import asked

from ground.errors import InvalidInputError
from ground.shapes import changed
from orderkit.core.campaign.record import CampaignFigures
from orderkit.core.order.order_state import Phase
from orderkit.core.order.order_view import OrderRow
from orderkit.core.platform.service_access import (
    RIGHTS,
    AccessSettings,
    Client,
    OidcSettings,
    digest_of,
    read_clients,
    write_clients,
)
from orderkit.core.platform.settings import (
    ClusterSettings,
    ForgeSettings,
    PlatformSettings,
    PortalSettings,
    ServiceSettings,
    parse,
)
from orderkit.flows.live.live_row import Durations, ModelState
from orderkit.flows.notify.channel_worker import ChannelState
from orderkit.web.metrics import (
    Metrics,
    counts_text,
    model_text,
    notifications_text,
    orders_text,
)
from orderkit.web.request_pipeline import RateLimit, network_of
from yamlfiles.format_versions import API_VERSION

CLIENT = Client("ci", digest_of("x"), "user:default/ci", ("ae86",), RIGHTS, expires=date.max)


class Time:
    now_s = 1000.0

    def __call__(self) -> float:
        return self.now_s


def test_a_burst_is_allowed_and_then_a_steady_rate() -> None:
    time = Time()
    limit = RateLimit(60, monotonic_s=time)

    assert [limit.wait_s("a") for _ in range(10)] == [0.0] * 10
    assert limit.wait_s("a") == pytest.approx(1.0)
    assert limit.wait_s("b") == 0.0
    time.now_s += 1.0
    assert (limit.wait_s("a"), limit.wait_s("a") > 0) == (0.0, True)


def test_ten_thousand_callers_are_remembered_and_no_more() -> None:
    limit = RateLimit(1, monotonic_s=Time())
    for _ in range(6):
        limit.wait_s("first")
    assert limit.wait_s("first") > 0

    for number in range(10_000):
        limit.wait_s(str(number))

    assert limit.wait_s("first") == 0.0


def test_a_caller_who_waits_gets_a_burst_and_no_more() -> None:
    time = Time()
    slow, fast = (RateLimit(per_minute, monotonic_s=time) for per_minute in (6, 600))
    for limit, burst in ((slow, 5), (fast, 100)):
        assert [limit.wait_s("a") for _ in range(burst)] == [0.0] * burst
        assert limit.wait_s("a") > 0

    time.now_s += 3600

    for limit, burst in ((slow, 5), (fast, 100)):
        assert [limit.wait_s("a") > 0 for _ in range(burst + 1)] == [False] * burst + [True]


@pytest.mark.parametrize(
    ("host", "named"),
    [
        ("192.0.2.7", "address 192.0.2.7"),
        ("::ffff:192.0.2.7", "address 192.0.2.7"),
        ("2001:db8:1:2:3::4", "network 2001:db8:1:2::/64"),
        ("testclient", "address testclient"),
        (None, "address "),
    ],
)
def test_who_proves_nothing_is_limited_by_address(host: str | None, named: str) -> None:
    assert network_of(asked(client=(host, 1) if host else None)) == named


def test_the_figures_are_in_prometheus_text_format() -> None:
    metrics = Metrics()
    for duration_s, status in ((0.003, 200), (0.2, 200), (99.0, 503)):
        metrics.begin()
        metrics.end("getOrder", status, duration_s)
    metrics.begin()
    metrics.refuse("unproved")

    lines = metrics.text().splitlines()

    assert 'orderkit_requests_total{operation="getOrder",status="200"} 2' in lines
    assert "orderkit_requests_in_progress 1" in lines
    assert 'orderkit_refused_total{reason="unproved"} 1' in lines
    buckets = [int(line.rpartition(" ")[2]) for line in lines if "_bucket{" in line]
    assert buckets == sorted(buckets)
    assert (buckets[0], buckets[-2], buckets[-1]) == (1, 2, 3)
    sample = re.compile(r'(# (HELP|TYPE) \w+ .+|\w+(\{\w+="[^"]*"(,\w+="[^"]*")*\})? [0-9.]+)')
    assert all(sample.fullmatch(line) for line in lines)


def test_the_figures_of_notifications_have_a_line_for_each_channel() -> None:
    chat = ChannelState("chat", {"ready": 3, "failing": 1}, 2, 1, queued=4, age_s=61.5)
    mail = ChannelState("mail", {}, 0, 0, queued=0, age_s=0)

    text = notifications_text([chat, mail])

    assert [line for line in text.splitlines() if not line.startswith("#")] == [
        'orderkit_notifications_sent_total{channel="chat",event="failing"} 1',
        'orderkit_notifications_sent_total{channel="chat",event="ready"} 3',
        'orderkit_notifications_failed_total{channel="chat"} 2',
        'orderkit_notifications_failed_total{channel="mail"} 0',
        'orderkit_notifications_given_up_total{channel="chat"} 1',
        'orderkit_notifications_given_up_total{channel="mail"} 0',
        'orderkit_notifications_queued{channel="chat"} 4',
        'orderkit_notifications_queued{channel="mail"} 0',
        'orderkit_notifications_oldest_seconds{channel="chat"} 61.5',
        'orderkit_notifications_oldest_seconds{channel="mail"} 0',
    ]
    assert "# TYPE orderkit_notifications_queued gauge" in text
    assert text.endswith("\n")


def samples(text: str) -> dict[str, float]:
    """Return the lines of a text in Prometheus's format by their names; each name has its type."""
    assert text.endswith("\n")
    lines = [line.rpartition(" ") for line in text.splitlines() if not line.startswith("#")]
    types = set(re.findall(r"^# TYPE (\w+) (?:counter|gauge|histogram)$", text, re.MULTILINE))
    described = re.findall(r"^# HELP (\w+) \S.*\.$", text, re.MULTILINE)
    names = {name.partition("{")[0] for name, _, _ in lines}
    parts = {f"{name}_{part}" for name in types for part in ("bucket", "sum", "count")}
    assert names <= types | parts
    assert sorted(described) == sorted(types)
    return {name: float(value) for name, _, value in lines}


def test_outcomes_and_durations_are_counted_for_each_operation() -> None:
    metrics = Metrics()
    for _ in range(2):
        metrics.begin()
        metrics.end("getOrder", 200, 0.25)
        metrics.plan("done")
        metrics.push("clean")

    found = samples(metrics.text())

    assert found['orderkit_pull_plans_total{state="done"}'] == 2
    assert found['orderkit_push_checks_total{state="clean"}'] == 2
    assert found["orderkit_requests_in_progress"] == 0
    assert found['orderkit_request_seconds_sum{operation="getOrder"}'] == 0.5
    assert found['orderkit_request_seconds_count{operation="getOrder"}'] == 2
    within = [found[f'orderkit_request_seconds_bucket{{operation="getOrder",le="{le}"}}']
              for le in ("0.1", "0.25", "0.5", "+Inf")]  # fmt: skip
    assert within == [0, 2, 2, 2]


def row(phase: Phase, since: str = "") -> OrderRow:
    return OrderRow("garage-a", "a", "garage", phase, since=since)


@pytest.mark.parametrize(
    ("rows", "longest_s"),
    [
        ([], 0),
        ([row("Ready", "2026-11-24T00:00:00Z"), row("Failing")], 0),
        ([row("Failing", "2026-11-24T07:59:00Z"), row("Failing", "2026-11-24T07:00:00Z")], 3600),
    ],
)
def test_the_figures_of_orders_have_every_phase_and_the_oldest_failure(
    rows: list[OrderRow], longest_s: int
) -> None:
    found = samples(orders_text(rows, datetime(2026, 11, 24, 8, 0, tzinfo=UTC)))

    failing = sum(one.phase == "Failing" for one in rows)
    assert found['orderkit_orders{phase="Failing"}'] == failing
    assert found['orderkit_orders{phase="Ending"}'] == 0
    assert found["orderkit_oldest_failing_seconds"] == longest_s


def test_the_figures_of_the_live_model_say_how_far_to_rely_on_it() -> None:
    figures = CampaignFigures(
        Counter(["running"]), Counter([("running", "over")]), Counter([("running", "done")])
    )
    took = Durations({5.0: 2, 15.0: 3}, count=4, sum_s=90.4)
    state = ModelState(True, 0.12345, 7, 2, "", {"Pod": "no"}, "c0ffee", 3, took, figures)  # noqa: FBT003 - as it stands

    found = samples(model_text(state, streams=5))

    expected = {
        "orderkit_model_complete": 1,
        "orderkit_model_age_seconds": 0.123,
        "orderkit_model_orders": 7,
        "orderkit_model_watch_restarts_total": 2,
        "orderkit_model_kinds_left_out": 1,
        "orderkit_model_rows_due": 3,
        "orderkit_streams_open": 5,
        'orderkit_order_ready_seconds_bucket{le="1"}': 0,
        'orderkit_order_ready_seconds_bucket{le="15"}': 3,
        'orderkit_order_ready_seconds_bucket{le="+Inf"}': 4,
        "orderkit_order_ready_seconds_sum": 90,
        "orderkit_order_ready_seconds_count": 4,
        'orderkit_campaigns{state="running"}': 1,
        'orderkit_campaigns{state="stopped"}': 0,
        'orderkit_campaign_waves{state="running",progress="over"}': 1,
        'orderkit_campaign_orders{state="running",outcome="done"}': 1,
    }
    assert {name: found[name] for name in expected} == expected


def test_what_a_process_counted_stands_under_its_name() -> None:
    counts = {("forge_requests", "2xx"): 3, ("lease_sweeps", "warn"): 1}

    text = counts_text(counts)  # type: ignore[arg-type]  # literals

    assert samples(text) == {
        'orderkit_forge_requests_total{outcome="2xx"}': 3,
        'orderkit_lease_sweeps_total{action="warn"}': 1,
    }
    assert "# TYPE orderkit_lost_races_total counter" in text


def test_a_replica_that_does_not_send_shows_no_figures_of_notifications() -> None:
    assert notifications_text([]) == ""


def test_clients_are_read_as_they_were_written() -> None:
    clients = (CLIENT, Client("all", digest_of("y"), "user:default/a", (), RIGHTS, platform=True))

    assert read_clients(write_clients(clients), name="clients.yaml") == clients


@dataclass(frozen=True)
class Bad:
    reason: str
    clients: tuple[Client, ...]
    says: str


BAD = [
    Bad("two of a name", (CLIENT, changed(CLIENT, digest=digest_of("y"))), "name: 'ci' stands"),
    Bad("two of a token", (CLIENT, changed(CLIENT, name="other")), "stands there twice"),
    Bad("a token instead of its digest", (changed(CLIENT, digest="okt_x"),), "sha256"),
    Bad("no rights", (changed(CLIENT, rights=frozenset()),), "rights"),
    Bad("a name with a space", (changed(CLIENT, name="a b"),), "name"),
]


@pytest.mark.parametrize("case", BAD, ids=lambda case: case.reason)
def test_a_clients_file_that_is_ambiguous_is_refused(case: Bad) -> None:
    with pytest.raises(InvalidInputError, match=case.says):
        read_clients(write_clients(case.clients), name="clients.yaml")


def test_a_client_without_rights_is_told_which_there_are() -> None:
    entry = {"name": "ci", "sha256": digest_of("x"), "expires": "2027-01-31"}
    file = {"apiVersion": API_VERSION, "kind": "ServiceClients", "clients": [entry]}

    with pytest.raises(InvalidInputError) as refused:
        read_clients(yaml.safe_dump(file), name="clients.yaml")
    assert str(refused.value) == (
        "clients.yaml: clients.ci.rights is missing: approve, change, end, observe, order, read"
    )


def test_a_date_that_is_none_is_refused() -> None:
    text = write_clients([CLIENT]).replace("9999-12-31", "2026-02-30")

    with pytest.raises(InvalidInputError, match=r"clients\.ci\.expires"):
        read_clients(text, name="clients.yaml")


def platform_at(folder: PurePath) -> PlatformSettings:
    url, file = "http://127.0.0.1:1", folder / "token"
    return PlatformSettings(
        name="p",
        forge=ForgeSettings(url, file),
        portal=PortalSettings(url, file),
        service=ServiceSettings(url, file),
        cluster=ClusterSettings(folder / "kubeconfig"),
    )


def test_access_is_read_as_it_was_written() -> None:
    folder = PurePath("/etc/orderkit")
    oidc = OidcSettings(
        "https://id.example.com/",
        "orderkit",
        jwks_url="https://id.example.com/keys",
        group_prefix="ok-",
    )
    access = AccessSettings(("group:default/ops",), folder / "c.yaml", 30, True, oidc)  # noqa: FBT003 - as written
    settings = settings_with(platform_at(folder), service__access=access)
    settings = settings_with(settings, portal__public_url="https://portal.example.com")

    found = parse(settings.to_yaml(), folder=folder)

    assert found == settings
    assert found.portal_address == "https://portal.example.com"
    assert found.service_address == "http://127.0.0.1:1"


@pytest.mark.parametrize("algorithm", ["none", "HS256", "HS512"])
def test_a_shared_key_can_never_be_allowed(algorithm: str) -> None:
    oidc = OidcSettings("https://id.example.com", "orderkit", algorithms=("EdDSA",))
    settings = settings_with(platform_at(PurePath("/")), service__access=AccessSettings(oidc=oidc))
    text = settings.to_yaml().replace("EdDSA", algorithm)

    with pytest.raises(InvalidInputError, match="algorithms"):
        parse(text, folder=PurePath("/"))
