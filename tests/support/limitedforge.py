"""A forge whose limit of speed is used up for a while."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ground.errors import TooFastError


@dataclass
class LimitedForge:
    """Refuses one kind of call so many times in a row, says for how long, and takes it then."""

    forge: Any
    method: str
    refusals: int
    seconds: float

    def __getattr__(self, name: str) -> Any:
        if name == self.method:
            self.refusals -= 1
            if self.refusals >= 0:
                return self._refuse
        return getattr(self.forge, name)

    def _refuse(self, *_arguments: Any, **_named: Any) -> Any:
        raise TooFastError("the forge's limit is used up", seconds=self.seconds)
