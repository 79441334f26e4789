"""The random choices of a run of the tests."""

from __future__ import annotations

import random
from dataclasses import dataclass


@dataclass(frozen=True)
class Chances:
    """The random choices of a run: its seed, and how many are wanted."""

    seed: int
    soak: bool

    def random(self, name: str) -> random.Random:
        """Return the choices of one test: the same for the same seed and name."""
        return random.Random(f"{self.seed} {name}")  # noqa: S311  no secrets

    def count(self, short: int, full: int) -> int:
        return full if self.soak else short
