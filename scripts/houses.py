"""
The houses of this repository, from the ground up: folder, package, and what its code may weigh.

A house imports only those below it. ``pyproject.toml`` has that as a contract of import-linter,
``make test HOUSE=FOLDER`` refuses the imports, and ``scripts/sizes.py`` holds each to its budget.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class House:
    """One distribution."""

    folder: str
    package: str
    floor: int
    budget: int
    """The most lines of code; a commit that needs more raises it and says what a user gets."""
    aim: int
    """The lines of code that it is to come down to."""

    @property
    def source(self) -> Path:
        return Path("src" if self.folder == "src" else f"{self.folder}/src", self.package)


HOUSES = (
    House("libs/ground", "ground", 0, 2_390, 1_900),
    House("libs/yamlfiles", "yamlfiles", 1, 2_320, 2_300),
    House("libs/kubeschema", "kubeschema", 2, 6_745, 6_000),
    House("libs/softwaretemplates", "softwaretemplates", 2, 5_510, 4_800),
    House("libs/compositions", "compositions", 3, 4_430, 4_000),
    House("src", "orderkit", 4, 70_290, 47_000),
    House("extras/workshop", "orderkit_workshop", 5, 9_400, 7_000),
    House("extras/standins", "orderkit_standins", 5, 21_870, 15_000),
)
LIBRARIES = tuple(house for house in HOUSES if house.folder.startswith("libs/"))


def below(folder: str) -> set[str]:
    """Return the packages that the tests of a house may import: its own and those below it."""
    floor = next(house.floor for house in HOUSES if house.folder == folder)
    return {house.package for house in HOUSES if house.floor < floor or house.folder == folder}
