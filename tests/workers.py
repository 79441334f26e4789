"""
How the tests are shared among the workers of pytest-xdist (``-n``), and one summary for all.

A worker takes one module after the other, each whole and in its order, so that what a module
starts is started once. Modules that share an expensive real system stay together on one worker.
What takes long begins first. Lines that tests keep for the end of the report (`Summary`) come from
all workers.

Registered by ``conftest.py``.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterable
from typing import Any

import pytest
from xdist.remote import Producer
from xdist.scheduler.loadscope import LoadScopeScheduling

TOGETHER = {
    "a real Argo CD and its Kubernetes API server": (
        "tests/conformance/cluster/",
        "tests/conformance/delivery/",
        "tests/conformance/policies/",
        "tests/conformance/validate/",
        "tests/conformance/xrds/",
        "tests/e2e/test_delivery_reasons.py",
        "tests/e2e/test_plan_applied.py",
        "tests/e2e/test_real_argocd.py",
        "tests/e2e/test_real_kube_datasets.py",
        "tests/e2e/test_real_layers.py",
        "tests/e2e/test_runner_on_real_kube.py",
    ),
    "a lab to bootstrap": ("tests/e2e/bootstrapped_lab/",),
    "a lab with a portal and a service": ("tests/e2e/shared_lab/",),
    "a real Backstage on the reference pack": (
        "tests/e2e/test_backstage_dryrun.py",
        "tests/e2e/test_backstage_service.py",
        "tests/e2e/test_backstage_steps.py",
        "tests/e2e/test_backstage_trees.py",
        "tests/e2e/test_browser_journey.py",
    ),
    "a real Backstage of the contracts": (
        "tests/conformance/catalog/",
        "tests/conformance/portal/",
    ),
    "a real Backstage on the corpus": (
        "tests/e2e/test_browser_generated.py",
        "tests/e2e/test_corpus_portal.py",
        "tests/e2e/test_wild_forms.py",
    ),
    "a real Backstage with steps of its own": (
        "tests/e2e/test_backstage_notifications.py",
        "tests/e2e/test_backstage_task.py",
        "tests/e2e/test_wild_steps.py",
    ),
}
"""Modules that one worker runs with ``--e2e``, by what they share."""

LONGEST_FIRST = (
    "tests/e2e/shared_lab/",
    "tests/e2e/test_real_packs.py",
    "tests/e2e/test_wild_pushes.py",
    "tests/e2e/test_real_gitea_orders.py",
    "tests/e2e/test_security_forge.py",
    "tests/e2e/test_real_gitea_changes.py",
    "tests/e2e/test_browser_changes.py",
    "tests/e2e/test_real_argocd.py",
    "tests/e2e/",
    "tests/conformance/delivery/",
    "tests/crash/",
    "tests/faults/",
    "tests/component/test_story_counts.py",
    "tests/component/changes/",
    "tests/component/platform/",
)
"""Begun in this order, before everything else: a long module at the end leaves a worker idle."""

QUICK = (
    "libs/",
    "extras/standins/tests/unit/",
    "extras/workshop/tests/unit/",
    "tests/unit/",
    "tests/wild/",
    "tests/conformance/",
)
"""
Begun before those where time is limited (``--leave-after``): thousands of facts in minutes, and
what the stand-ins and the real systems have in common.
"""

_TO_END_S = 240
"""What a module gets to end in, where time is limited."""

_OUTPUT = "orderkit summary"
_OBJECTS_BETWEEN_COLLECTIONS = 20_000
_summary = pytest.StashKey["Summary"]()


class Summary:
    """Lines for the end of the report, in sections; all workers' lines together."""

    def __init__(self) -> None:
        self._sources: list[tuple[str, Callable[[], Iterable[str]]]] = []

    def add(self, title: str, lines: Callable[[], Iterable[str]]) -> None:
        """Add what `lines` returns when the tests are over."""
        self._sources.append((title, lines))

    def lines(self) -> list[tuple[str, str]]:
        """Return each line with the title of its section."""
        return [(title, line) for title, lines in self._sources for line in lines()]


def summary(config: pytest.Config) -> Summary:
    """Return the summary of this process."""
    return config.stash.setdefault(_summary, Summary())


class Workers:
    """The hooks of a run, with and without workers."""

    def __init__(self) -> None:
        self._lines: list[tuple[str, str]] = []
        self._begun_at = time.monotonic()
        self._modules: set[str] = set()
        """Those that this process has begun."""

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> None:
        limit_s: float | None = item.config.getoption("--leave-after")
        if limit_s is None:
            return
        module = item.nodeid.partition("::")[0]
        is_begun = module in self._modules
        until_s = limit_s + _TO_END_S if is_begun else limit_s
        if time.monotonic() - self._begun_at > until_s:
            what = "ended" if is_begun else "begun"
            pytest.skip(f"no time left for {module}: not {what} within {until_s:.0f} s")
        self._modules.add(module)

    def pytest_xdist_make_scheduler(
        self, config: pytest.Config, log: Producer
    ) -> LoadScopeScheduling:
        config.option.loadscopereorder = False
        return _ByModule(config, log, together=bool(config.getoption("--e2e")))

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(
        self, config: pytest.Config, items: list[pytest.Item]
    ) -> None:
        quick = () if config.getoption("--leave-after") is None else QUICK
        items.sort(key=lambda item: -1 if item.nodeid.startswith(quick) else _rank(item))

    def pytest_collection_finish(self) -> None:
        gc.collect()
        gc.freeze()  # else each collection would walk through all tests and modules
        gc.set_threshold(_OBJECTS_BETWEEN_COLLECTIONS)

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        output: dict[str, Any] | None = getattr(session.config, "workeroutput", None)
        if output is not None:
            output[_OUTPUT] = summary(session.config).lines()

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        self._lines += map(tuple, getattr(node, "workeroutput", {}).get(_OUTPUT, []))

    def pytest_terminal_summary(
        self, terminalreporter: pytest.TerminalReporter, config: pytest.Config
    ) -> None:
        lines = [*summary(config).lines(), *self._lines]
        for title in dict.fromkeys(title for title, _ in lines):
            terminalreporter.section(title, sep="-")
            for of, line in lines:
                if of == title:
                    terminalreporter.write_line(line)


class _ByModule(LoadScopeScheduling):  # type: ignore[misc]  # xdist has no types
    def __init__(self, config: pytest.Config, log: Producer, *, together: bool) -> None:
        super().__init__(config, log)
        self._together = together

    def _split_scope(self, nodeid: str) -> str:
        module = nodeid.partition("::")[0]
        if self._together:
            for group, paths in TOGETHER.items():
                if module.startswith(paths):
                    return group
        return module


def _rank(item: pytest.Item) -> int:
    for rank, path in enumerate(LONGEST_FIRST):
        if item.nodeid.startswith(path):
            return rank
    return len(LONGEST_FIRST)


def deselect(
    config: pytest.Config, items: list[pytest.Item], unwanted: Callable[[pytest.Item], bool]
) -> None:
    """Leave tests out of a run, and count them in its summary."""
    config.hook.pytest_deselected(items=[item for item in items if unwanted(item)])
    items[:] = [item for item in items if not unwanted(item)]
