"""
The dated list of known holes of the servers beside Orderkit.

``known_holes.yaml`` is the list. A release is affected if one of a hole's ranges contains it; the
range's end is the first release of that line with the fix. The list is read once per process.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from orderkit.core.platform.release_number import ReleaseNumber, read_release
from yamlfiles import yaml12

SEVERITIES = ("critical", "high", "medium", "low", "unrated")
_RANGE = re.compile(r"(?:>=(?P<first>[0-9.]+) )?<(?P<fixed>[0-9.]+)")


@dataclass(frozen=True, slots=True)
class ReleaseRange:
    """Releases from `first` on, candidates of it included, and before `fixed`."""

    first: ReleaseNumber
    fixed: ReleaseNumber
    text: str
    """As the list writes it."""

    def __contains__(self, release: ReleaseNumber) -> bool:
        return self.first.numbers <= release.numbers and release < self.fixed


@dataclass(frozen=True, slots=True)
class KnownHole:
    """A hole of a server, and what it means for a platform of Orderkit."""

    id: str
    product: str
    severity: str
    affected: tuple[ReleaseRange, ...]
    means: str
    source: str

    def fixed_in(self, release: ReleaseNumber) -> str:
        """Return the first release with the fix after an affected one; empty if unaffected."""
        return next((part.text.rpartition("<")[2] for part in self.affected if release in part), "")


@dataclass(frozen=True, slots=True)
class HoleList:
    """All known holes, as of a day."""

    date: str
    holes: tuple[KnownHole, ...]

    def affecting(self, product: str, release: ReleaseNumber) -> Sequence[KnownHole]:
        """Return the holes of a release, the most severe first."""
        found = [hole for hole in self.holes if hole.product == product and hole.fixed_in(release)]
        return sorted(found, key=lambda hole: SEVERITIES.index(hole.severity))


@cache
def known_holes() -> HoleList:
    """Return the list that this release of Orderkit knows."""
    name = "known_holes.yaml"
    data = yaml12.load(files("orderkit.core.platform").joinpath(name).read_bytes(), name=name)
    return HoleList(
        str(data["date"]),
        tuple(
            KnownHole(
                hole["id"],
                hole["product"],
                hole["severity"],
                tuple(map(read_range, hole["affected"])),
                hole["means"],
                hole["source"],
            )
            for hole in data["holes"]
        ),
    )


def read_range(text: str) -> ReleaseRange:
    """
    Return the range that ``>=FIRST <FIXED`` or ``<FIXED`` names.

    Raises:
        ValueError: The text has another form.
    """
    match = _RANGE.fullmatch(text)
    first, fixed = (
        (read_release(match["first"] or "0.0.0"), read_release(match["fixed"]))
        if match
        else (None, None)
    )
    if match is None or first is None or fixed is None:
        raise ValueError(f"'{text}' is no range of releases, such as '>=3.4.0 <3.4.10'")
    return ReleaseRange(first, fixed, text)
