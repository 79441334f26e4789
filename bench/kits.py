"""
Kits: generating all of a pack, checking a pack of fifty.

The pack is the reference pack's garage under fifty names, each with an XRD, a Composition and a
station of its own. The peer of the check judges the same examples by the same XRD's schema with
the jsonschema library alone: no pipeline, no rules, no files.
"""

from __future__ import annotations

import re
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import yaml
from jsonschema import Draft4Validator

from bench.figure import Figure, size
from kubeschema.validate.findings import FindingSeverity
from orderkit.adapters.folders.pack_folder import reference_pack
from orderkit_workshop.folders.local_pack import LocalPack
from orderkit_workshop.stories import generate_kits
from orderkit_workshop.stories.check_kits import check_pack

KITS, RUNS = size((50, 3), (2, 1))
_ROOMS = ("templates", "stations", "gitops/apis")


def figures() -> Iterator[Figure]:
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        fifty(folder)
        shutil.copytree(reference_pack() / "gitops/functions", folder / "gitops/functions")
        pack = LocalPack(folder)
        generate_kits.apply_generation(pack, generate_kits.plan_generation(pack))
        generate_s = cpu_s(lambda: generate_kits.plan_generation(pack))
        yield Figure(f"kits.generate-{KITS}", generate_s, "s of CPU", aim="<= 1")
        verdict = check_pack(pack)
        assert verdict.count(FindingSeverity.ERROR) == 0, verdict.findings
        check_s = cpu_s(lambda: check_pack(pack))
        peer_s = cpu_s(lambda: _schemas_alone(folder))
        yield Figure(
            f"kits.check-{KITS}",
            check_s,
            "s of CPU",
            peer="jsonschema alone on the examples: no files, rules, pipeline",
            peer_value=peer_s,
            ratio=check_s / peer_s,
            aim="<= 5",
        )


def cpu_s(work: Callable[[], object]) -> float:
    """Return the median of this process's own seconds: one process, one core, no waiting."""

    def once() -> float:
        begin_s = time.process_time()
        work()
        return time.process_time() - begin_s

    return statistics.median(once() for _ in range(RUNS))


def fifty(pack: Path) -> None:
    """Write the pack: the garage under fifty names."""
    names = [f"bay-{number:02}" for number in range(KITS)]
    head = (reference_pack() / "pack.yaml").read_text()
    (pack / "pack.yaml").write_text(
        re.sub(r"kits:.*\Z", f"kits: [{', '.join(names)}]\n", head, flags=re.DOTALL)
    )
    for room in _ROOMS:
        for file in sorted((reference_pack() / room / "garage").rglob("*")):
            if file.is_file() and "__pycache__" not in file.parts:
                for name in names:
                    _copy(file, pack / room / name, file.relative_to(reference_pack() / room), name)


def _copy(file: Path, room: Path, path: Path, name: str) -> None:
    """Copy one file of the garage under another name; what is generated follows later."""
    text = file.read_text()
    if "Generated from" in text[:400]:
        return
    number = name.removeprefix("bay-")
    text = text.replace("XGarage", f"XBay{number}").replace("xgarage", f"xbay{number}")
    target = room / path.relative_to("garage")
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(text.replace("garage", name))


def _schemas_alone(pack: Path) -> None:
    for file in sorted((pack / "templates").glob("*/kit.yaml")):
        kit = yaml.safe_load(file.read_text())["spec"]
        xrd = pack / "gitops/apis" / file.parent.name / "definition.yaml"
        version = yaml.safe_load(xrd.read_text())["spec"]["versions"][0]
        schema = version["schema"]["openAPIV3Schema"]["properties"]["spec"]
        aliases = {alias: field for field, alias in (kit.get("aliases") or {}).items()}
        validator = Draft4Validator(schema)
        for example in kit.get("examples") or ():
            values = {aliases.get(key, key): value for key, value in example["values"].items()}
            assert not list(validator.iter_errors(values))
