"""
One pass of the spend meter: the tokens of every budget's window, as dollars in a record.

The odometer is written before the record, so a pass that is interrupted in between loses nothing
and counts nothing twice. Of two meters that run at once, one finds the odometer changed and leaves
the budget to the other. A budget that cannot be measured does not stop the others.

Called by ``commands`` through a ``Loop``.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from orderkit.controllers import (
    CONFIG_MAP,
    Clock,
    Cluster,
    ConflictError,
    InvalidInputError,
    Manifest,
    NotFoundError,
    ObjectKey,
    OrderkitError,
    labels_of,
    metadata,
    redact,
)
from whisperops.counting import COUNTERS, Odometer, advance
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
    measured_record,
    read_budget,
    record_manifest,
    selector,
    unmeasured_record,
)

CHUNK_S = 6 * 3600
"""The longest range of one query; longer ranges need several."""
CHUNKS_MAX = 40
"""Queries for one budget in one pass."""
BASELINE_S = 3600
"""How long before a window to look for a series, to know its value when the window began."""
OVERLAP_S = 300
"""How late a sample may arrive."""
KEEP_S = 3600.0
"""How old the written odometer may get while nothing is counted."""

logger = logging.getLogger(__name__)
Records = Mapping[ObjectKey, Manifest]


@dataclass(slots=True)
class MeterResult:
    """What a pass did."""

    budgets: int = 0
    measured: int = 0
    writes: int = 0
    failures: dict[str, OrderkitError] = field(default_factory=dict)
    """By budget; ``cluster`` if the budgets cannot be read."""


@dataclass(slots=True)
class Meter:
    """Measures all budgets of a cluster."""

    cluster: Cluster
    prometheus: Prometheus
    clock: Clock
    prices: tuple[str, str]
    """Namespace and name of the price table for budgets that name none."""
    _unwritten: dict[ObjectKey, Odometer] = field(default_factory=dict)
    """Odometers that counted nothing new since they were written, but are further in time."""

    def run_pass(self, may_continue: Callable[[], bool] = lambda: True) -> MeterResult:
        """Measure every budget once; failures are in the result and never raised."""
        result = MeterResult()
        try:
            budgets = self.cluster.list(BUDGET).items
            records = self._records()
        except OrderkitError as error:
            result.failures["cluster"] = error
            return result
        tables: dict[tuple[str, str], Prices | OrderkitError] = {}
        for manifest in sorted(budgets, key=lambda budget: str(ObjectKey.of(budget))):
            if not may_continue():
                break
            if not metadata(manifest).get("deletionTimestamp"):
                result.budgets += 1
                self._measure(manifest, records, tables, result)
        return result

    def _measure(
        self,
        manifest: Manifest,
        records: Records,
        tables: dict[tuple[str, str], Prices | OrderkitError],
        result: MeterResult,
    ) -> None:
        name = str(ObjectKey.of(manifest))
        try:
            budget = read_budget(manifest, prices=self.prices)
        except InvalidInputError as error:
            result.failures[name] = error  # without a valid name there is no record to write
            return
        try:
            result.writes += self._record(budget, records, tables)
        except ConflictError as error:
            result.failures[name] = error  # another meter works on it
        except OrderkitError as error:
            result.failures[name] = error
            logger.warning("%s: %s", name, redact(str(error)))
            self._write_unmeasured(budget, records, str(error), result)
        else:
            result.measured += 1

    def _record(
        self,
        budget: Budget,
        records: Records,
        tables: dict[tuple[str, str], Prices | OrderkitError],
    ) -> int:
        """Count and write; return the number of writes."""
        odometer, writes, complete = self._count(budget, records)
        prices = self._prices(budget.prices, tables)
        data = measured_record(prices.cost(odometer.tokens), budget, odometer)
        if not complete:
            data |= {"measured": "false", "reason": "tokens of the past are still being counted"}
        return writes + self._write(budget, SPEND, data, records)

    def _count(self, budget: Budget, records: Records) -> tuple[Odometer, int, bool]:
        """Advance the odometer to now; return it, the number of writes, and if it got there."""
        key, now_s = budget.record(TOKENS), self.clock.now().timestamp()
        written = _odometer(records.get(key), budget)
        odometer = self._latest(key, written)
        for _ in range(CHUNKS_MAX):
            if odometer.counted_to_s >= now_s:
                break
            odometer = self._chunk(budget, odometer, now_s)
        complete = odometer.counted_to_s >= now_s
        if odometer.counts_as(written) and odometer.counted_to_s - written.counted_to_s < KEEP_S:
            self._unwritten[key] = odometer
            return odometer, 0, complete
        self._unwritten.pop(key, None)
        return odometer, self._replace(budget, odometer, records.get(key)), complete

    def _chunk(self, budget: Budget, before: Odometer, now_s: float) -> Odometer:
        at_s = min(now_s, before.counted_to_s + CHUNK_S)
        lookback_s = BASELINE_S if before.counted_to_s <= budget.window_start_s else OVERLAP_S
        range_s = max(1, int(at_s - before.counted_to_s) + lookback_s)
        query = selector(budget.agent, tuple(COUNTERS), range_s)
        series = self.prometheus.samples(query, at_s=at_s)
        return advance(before, series, window_start_s=budget.window_start_s, to_s=at_s)

    def _latest(self, key: ObjectKey, written: Odometer) -> Odometer:
        """Return this process's unwritten odometer if it counts the same as the written one."""
        unwritten = self._unwritten.get(key)
        return unwritten if unwritten is not None and unwritten.counts_as(written) else written

    def _replace(self, budget: Budget, odometer: Odometer, before: Manifest | None) -> int:
        """Write the odometer; raises ConflictError if it changed since it was read."""
        record = record_manifest(budget, TOKENS, {ODOMETER: odometer.to_json()})
        if before is None:
            self.cluster.create(record, owner=METER)
        else:
            version = metadata(before).get("resourceVersion")
            record["metadata"]["resourceVersion"] = version
            self.cluster.replace(record, owner=METER)
        return 1

    def _write(self, budget: Budget, record: str, data: Mapping[str, str], records: Records) -> int:
        before = records.get(budget.record(record))
        if before is not None and before.get("data") == data:
            return 0
        self.cluster.apply(record_manifest(budget, record, data), owner=METER)
        return 1

    def _write_unmeasured(
        self, budget: Budget, records: Records, reason: str, result: MeterResult
    ) -> None:
        before: dict[str, Any] = (records.get(budget.record(SPEND)) or {}).get("data") or {}
        try:
            result.writes += self._write(
                budget, SPEND, unmeasured_record(before, budget, reason), records
            )
        except OrderkitError as error:
            logger.warning("%s: %s", budget.key, redact(str(error)))

    def _records(self) -> Records:
        """Return the records of all meters, in all namespaces."""
        config_maps = self.cluster.list(CONFIG_MAP, labels={"app.kubernetes.io/managed-by": METER})
        return {ObjectKey.of(m): m for m in config_maps.items if RECORD in labels_of(m)}

    def _prices(
        self, place: tuple[str, str], tables: dict[tuple[str, str], Prices | OrderkitError]
    ) -> Prices:
        if place not in tables:
            tables[place] = self._read_prices(*place)
        table = tables[place]
        if isinstance(table, OrderkitError):
            raise table
        return table

    def _read_prices(self, namespace: str, name: str) -> Prices | OrderkitError:
        place = f"ConfigMap {namespace}/{name}"
        try:
            config_map = self.cluster.get(ObjectKey(CONFIG_MAP, name, namespace))
            if config_map is None:
                return NotFoundError(f"there is no {place} with prices")
            return read_prices(config_map.get("data") or {}, name=place)
        except OrderkitError as error:
            return error


def _odometer(record: Manifest | None, budget: Budget) -> Odometer:
    """Return the written odometer, or a new one if the window is new or it cannot be read."""
    new = Odometer(budget.window_start, budget.window_start_s)
    if record is None:
        return new
    try:
        written = Odometer.from_json(str((record.get("data") or {}).get(ODOMETER, "")))
    except InvalidInputError:
        logger.warning("%s: the odometer cannot be read; counting again from 0", budget.key)
        return new
    return written if written.window_start == budget.window_start else new
