"""The spend meter: what records say, and what they keep saying when nothing can be measured."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from prometheusdouble import PrometheusDouble, Told, prometheus_double

from ground.errors import RefusedError
from ground.objects.kube_objects import CONFIG_MAP, Manifest, ObjectKey
from whisperops.metering import Meter, MeterResult
from whisperops.prometheus import Access, Prometheus
from whisperops.spending import BUDGET

PRICES = """\
models:
  gemini-flash: {input_per_million: "1", output_per_million: "10", cached_input_per_million: "0.1"}
"""
INPUT, OUTPUT = "whisperops_tokens_input_total", "whisperops_tokens_output_total"
START = "2026-11-21T12:00:00Z"
CRD: Manifest = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "xagentbudgets.whisperops.io"},
    "spec": {
        "group": "whisperops.io",
        "scope": "Namespaced",
        "names": {"kind": "XAgentBudget", "plural": "xagentbudgets"},
        "versions": [
            {
                "name": "v1alpha1",
                "served": True,
                "storage": True,
                "subresources": {"status": {}},
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "x-kubernetes-preserve-unknown-fields": True,
                    }
                },
            }
        ],
    },
}


@dataclass
class Bench:
    """A cluster with budgets, a Prometheus, and the meter between them."""

    cluster: Any
    clock: Any
    prometheus: PrometheusDouble
    meter: Meter

    @property
    def now_s(self) -> float:
        return float(self.clock.now().timestamp())

    def budget(self, agent: str = "housing-bot", **spec: Any) -> None:
        namespace = {
            "apiVersion": "v1",
            "kind": "Namespace",
            "metadata": {"name": f"agent-{agent}"},
        }
        self.cluster.apply(namespace, owner="test")
        self.cluster.apply(
            {
                "apiVersion": BUDGET.api_version,
                "kind": BUDGET.kind,
                "metadata": {"name": agent, "namespace": f"agent-{agent}"},
                "spec": {"agentName": agent, "budgetUsd": 5, "windowStart": START, **spec},
            },
            owner="test",
        )

    def prices(self, text: str) -> None:
        self.cluster.apply(
            {
                "apiVersion": "v1",
                "kind": "ConfigMap",
                "metadata": {"name": "agent-prices", "namespace": "whisperops"},
                "data": {"prices.yaml": text},
            },
            owner="test",
        )

    def use(self, tokens: float, *, name: str = INPUT, after_s: float = 30, **labels: str) -> None:
        """Let time pass and scrape a counter."""
        self.clock.sleep(after_s)
        named = {"agent_name": "housing-bot", "model": "gemini-flash", "pod": "a", **labels}
        self.prometheus.scrape(name, tokens, at_s=self.now_s, **named)

    def run(self) -> MeterResult:
        self.clock.sleep(1)
        return self.meter.run_pass()

    def record(self, agent: str = "housing-bot", kind: str = "spend") -> Manifest | None:
        key = ObjectKey(CONFIG_MAP, f"{kind}-{agent}", f"agent-{agent}")
        found: Manifest | None = self.cluster.get(key)
        return found

    def spend(self, agent: str = "housing-bot") -> dict[str, str]:
        found = self.record(agent)
        assert found is not None
        return dict(found["data"])


@pytest.fixture
def bench(shop: Any) -> Iterator[Bench]:
    shop.cluster.apply(CRD, owner="test")
    with prometheus_double() as double:
        prometheus = Prometheus(double.url, read_timeout_s=60)
        meter = Meter(shop.cluster, prometheus, shop.clock, ("whisperops", "agent-prices"))
        made = Bench(shop.cluster, shop.clock, double, meter)
        made.prices(PRICES)
        made.budget()
        yield made


def test_spend_is_tokens_times_price_since_the_window_began(bench: Bench) -> None:
    bench.use(1_000_000)
    bench.use(100_000, name=OUTPUT)
    bench.use(2_500_000)

    done = bench.run()

    assert not done.failures
    assert bench.spend() == {
        "spentUsd": "3.50",
        "windowStart": START,
        "measured": "true",
        "model": "gemini-flash",
        "reason": "",
    }


def test_the_record_belongs_to_the_budget_and_says_what_it_is(bench: Bench) -> None:
    bench.run()

    found = bench.record()
    assert found is not None
    assert found["metadata"]["labels"]["whisperops.io/record"] == "spend"
    (owner,) = found["metadata"]["ownerReferences"]
    assert (owner["kind"], owner["name"]) == ("XAgentBudget", "housing-bot")


def test_nothing_is_written_while_nothing_changes(bench: Bench) -> None:
    bench.use(1_000_000)
    bench.run()
    writes = []
    for _ in range(10):
        bench.use(1_000_000)  # scraped again, and the same
        writes.append(bench.run().writes)

    assert writes == [0] * 10


def test_less_than_a_cent_is_counted_and_not_told(bench: Bench) -> None:
    bench.use(1_000)
    bench.run()
    before = bench.record()
    for number in range(2, 11):
        bench.use(1_000 * number)
        bench.run()

    assert before is not None
    assert bench.spend()["spentUsd"] == "0.01"
    bench.use(10_500)
    told = bench.record()
    bench.run()
    assert bench.record() == told


def test_an_agent_without_counters_has_spent_nothing_and_says_so(bench: Bench) -> None:
    bench.run()

    assert bench.spend()["spentUsd"] == "0.00"
    assert bench.spend()["measured"] == "true"
    assert bench.spend()["reason"] == "no token counters of this agent yet"


def test_tokens_of_others_and_of_before_do_not_count(bench: Bench) -> None:
    bench.prometheus.scrape(
        INPUT, 9e6, at_s=bench.now_s - 60, agent_name="housing-bot", model="gemini-flash", pod="a"
    )
    bench.use(9_500_000)
    bench.use(7_000_000, agent_name="other")

    bench.run()

    assert bench.spend()["spentUsd"] == "0.50"


def test_a_window_that_begins_anew_counts_from_nothing(bench: Bench) -> None:
    bench.use(2_000_000)
    bench.run()
    anew = "2026-11-21T12:05:00Z"
    bench.budget(windowStart=anew)
    bench.use(2_300_000, after_s=600)

    bench.run()

    assert bench.spend() == {**bench.spend(), "spentUsd": "0.30", "windowStart": anew}


def test_a_meter_that_slept_for_a_day_counts_what_it_missed(bench: Bench) -> None:
    bench.use(1_000_000)
    bench.run()
    for hour in range(24):
        bench.use(1_000_000 + 10_000 * (hour + 1), after_s=3600)

    fresh = Meter(bench.cluster, bench.meter.prometheus, bench.clock, bench.meter.prices)
    bench.clock.sleep(1)
    fresh.run_pass()

    assert bench.spend()["spentUsd"] == "1.24"


GOOD = {"resultType": "matrix", "result": []}


def success(**more: Any) -> bytes:
    return json.dumps({"status": "success", "data": GOOD, **more}).encode()


def one_value(value: str) -> bytes:
    metric = {"__name__": INPUT, "agent_name": "housing-bot", "model": "gemini-flash"}
    result = [{"metric": metric, "values": [[1_795_262_500, value]]}]
    return success(data={"resultType": "matrix", "result": result})


BAD = [
    pytest.param(Told(b"<html>login</html>", 200, "text/html"), "no JSON", id="HTML"),
    pytest.param(Told(b"<html>bad gateway</html>", 502, "text/html"), "502", id="a gateway"),
    pytest.param(Told(b"Service Unavailable", 503), "answered 503", id="503"),
    pytest.param(Told(b"", 302), "no JSON", id="a redirect"),
    pytest.param(Told(b"{}", 401), "answered 401", id="not known"),
    pytest.param(Told(b"no org id", 401), "answered 401", id="no tenant"),
    pytest.param(Told(b'{"status":"error","errorType":"timeout"}', 503), "503", id="too slow"),
    pytest.param(Told(b'{"status":"error","errorType":"execution"}', 422), "execution", id="422"),
    pytest.param(Told(success(warnings=["partial"])), "partial", id="warnings"),
    pytest.param(Told(success(data={"resultType": "vector"})), "no range", id="no matrix"),
    pytest.param(Told(success(data=None)), "no range", id="no data"),
    pytest.param(Told(b"[]"), "refused the query", id="a list"),
    pytest.param(Told(b"[" * 100_000), "no JSON", id="nested without end"),
    pytest.param(Told(one_value("NaN")), "no counter has", id="NaN"),
    pytest.param(Told(one_value("+Inf")), "no counter has", id="+Inf"),
    pytest.param(Told(one_value("-5")), "no counter has", id="below 0"),
    pytest.param(Told(one_value("a lot")), "an invalid series", id="a word"),
    pytest.param(Told(b" " * (17 * 1024 * 1024)), "larger than", id="17 MB"),
]


@pytest.mark.parametrize(("told", "why"), BAD)
def test_an_outage_keeps_the_last_known_amount_and_says_why(
    bench: Bench, told: Told, why: str
) -> None:
    bench.use(2_000_000)
    bench.run()
    known = bench.spend()
    bench.use(4_000_000)
    bench.prometheus.told = told

    first, second = bench.run(), bench.run()

    during = bench.spend()
    assert why in during["reason"]
    assert during == {**known, "measured": "false", "reason": during["reason"]}
    assert (first.writes, second.writes) == (1, 0), "the same outage is told once"
    bench.prometheus.told = None
    bench.run()
    assert bench.spend() == {**known, "spentUsd": "4.00"}, "and nothing of it is lost"


def test_a_prometheus_that_is_gone_or_silent_is_told_the_same_way(bench: Bench) -> None:
    bench.use(2_000_000)
    bench.run()
    bench.clock.sleep(1)
    gone = Prometheus("http://127.0.0.1:9", read_timeout_s=1)
    Meter(bench.cluster, gone, bench.clock, bench.meter.prices).run_pass()
    assert bench.spend()["reason"] == "Prometheus does not answer"

    bench.prometheus.told = Told(b"", holds_back=True)
    slow = Prometheus(bench.prometheus.url, read_timeout_s=0.2)
    Meter(bench.cluster, slow, bench.clock, bench.meter.prices).run_pass()
    assert bench.spend()["reason"] == "Prometheus did not answer in time"
    assert bench.spend()["spentUsd"] == "2.00"


def test_an_amount_that_was_never_measured_is_not_invented(bench: Bench) -> None:
    bench.prometheus.told = Told(b"", 503)

    bench.run()

    assert "spentUsd" not in bench.spend()
    assert bench.spend()["measured"] == "false"


def test_a_model_without_a_price_is_named_in_the_record_and_never_free(bench: Bench) -> None:
    bench.use(2_000_000)
    bench.run()
    bench.use(5_000_000, model="gemini-9")

    bench.run()

    during = bench.spend()
    assert during["spentUsd"] == "2.00"
    assert during["reason"] == "ConfigMap whisperops/agent-prices has no price for model 'gemini-9'"
    bench.prices(PRICES + PRICES.splitlines()[1].replace("flash", "9") + "\n")
    bench.run()
    assert bench.spend()["spentUsd"] == "7.00"
    assert bench.spend()["model"] == "gemini-9,gemini-flash"


@pytest.mark.parametrize(
    "agent",
    [
        pytest.param('x"} or vector(1) #', id="a way out of the quotes"),
        pytest.param("x|.*", id="a pattern"),
        pytest.param("Housing", id="a capital"),
        pytest.param("", id="none"),
        pytest.param("x\n", id="a newline"),
    ],
)
def test_a_name_that_is_none_reaches_no_query_and_stops_no_other(bench: Bench, agent: str) -> None:
    bench.budget("zz-other", agentName=agent)
    bench.use(1_000_000)

    done = bench.run()

    assert list(done.failures) == ["XAgentBudget.whisperops.io agent-zz-other/zz-other"]
    assert bench.spend()["spentUsd"] == "1.00"
    assert all("housing-bot" in query for query in bench.prometheus.queries)


def test_a_budget_may_name_its_own_prices(bench: Bench) -> None:
    bench.budget(pricingRef={"name": "dear", "namespace": "agent-housing-bot"})
    bench.use(1_000_000)
    bench.run()
    missing = bench.spend()
    bench.cluster.apply(
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": "dear", "namespace": "agent-housing-bot"},
            "data": {"prices.yaml": PRICES.replace('"1"', '"3"')},
        },
        owner="test",
    )
    bench.run()

    assert missing["reason"] == "there is no ConfigMap agent-housing-bot/dear with prices"
    assert bench.spend()["spentUsd"] == "3.00"


def test_two_meters_count_everything_once(bench: Bench) -> None:
    other = Meter(bench.cluster, bench.meter.prometheus, bench.clock, bench.meter.prices)
    for number in range(1, 6):
        bench.use(100_000 * number)
        bench.run()
        other.run_pass()

    assert bench.spend()["spentUsd"] == "0.50"


def test_a_pass_cut_between_its_writes_counts_everything_once(bench: Bench) -> None:
    """The odometer is written, the record is not: the next pass writes the record."""
    bench.use(1_000_000)
    bench.run()
    bench.use(2_000_000)
    apply: Callable[..., Manifest] = bench.cluster.apply

    def refuse(*_: object, **__: object) -> Manifest:
        raise KeyboardInterrupt

    bench.cluster.apply = refuse
    with pytest.raises(KeyboardInterrupt):
        bench.run()
    bench.cluster.apply = apply
    assert bench.spend()["spentUsd"] == "1.00"

    bench.run()

    assert bench.spend()["spentUsd"] == "2.00"


def test_a_spoilt_odometer_is_counted_anew(bench: Bench) -> None:
    bench.use(1_000_000)
    bench.run()
    tokens = bench.record(kind="tokens")
    assert tokens is not None
    bench.cluster.patch(ObjectKey.of(tokens), {"data": {"odometer": "rubbish"}}, owner="person")

    bench.run()

    assert bench.spend()["spentUsd"] == "1.00"


def test_an_old_window_is_counted_in_several_passes_and_says_so(bench: Bench) -> None:
    bench.budget(windowStart="2026-11-01T00:00:00Z")  # twenty days: more than one pass asks for
    bench.use(1_000_000)

    bench.run()
    early = bench.spend()
    bench.run()
    bench.run()

    assert early["measured"] == "false"
    assert early["reason"] == "tokens of the past are still being counted"
    assert bench.spend() == {**bench.spend(), "spentUsd": "1.00", "measured": "true"}


def test_a_token_is_sent_and_never_over_plain_http_to_another_machine(bench: Bench) -> None:
    known = Prometheus(bench.prometheus.url, Access("s3cret", "team-a"))
    known.samples('{__name__=~"a",agent_name="b"}[60s]', at_s=0)

    headers = bench.prometheus.headers[-1]
    assert headers["Authorization"] == "Bearer s3cret"
    assert headers["X-Scope-OrgID"] == "team-a"
    with pytest.raises(RefusedError):
        Prometheus("http://mimir.monitoring/prometheus", Access("s3cret"))
