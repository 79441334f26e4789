"""A forge that counts what is asked of it."""

from __future__ import annotations

from collections import Counter
from typing import Any

from ground.names import RepoId
from orderkit.ports.forge import Forge


class CountedForge:
    """The platform's forge, and how often each of its methods was called for a repository."""

    def __init__(self, forge: Forge, repo: RepoId) -> None:
        self._forge, self._repo, self.calls = forge, repo, Counter[str]()

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._forge, name)
        if not callable(found):
            return found

        def counted(*arguments: Any, **named: Any) -> Any:
            self.calls[name] += arguments[:1] == (self._repo,)
            return found(*arguments, **named)

        return counted
