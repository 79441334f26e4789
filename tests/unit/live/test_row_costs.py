"""What an order costs is computed once for each state; a failure is a cost nobody knows."""

from __future__ import annotations

import logging
import queue
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from clusteralone import platform_of
from heldfiles import FIRST, HeldFiles

from ground.errors import RefusedError, UnreachableError
from ground.names import CommitSha, RepoId
from ground.objects.kube_objects import Manifest
from orderkit.flows.live.live_row import RowCosts

XR: Manifest = {"metadata": {"name": "garage-a"}, "spec": {"stage": "s1"}}
OTHER: Manifest = {"metadata": {"name": "garage-a"}, "spec": {"stage": "s2"}}


class Failing(HeldFiles):
    """A forge whose pack cannot be read, for a reason each time."""

    def __init__(self, *errors: Any) -> None:
        super().__init__({RepoId("platform", "pack"): {}})
        self.errors = iter(errors)
        self.asked: queue.Queue[str] = queue.Queue()

    def head(self, repo: RepoId, branch: str = "main") -> CommitSha | None:
        self.asked.put("head")
        error = next(self.errors, None)
        if error is not None:
            raise error
        return super().head(repo, branch)


@contextmanager
def costs_of(forge: Failing, known: queue.Queue[str]) -> Iterator[RowCosts]:
    costs = RowCosts(platform_of(None, forge=forge), known.put)
    yield costs
    costs.stop()


@pytest.mark.parametrize(
    ("error", "unknown", "logged"),
    [
        (RefusedError("the pack is hidden"), "the pack is hidden", "cannot be computed now"),
        (ZeroDivisionError(), "this is a bug in Orderkit", "a bug while computing"),
    ],
)
def test_a_cost_that_cannot_be_computed_is_not_known(
    error: Exception, unknown: str, logged: str, caplog: pytest.LogCaptureFixture
) -> None:
    known: queue.Queue[str] = queue.Queue()
    with caplog.at_level(logging.WARNING), costs_of(Failing(error), known) as costs:
        before = costs.of("garage-a", XR, FIRST)
        told = known.get(timeout=20)
        after = costs.of("garage-a", XR, FIRST)

    assert (before, told, after and after.unknown) == (None, "garage-a", (unknown,))
    assert logged in caplog.text


def test_a_forge_that_gives_no_answer_is_asked_again_until_the_service_stops() -> None:
    known: queue.Queue[str] = queue.Queue()
    forge = Failing(UnreachableError("no answer"))
    with costs_of(forge, known) as costs:
        costs.of("garage-a", XR, FIRST)
        forge.asked.get(timeout=20)
        assert costs.of("garage-a", XR, FIRST) is None

    assert known.empty()
    assert forge.asked.empty()


def test_an_order_without_prices_has_no_cost_and_is_computed_once() -> None:
    known: queue.Queue[str] = queue.Queue()
    forge = Failing()
    with costs_of(forge, known) as costs:
        assert costs.of("garage-a", None, FIRST) is None
        assert costs.of("garage-a", XR, None) is None
        costs.of("garage-a", XR, FIRST)
        forge.asked.get(timeout=20)
        costs.of("garage-b", OTHER, FIRST)
        forge.asked.get(timeout=20)
        assert costs.of("garage-a", XR, FIRST) is None
        assert forge.asked.empty()
        costs.of("garage-a", OTHER, FIRST)
        forge.asked.get(timeout=20)
        costs.forget("garage-a")
        costs.of("garage-a", OTHER, FIRST)
        forge.asked.get(timeout=20)

    assert known.empty()
