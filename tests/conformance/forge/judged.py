"""
Every exchange with a face of an embedded forge, in every test of a process, is judged.

The forges of GitHub and GitLab say in their descriptions what may be sent and answered. A test in
which something else is exchanged, or delivered to a webhook, fails.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from starlette.types import ASGIApp
from tests.conformance.forge import described, gitlab_described
from tests.conformance.forge.exchanges import Exchange, Watched

from orderkit_standins.forge.forge import EmbeddedForge
from orderkit_standins.forge.webhooks import Deliveries, Delivery

GITHUB, GITLAB = described.Judge(), gitlab_described.Judge()


class Judging:
    """The plugin."""

    def __init__(self) -> None:
        """Stand before the app and the deliveries of each embedded forge that is made."""
        make_app, add = EmbeddedForge._app, Deliveries.add  # noqa: SLF001  between the two

        def watched(forge: EmbeddedForge) -> ASGIApp:
            judges: dict[str, Callable[[Exchange], None]] = {gitlab_described.API: GITLAB.judge}
            if described.DESCRIPTION.exists():
                judges |= dict.fromkeys((described.API, described.GRAPHQL), GITHUB.judge)
            return Watched(make_app(forge), judges)

        def delivering(deliveries: Deliveries, delivery: Delivery) -> None:
            if "X-GitHub-Event" in delivery.headers and described.DESCRIPTION.exists():
                GITHUB.delivered(delivery.headers, delivery.body)
            if "X-Gitlab-Event" in delivery.headers:
                GITLAB.delivered(delivery.headers, delivery.body)
            add(deliveries, delivery)

        EmbeddedForge._app = watched  # type: ignore[method-assign,assignment]  # noqa: SLF001
        Deliveries.add = delivering  # type: ignore[method-assign,assignment]

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self) -> Iterator[None]:
        """Fail a test in which, or before which, something else was exchanged."""
        try:
            return (yield)
        finally:
            found = [*GITHUB.problems, *GITLAB.problems]
            GITHUB.problems, GITLAB.problems = [], []
            if found:
                pytest.fail("not as the forge describes it:\n" + "\n".join(found[:20]))
