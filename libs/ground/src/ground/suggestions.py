"""Hints for names that nobody knows: the nearest known one."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

__all__ = ["did_you_mean"]


def did_you_mean(name: object, names: Iterable[object], otherwise: str = "") -> str:
    """Return a hint that names the nearest of the known names; `otherwise` if none is near."""
    near = difflib.get_close_matches(str(name), list(map(str, names)), n=1)
    return f"did you mean '{near[0]}'?" if near else otherwise
