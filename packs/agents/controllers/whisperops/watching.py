"""
One pass of the dataset-watcher: bucket, registry, catalog, in this order.

Level-based: a pass compares what is with what should be, so one that was cut short anywhere is
finished by the next. The catalog follows the registry and not the listing; where the bucket does
not answer, the other two are still brought in step. A pass over what did not change writes
nothing.

Made by ``building``; its rounds are called by ``running``; two watchers at once do no harm.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from orderkit.core.errors import OrderkitError
from orderkit.core.names import CommitSha
from orderkit.core.objects.kube_objects import Manifest, metadata
from whisperops.buckets import Bucket
from whisperops.catalogrepo import CatalogRepo
from whisperops.confirming import Confirmation
from whisperops.planning import Absences, LossRule, Plan, judge, plan, removable
from whisperops.records import Origin
from whisperops.registry import Registry

logger = logging.getLogger(__name__)


@dataclass(slots=True)
class Pass:
    """What a pass found and did."""

    listed: int = 0
    registered: int = 0
    ready: int = 0
    writes: int = 0
    removed: int = 0
    missing: int = 0
    refused: dict[str, str] = field(default_factory=dict)
    """Paths that cannot be registered, and why."""
    suspicious: bool = False
    commit: CommitSha | None = None
    failures: dict[str, OrderkitError] = field(default_factory=dict)
    """By what failed: ``bucket``, ``registry``, ``catalog``. Empty: everything is in step."""
    whole: bool = True
    """False when it was told to stop before its end."""


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
    """Makes the portal read the catalog's files; called until it succeeds once."""
    _absences: Absences = field(default_factory=Absences)
    _told: dict[str, str] = field(default_factory=dict)

    def run_pass(self, going: Callable[[], bool] = lambda: True) -> Pass:
        """
        Compare and mend once; failures are in the result and never raised.

        Args:
            going: Asked before each write; as soon as it says no, the pass ends.
        """
        done = Pass()
        try:
            living = {_name(record): record for record in self.registry.living()}
        except OrderkitError as error:
            done.failures["registry"] = error
            return done
        ours = self._follow(living, done, going)
        done.registered = len(ours)
        done.ready = sum((record.get("status") or {}).get("ready") is True for record in ours)
        if going():
            self._publish(ours, done)
        done.whole = going()
        return done

    def _follow(
        self, living: dict[str, Manifest], done: Pass, going: Callable[[], bool]
    ) -> Sequence[Manifest]:
        """Bring the registry in step with the bucket; return the records of this source."""
        try:
            found = plan(self.bucket.blobs(), list(living.values()), self.origin)
        except OrderkitError as error:
            done.failures["bucket"] = error
            return self._ours(living)
        done.listed, done.refused = len(found.named) + len(found.refused), dict(found.refused)
        self._tell_refused(done.refused)
        try:
            self._put(found, living, done, going)
            self._remove(found, living, done, going)
        except OrderkitError as error:
            done.failures["registry"] = error
        return self._ours(living)

    def _ours(self, living: dict[str, Manifest]) -> Sequence[Manifest]:
        return [record for record in living.values() if self.origin.owns(record)]

    def _put(
        self, found: Plan, living: dict[str, Manifest], done: Pass, going: Callable[[], bool]
    ) -> None:
        for name, blob in sorted(found.named.items()):
            if not going():
                return
            put = self.registry.put(name, blob, living.get(name))
            done.writes += put.writes
            if put.refusal:
                done.refused[blob.path] = put.refusal
            if put.living is not None:
                living[name] = put.living

    def _remove(
        self, found: Plan, living: dict[str, Manifest], done: Pass, going: Callable[[], bool]
    ) -> None:
        loss = judge(found, len(self._ours(living)), self.rule)
        done.missing, done.suspicious = loss.missing, loss.suspicious
        self._absences.note(found.missing)
        confirmed = self.confirmation.given(loss)
        if loss.suspicious and not confirmed:
            logger.warning("%s: %s; nothing is removed", self.origin.root, loss.reason)
        for name in removable(found, loss, self._absences, self.rule, confirmed=confirmed):
            if not going():
                return
            self.registry.remove(living.pop(name))
            done.removed += 1

    def _publish(self, ours: Sequence[Manifest], done: Pass) -> None:
        try:
            done.commit = self.catalog.sync(ours)
            if self.register is not None:
                self.register()
                self.register = None
        except OrderkitError as error:
            done.failures["catalog"] = error

    def _tell_refused(self, refused: dict[str, str]) -> None:
        """Log what cannot be registered once, and not at every pass."""
        for path, why in refused.items():
            if self._told.get(path) != why:
                logger.warning("%r is not registered: %s", path, why)
        self._told = dict(refused)


def _name(record: Manifest) -> str:
    return str(metadata(record).get("name"))
