"""
Decide which tests a change has to pass: those of the houses it touches and of all above them.

    scripts/affected.py BASE     by what differs between BASE and the work tree; without it, all

Prints shell assignments for `.ci/run`: ``tests`` (what of `make test-all` runs), ``journeys`` (1:
`make e2e` runs), and as comments the reason and what was left out. What this cannot judge, such as
a lock file, a script or the tests' support, runs everything.
"""

from __future__ import annotations

import shlex
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from scripts.houses import HOUSES, LIBRARIES  # noqa: E402 - the path comes first

_STANDINS, _WORKSHOP, _PRODUCT = "extras/standins", "extras/workshop", "src"
_REST = "tests"
ROOMS = {
    **{f"{house.folder}/tests": (house.folder,) for house in LIBRARIES},
    f"{_WORKSHOP}/tests": (_WORKSHOP,),
    f"{_STANDINS}/tests": (_STANDINS,),
    "tests/conformance/yamledit": ("libs/yamlfiles",),
    "tests/conformance/render": ("libs/softwaretemplates",),
    **{
        f"tests/conformance/{name}": (_STANDINS,)
        for name in ("catalog", "cluster", "crossplane", "delivery", "forge", "portal", "validate")
    },
    **{
        f"tests/unit/{name}": (_PRODUCT,)
        for name in ("adapters", "argocd", "core", "live", "notify", "platform", "web")
    },
    _REST: (_WORKSHOP, _STANDINS),
}
"""For each folder of tests the houses it is about; it reaches those below them too."""
_PAGES = (
    "tests/component/pages",
    *("tests/unit/test_doc_links.py", "tests/unit/test_documented_commands.py"),
    *("tests/unit/test_security_page.py", "tests/unit/test_station_api_page.py"),
)


@dataclass(frozen=True, slots=True)
class Decision:
    """What runs, why, and what does not."""

    tests: tuple[str, ...]
    """Paths for pytest; empty: none of them."""
    journeys: bool
    reason: str
    left_out: tuple[str, ...] = ()


def decide(changed: Iterable[str]) -> Decision:
    """Decide by the paths of the files that changed, seen from the root of the repository."""
    houses: set[str] = set()
    rooms: set[str] = set()
    pages = False
    for path in changed:
        house = _house_of(path)
        room = _room_of(path)
        if house:
            houses.add(house)
        elif room and room != _REST:
            rooms.add(room)
        elif path.endswith((".md", ".png", ".svg")) and not path.startswith("packs/"):
            pages = True
        else:
            return Decision(tuple(_everything()), journeys=True, reason=f"{path} may reach all")
    ran = {room for room, tops in ROOMS.items() if houses & _reached(tops)} | rooms
    if _REST in ran:
        tests = _everything(without=set(ROOMS) - ran)
    else:
        tests = [*sorted(ran), *(_PAGES if pages else ())]
    reason = f"changed: {', '.join(sorted(houses | rooms)) or 'pages'}"
    left_out = [room for room in ROOMS if room not in ran]
    return Decision(tuple(tests), bool(houses), reason, tuple(left_out))


def _house_of(path: str) -> str:
    for house in HOUSES:
        if path.startswith(f"{house.source}/"):
            return house.folder
    return ""


def _room_of(path: str) -> str:
    found = [room for room in ROOMS if path.startswith(f"{room}/")]
    return max(found, key=len) if found else ""


def _reached(tops: Iterable[str]) -> set[str]:
    floors = {house.folder: house.floor for house in HOUSES}
    return {other for top in tops for other in floors if floors[other] < floors[top]} | {*tops}


def _everything(without: Iterable[str] = ()) -> list[str]:
    rooms = [room for room in ROOMS if not room.startswith(f"{_REST}/") and room not in without]
    return [*rooms, *(f"--ignore={room}" for room in sorted(without) if room.startswith("tests/"))]


def main(base: str) -> None:
    decision = Decision(tuple(_everything()), journeys=True, reason="no commit to compare with")
    if base:
        names = ["git", "diff", "--name-only", base, "--"]
        untracked = ["git", "ls-files", "--others", "--exclude-standard"]
        changed = [
            line
            for command in (names, untracked)
            for line in subprocess.run(  # noqa: S603  git, with a ref that CI names
                command, cwd=ROOT, capture_output=True, text=True, check=True
            ).stdout.splitlines()
        ]
        decision = decide(changed)
    print(f"# {decision.reason}")
    print(f"# left out: {', '.join(decision.left_out) or 'nothing'}")
    print(f"tests={shlex.quote(' '.join(decision.tests))}")
    print(f"journeys={int(decision.journeys)}")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "")
