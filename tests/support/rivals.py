"""Let somebody else act between two steps of a flow: at a call of one of its ports."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal


class Rival:
    """A port at whose first call of a method somebody else acts, once; otherwise as it is."""

    def __init__(
        self,
        port: object,
        method: str,
        act: Callable[[], object],
        *,
        when: Literal["before", "after"] = "before",
    ) -> None:
        self._port, self._method, self._act, self._when = port, method, act, when
        self.has_acted = False

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._port, name)
        if name != self._method or self.has_acted:
            return method

        def call(*arguments: Any, **options: Any) -> Any:
            if self._when == "before":
                self._once()
            answer = method(*arguments, **options)
            self._once()
            return answer

        return call

    def _once(self) -> None:
        if not self.has_acted:
            self.has_acted = True
            self._act()
