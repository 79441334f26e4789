"""
Leave out groups of the platform that are organisations of somebody else.

Groups in a token of the forge are its organisations, and anybody may create one of a name that
``platformGroups`` lists. Thread-safe.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection

_JUDGED_S = 30.0
"""How long a verdict counts: as long as a person's groups do."""


class JudgedGroups:
    """The groups of one provider."""

    def __init__(self, platform_groups: Collection[str], problem: Callable[[str], str]) -> None:
        """
        Prepare; nothing is asked.

        Args:
            problem: Returns why nobody counts as a member of an organisation; empty: they count.
        """
        self._platform_groups, self._problem = frozenset(platform_groups), problem
        self._judged: dict[str, tuple[float, str]] = {}

    def believed(self, groups: frozenset[str]) -> frozenset[str]:
        """
        Return the groups that count.

        Raises:
            OrderkitError: One of them is the platform's, and the forge cannot be asked.
        """
        return frozenset(
            group
            for group in groups
            if group not in self._platform_groups or not self._problem_of(group.rpartition("/")[2])
        )

    def _problem_of(self, org: str) -> str:
        at, problem = self._judged.get(org, (0.0, ""))
        if not at or time.monotonic() - at >= _JUDGED_S:
            problem = self._problem(org)
            self._judged[org] = (time.monotonic(), problem)
        return problem
