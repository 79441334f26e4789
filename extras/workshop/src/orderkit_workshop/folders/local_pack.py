"""
The working copy of a pack on this machine: a `PackFolder`.

Fingerprints are made by children (``adapters.processes``) that read the same folder: `fingerprint`
is their entry.
"""

from __future__ import annotations

import json
import tempfile
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from compositions.station import Station
from ground.names import Files
from orderkit.adapters.folders import pack_folder
from orderkit.adapters.folders.confined_stations import confined_stations, confined_stations_from
from orderkit.adapters.functions.local_functions import program_functions
from orderkit.adapters.processes.child_process import SocketChild
from orderkit.ports.processes import ChildEndedError, ChildTimeoutError, ProcessLimits
from orderkit_workshop.ports.pack_folder import Fingerprints, PackFolder, ProbeError

_ENTRY = "orderkit_workshop.folders.local_pack:fingerprint"
_PROBE_S = 120.0


@dataclass(frozen=True, slots=True)
class LocalPack:
    """A `PackFolder`."""

    root: Path

    def files(self, *, docs: bool = False) -> Files:
        return pack_folder.read_folder(self.root, docs=docs)

    def file(self, path: PurePosixPath) -> bytes | None:
        file = self.root / path
        return file.read_bytes() if file.is_file() else None

    def files_below(self, path: PurePosixPath) -> dict[PurePosixPath, bytes]:
        folder = self.root / path
        files = (file for file in sorted(folder.rglob("*")) if file.is_file())
        return {
            PurePosixPath(file.relative_to(folder)): file.read_bytes()
            for file in files
            if "__pycache__" not in file.parts
        }

    def folders(self, path: PurePosixPath) -> list[str]:
        folder = self.root / path
        entries = folder.iterdir() if folder.is_dir() else ()
        return sorted(entry.name for entry in entries if entry.is_dir())

    def exists(self, path: PurePosixPath) -> bool:
        return (self.root / path).exists()

    def write(self, path: PurePosixPath, data: bytes | None) -> None:
        pack_folder.write_file(self.root, path, data)

    def stations(self) -> Mapping[str, Station]:
        return confined_stations(self.root)

    def programs(self, files: Files) -> Mapping[str, Station]:
        return program_functions(files)

    def at_commit(self, ref: str) -> tuple[Files, Mapping[str, Station]]:
        files = pack_folder.read_commit(self.root, ref)
        return files, confined_stations_from(files)

    @contextmanager
    def scratch(self, files: Files) -> Iterator[PackFolder]:
        with tempfile.TemporaryDirectory(prefix="orderkit-") as temporary:
            copy = LocalPack(Path(temporary) / "pack")
            copy.root.mkdir()
            for path, data in files.items():
                copy.write(path, data)
            yield copy

    @contextmanager
    def fingerprints(
        self, kits: Sequence[str], seeds: Sequence[str]
    ) -> Iterator[Callable[[], Sequence[Fingerprints]]]:
        message = json.dumps([str(self.root), *kits]).encode()
        with ExitStack() as undo:
            children = [
                undo.enter_context(
                    SocketChild(_ENTRY, ProcessLimits(hash_seed=seed, is_silent=True))
                )
                for seed in seeds
            ]
            for child in children:
                child.send(message, _PROBE_S)
            yield lambda: [_fingerprints(child) for child in children]


def _fingerprints(child: SocketChild) -> Fingerprints:
    try:
        answer = json.loads(child.receive(_PROBE_S))
    except ChildTimeoutError as error:
        raise ProbeError(f"running the pipelines took more than {_PROBE_S:g} s") from error
    except ChildEndedError as error:
        raise ProbeError(
            f"running the pipelines in a process of its own failed: {error}"
        ) from error
    if "error" in answer:
        raise ProbeError(f"running the pipelines in a process of its own failed: {answer['error']}")
    fingerprints: Fingerprints = answer["kits"]
    return fingerprints


def fingerprint(message: bytes) -> tuple[bytes, None]:
    """Run the pipelines of kits in this process and return digests of what came out."""
    from orderkit_workshop.check import (  # lazy: children need them
        KitUnderCheck,
        PackFacts,
        try_kit,
    )
    from orderkit_workshop.check.trial_runs import fingerprints

    root, *kits = json.loads(message)
    pack = LocalPack(Path(root))
    try:
        files = pack.files()
        facts = PackFacts(files, pack.stations(), pack.programs(files))
        answer: object = {
            "kits": {kit: fingerprints(try_kit(KitUnderCheck(kit, facts))) for kit in kits}
        }
    except Exception as error:  # noqa: BLE001 - stations are anybody's code; the owner reports it
        answer = {"error": traceback.format_exception_only(error)[-1].strip()}
    return json.dumps(answer).encode(), None
