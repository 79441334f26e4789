"""
One pass of the spend meter: every budget's tokens since its window began, as dollars in a record.

The odometer is written before the record, so a pass that is cut in between loses nothing and
counts nothing twice; two meters at once find each other's odometer changed and leave it to the
other. One budget that cannot be measured does not stop the next.

Made by ``building``; its rounds are called by ``running``.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from orderkit.core.errors import ConflictError, InvalidInputError, NotFoundError, OrderkitError
from orderkit.core.objects.kube_objects import CONFIG_MAP, Manifest, ObjectKey, metadata
from orderkit.core.secrets import redact
from orderkit.ports.clock import Clock
from orderkit.ports.cluster import Cluster
from whisperops.counting import COUNTERS, Odometer, moved_on
from whisperops.prices import Prices, read_prices
from whisperops.prometheus import Prometheus
from whisperops.spending import (
    BUDGET,
    METER,
    ODOMETER,
    RECORD,
    SPEND,
    TOKENS,
    Budget,
    manifest,
    measured,
    read_budget,
    selector,
    unmeasured,
)

CHUNK_S = 6 * 3600
"""The longest range of one query; older windows are counted in several."""
CHUNKS_MAX = 40
"""Of one budget in one pass."""
BASELINE_S = 3600
"""How far before its window a series is looked for, to know where it begins."""
OVERLAP_S = 300
"""How late a sample may come in."""
KEEP_S = 3600.0
"""How old the written odometer may get when nothing is counted."""

logger = logging.getLogger(__name__)
Records = Mapping[ObjectKey, Manifest]


@dataclass(slots=True)
class Round:
    """What a pass came to."""

    budgets: int = 0
    measured: int = 0
    writes: int = 0
    failures: dict[str, OrderkitError] = field(default_factory=dict)
    """By budget, or ``cluster`` if the budgets themselves cannot be read."""


@dataclass(slots=True)
class Meter:
    """Measures all budgets of a cluster."""

    cluster: Cluster
    prometheus: Prometheus
    clock: Clock
    prices: tuple[str, str]
    """Namespace and name of the price table of budgets that name none."""
    _far: dict[ObjectKey, Odometer] = field(default_factory=dict)
    """Odometers that counted nothing new, and are further than the written ones."""

    def run_pass(self, going: Callable[[], bool] = lambda: True) -> Round:
        """Measure every budget once; failures are in the result and never raised."""
        done = Round()
        try:
            budgets = self.cluster.list(BUDGET).items
            records = self._records()
        except OrderkitError as error:
            done.failures["cluster"] = error
            return done
        tables: dict[tuple[str, str], Prices | OrderkitError] = {}
        for found in sorted(budgets, key=lambda each: str(ObjectKey.of(each))):
            if not going():
                break
            if not metadata(found).get("deletionTimestamp"):
                done.budgets += 1
                self._measure(found, records, tables, done)
        return done

    def _measure(
        self,
        found: Manifest,
        records: Records,
        tables: dict[tuple[str, str], Prices | OrderkitError],
        done: Round,
    ) -> None:
        name = str(ObjectKey.of(found))
        try:
            budget = read_budget(found, prices=self.prices)
        except InvalidInputError as error:
            done.failures[name] = error  # without a sound name there is no record to write
            return
        try:
            done.writes += self._record(budget, records, tables)
        except ConflictError as error:
            done.failures[name] = error  # another meter is at it
        except OrderkitError as error:
            done.failures[name] = error
            logger.warning("%s: %s", name, redact(str(error)))
            self._tell_unmeasured(budget, records, str(error), done)
        else:
            done.measured += 1

    def _record(
        self,
        budget: Budget,
        records: Records,
        tables: dict[tuple[str, str], Prices | OrderkitError],
    ) -> int:
        """Count and write; return how many writes it took."""
        odometer, writes, complete = self._count(budget, records)
        prices = self._prices(budget.prices, tables)
        data = measured(prices.cost(odometer.tokens), budget, odometer)
        if not complete:
            data |= {"measured": "false", "reason": "tokens of the past are still being counted"}
        return writes + self._write(budget, SPEND, data, records)

    def _count(self, budget: Budget, records: Records) -> tuple[Odometer, int, bool]:
        """Move the odometer on to now; say how often it was written and whether it got there."""
        key, now_s = budget.record(TOKENS), self.clock.now().timestamp()
        written = _odometer(records.get(key), budget)
        before = self._further(key, written)
        odometer = before
        for _ in range(CHUNKS_MAX):
            if odometer.counted_to_s >= now_s:
                break
            odometer = self._chunk(budget, odometer, now_s)
        complete = odometer.counted_to_s >= now_s
        if odometer.counts_as(written) and odometer.counted_to_s - written.counted_to_s < KEEP_S:
            self._far[key] = odometer
            return odometer, 0, complete
        self._far.pop(key, None)
        return odometer, self._replace(budget, odometer, records.get(key)), complete

    def _chunk(self, budget: Budget, before: Odometer, now_s: float) -> Odometer:
        at_s = min(now_s, before.counted_to_s + CHUNK_S)
        back_s = BASELINE_S if before.counted_to_s <= budget.begun_s else OVERLAP_S
        range_s = max(1, int(at_s - before.counted_to_s) + back_s)
        query = selector(budget.agent, tuple(COUNTERS), range_s)
        found = self.prometheus.samples(query, at_s=at_s)
        return moved_on(before, found, begun_s=budget.begun_s, to_s=at_s)

    def _further(self, key: ObjectKey, written: Odometer) -> Odometer:
        """Return the odometer of this process if it only looked further than the written one."""
        ours = self._far.get(key)
        return ours if ours is not None and ours.counts_as(written) else written

    def _replace(self, budget: Budget, odometer: Odometer, found: Manifest | None) -> int:
        """Write the odometer as the one that was read; ConflictError if another was faster."""
        record = manifest(budget, TOKENS, {ODOMETER: odometer.to_json()})
        if found is None:
            self.cluster.create(record, owner=METER)
        else:
            version = metadata(found).get("resourceVersion")
            record["metadata"]["resourceVersion"] = version
            self.cluster.replace(record, owner=METER)
        return 1

    def _write(self, budget: Budget, record: str, data: Mapping[str, str], records: Records) -> int:
        found = records.get(budget.record(record))
        if found is not None and found.get("data") == data:
            return 0
        self.cluster.apply(manifest(budget, record, data), owner=METER)
        return 1

    def _tell_unmeasured(self, budget: Budget, records: Records, why: str, done: Round) -> None:
        before: dict[str, Any] = (records.get(budget.record(SPEND)) or {}).get("data") or {}
        try:
            done.writes += self._write(budget, SPEND, unmeasured(before, budget, why), records)
        except OrderkitError as error:
            logger.warning("%s: %s", budget.key, redact(str(error)))

    def _records(self) -> Records:
        """Return what this meter wrote, in all namespaces."""
        found = self.cluster.list(CONFIG_MAP, labels={"app.kubernetes.io/managed-by": METER})
        return {ObjectKey.of(each): each for each in found.items if RECORD in _labels(each)}

    def _prices(
        self, named: tuple[str, str], tables: dict[tuple[str, str], Prices | OrderkitError]
    ) -> Prices:
        if named not in tables:
            tables[named] = self._read_prices(*named)
        table = tables[named]
        if isinstance(table, OrderkitError):
            raise table
        return table

    def _read_prices(self, namespace: str, name: str) -> Prices | OrderkitError:
        where = f"ConfigMap {namespace}/{name}"
        try:
            found = self.cluster.get(ObjectKey(CONFIG_MAP, name, namespace))
            if found is None:
                return NotFoundError(f"there is no {where} with prices")
            return read_prices(found.get("data") or {}, name=where)
        except OrderkitError as error:
            return error


def _odometer(found: Manifest | None, budget: Budget) -> Odometer:
    """Return the written odometer, or a new one: for a new window, or if it was spoilt."""
    fresh = Odometer(budget.window_start, budget.begun_s)
    if found is None:
        return fresh
    try:
        written = Odometer.from_json(str((found.get("data") or {}).get(ODOMETER, "")))
    except InvalidInputError:
        logger.warning("%s: the odometer is spoilt; counting anew", budget.key)
        return fresh
    return written if written.window_start == budget.window_start else fresh


def _labels(found: Manifest) -> Mapping[str, str]:
    return metadata(found).get("labels") or {}
