"""Files that somebody broke at random: the check tells, it never fails itself."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import labkit

from orderkit_workshop.check import KitUnderCheck, PackFacts, check_kit

if TYPE_CHECKING:
    from chances import Chances

FILES = labkit.generated(labkit.TEXTS)
SOURCES = sorted(p for p in FILES if p.suffix == ".yaml" and p.parts[0] != "pack.yaml")
VALUES = ("1", "true", "[]", "{}", "null", "[1]", "{a: b}", "x", "-3", "1.5", "[{}]", "[null]")


def broken(text: str, chance: random.Random) -> str:
    lines = text.split("\n")
    at = chance.randrange(len(lines))
    other = chance.randrange(len(lines))
    key = lines[at].partition(":")[0]
    ways = (
        lambda: lines[:at] + lines[at + 1 :],
        lambda: [*lines[:at], lines[other], *lines[at:]],
        lambda: [*lines[:at], f"{key}: {chance.choice(VALUES)}", *lines[at + 1 :]],
        lambda: [*lines[:at], f"  {lines[at]}", *lines[at + 1 :]],
        lambda: [*lines[:at], lines[at].replace(":", "", 1), *lines[at + 1 :]],
    )
    return "\n".join(chance.choice(ways)())


def test_broken_files_are_findings_and_never_crashes(chances: Chances) -> None:
    for number in range(chances.count(short=25, full=20_000)):
        chance = chances.random(f"hostile kit {number}")
        files = dict(FILES)
        for _ in range(chance.choice((1, 1, 2))):
            path = chance.choice(SOURCES)
            files[path] = broken(files[path].decode(), chance).encode()
        check_kit(KitUnderCheck("lab", PackFacts(files, {"lab": labkit.station})))
