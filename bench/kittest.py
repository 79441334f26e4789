"""``orderkit kit test`` with 100 scenarios of the garage: copies of its own."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

from bench.figure import Figure, median_s, size
from orderkit.adapters.folders.pack_folder import ROOMS, reference_pack
from orderkit_workshop.folders.local_pack import LocalPack
from orderkit_workshop.stories.test_kits import TestSelection, run_tests

SCENARIOS, RUNS = size((100, 5), (2, 1))


def figures() -> Iterator[Figure]:
    """Yield the time of one run over a pack folder, reading the pack and its stations included."""
    with tempfile.TemporaryDirectory() as place:
        pack = Path(place)
        for room in ROOMS:
            if (reference_pack() / room).exists():
                shutil.copytree(reference_pack() / room, pack / room)
        shutil.copy(reference_pack() / "pack.yaml", pack)
        cases = sorted((reference_pack() / "tests/kits/garage").iterdir())
        for number in range(SCENARIOS):
            case = cases[number % len(cases)]
            shutil.copytree(case, pack / f"tests/kits/garage/{case.name}-{number}")
        report = run_tests(TestSelection(LocalPack(pack)))
        assert (len(report.cases), report.ok) == (SCENARIOS, True)
        spent_s = median_s(lambda: run_tests(TestSelection(LocalPack(pack))), runs=RUNS)
    yield Figure("kit test, 100 scenarios", spent_s, "s", aim="<= 2")
