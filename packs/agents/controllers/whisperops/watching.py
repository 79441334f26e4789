"""
One pass of the dataset-watcher: bucket, registry, catalog, in this order.

Level-based: a pass compares the actual with the desired state, so the next pass finishes one that
was interrupted. The catalog follows the registry and not the listing: if the bucket does not
answer, registry and catalog are still brought in line. A pass over unchanged data writes nothing.

Called by ``commands`` through a ``Loop``; two watchers at once do no harm.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from orderkit.controllers import CommitSha, Manifest, OrderkitError, metadata
from whisperops.buckets import Bucket
from whisperops.catalogrepo import CatalogRepo
from whisperops.comparing import Comparison, LossRule, MissingCounts, compare, judge_loss, removable
from whisperops.confirming import Confirmation
from whisperops.records import Origin
from whisperops.registry import Registry

logger = logging.getLogger(__name__)


@dataclass(slots=True)
class WatchResult:
    """The counts of a pass, and what failed."""

    listed: int = 0
    registered: int = 0
    ready: int = 0
    writes: int = 0
    removed: int = 0
    missing: int = 0
    refusals: dict[str, str] = field(default_factory=dict)
    """Why a blob cannot be registered, by its path."""
    suspicious: bool = False
    commit: CommitSha | None = None
    failures: dict[str, OrderkitError] = field(default_factory=dict)
    """By part: ``bucket``, ``registry``, ``catalog``."""
    complete: bool = True
    """False if `may_continue` stopped it."""


@dataclass(slots=True)
class Watcher:
    """Keeps one bucket's registry and catalog."""

    bucket: Bucket
    registry: Registry
    catalog: CatalogRepo
    confirmation: Confirmation
    origin: Origin
    rule: LossRule = field(default_factory=LossRule)
    register: Callable[[], object] | None = None
    """Registers the catalog's files in the portal; called until it succeeds once."""
    _missing_counts: MissingCounts = field(default_factory=MissingCounts)
    _logged_refusals: dict[str, str] = field(default_factory=dict)

    def run_pass(self, may_continue: Callable[[], bool] = lambda: True) -> WatchResult:
        """
        Compare and correct once; failures are in the result and never raised.

        Args:
            may_continue: Asked before each write; the pass ends as soon as it returns False.
        """
        result = WatchResult()
        try:
            records = {_name(record): record for record in self.registry.records()}
        except OrderkitError as error:
            result.failures["registry"] = error
            return result
        own_records = self._update_registry(records, result, may_continue)
        result.registered = len(own_records)
        result.ready = sum((m.get("status") or {}).get("ready") is True for m in own_records)
        if may_continue():
            self._update_catalog(own_records, result)
        result.complete = may_continue()
        return result

    def _update_registry(
        self, records: dict[str, Manifest], result: WatchResult, may_continue: Callable[[], bool]
    ) -> Sequence[Manifest]:
        """Make the registry agree with the bucket; return the records of this source."""
        try:
            comparison = compare(self.bucket.blobs(), list(records.values()), self.origin)
        except OrderkitError as error:
            result.failures["bucket"] = error
            return self._own(records)
        result.refusals = dict(comparison.refusals)
        result.listed = len(comparison.blobs_by_name) + len(comparison.refusals)
        self._log_refusals(result.refusals)
        try:
            self._put(comparison, records, result, may_continue)
            self._remove(comparison, records, result, may_continue)
        except OrderkitError as error:
            result.failures["registry"] = error
        return self._own(records)

    def _own(self, records: dict[str, Manifest]) -> Sequence[Manifest]:
        return [record for record in records.values() if self.origin.owns(record)]

    def _put(
        self,
        comparison: Comparison,
        records: dict[str, Manifest],
        result: WatchResult,
        may_continue: Callable[[], bool],
    ) -> None:
        for name, blob in sorted(comparison.blobs_by_name.items()):
            if not may_continue():
                return
            put = self.registry.put(name, blob, records.get(name))
            result.writes += put.writes
            if put.refusal:
                result.refusals[blob.path] = put.refusal
            if put.record is not None:
                records[name] = put.record

    def _remove(
        self,
        comparison: Comparison,
        records: dict[str, Manifest],
        result: WatchResult,
        may_continue: Callable[[], bool],
    ) -> None:
        loss = judge_loss(comparison, len(self._own(records)), self.rule)
        result.missing, result.suspicious = loss.missing, loss.suspicious
        self._missing_counts.note(comparison.missing)
        confirmed = self.confirmation.is_confirmed(loss)
        if loss.suspicious and not confirmed:
            logger.warning("%s: %s; nothing is removed", self.origin.root, loss.reason)
        for name in removable(
            comparison, loss, self._missing_counts, self.rule, confirmed=confirmed
        ):
            if not may_continue():
                return
            self.registry.remove(records.pop(name))
            result.removed += 1

    def _update_catalog(self, own_records: Sequence[Manifest], result: WatchResult) -> None:
        try:
            result.commit = self.catalog.sync(own_records)
            if self.register is not None:
                self.register()
                self.register = None
        except OrderkitError as error:
            result.failures["catalog"] = error

    def _log_refusals(self, refusals: dict[str, str]) -> None:
        """Log a refusal once, and not in every pass."""
        for path, reason in refusals.items():
            if self._logged_refusals.get(path) != reason:
                logger.warning("%r is not registered: %s", path, reason)
        self._logged_refusals = dict(refusals)


def _name(record: Manifest) -> str:
    return str(metadata(record).get("name"))
