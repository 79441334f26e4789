"""
Generate a pack's files from its kits, and report what differs.

Reads a pack folder, writes only what differs, removes generated files that are obsolete.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Literal

from ground.errors import RefusedError
from ground.names import Files
from ground.unified_diff import unified_diff
from orderkit.core.kit.checked_kits import checked_kits
from orderkit.core.kit.model import Kit
from orderkit.core.kit.order_kinds import kinds
from orderkit.core.kit.pack import read_pack
from orderkit_workshop.generate.health_checks import OWN, SETTINGS, settings
from orderkit_workshop.generate.kit_files import generate, is_hand_written, leftovers
from orderkit_workshop.generate.order_policy import order_policies
from orderkit_workshop.ports.pack_folder import PackFolder

Action = Literal["same", "new", "changed", "removed"]


@dataclass(frozen=True, slots=True)
class GeneratedFile:
    """One generated file against what lies on disk."""

    kit: str
    """Empty for a file that is made of all kits."""
    path: PurePosixPath
    action: Action
    before: bytes | None
    after: bytes | None

    def diff(self) -> str:
        """Return a unified diff; empty if nothing differs."""
        return unified_diff(self.before, self.after, f"a/{self.path}", f"b/{self.path}")


@dataclass(frozen=True, slots=True)
class Generation:
    """What generating a pack's kits gives, file by file, sorted by path."""

    files: tuple[GeneratedFile, ...]

    @property
    def differing(self) -> tuple[GeneratedFile, ...]:
        """The files that are not up to date."""
        return tuple(file for file in self.files if file.action != "same")


def plan_generation(pack: PackFolder, kits: Sequence[str] = ()) -> Generation:
    """Generate the kits of a pack folder and compare, as `generated_from` says."""
    return generated_from(pack.files(docs=True), kits)


def generated_from(files: Files, kits: Sequence[str] = ()) -> Generation:
    """
    Generate the kits of a pack and compare; nothing is written.

    Args:
        kits: Names of kits; empty: all of the pack.

    Raises:
        NotFoundError: The pack has no kit of that name.
        InvalidInputError: The pack, a kit.yaml or an XRD is broken.
        RefusedError: A file written by hand stands where a generated one belongs.
    """
    kit_pack = read_pack(files)
    compared: list[GeneratedFile] = []
    read = {kit.name: kit for kit in checked_kits(kit_pack)}
    for name in kits or kit_pack.kit_names:
        generated = generate(files, read[name] if name in read else kit_pack.kit(name))
        obsolete = leftovers(files, name, generated)
        compared += _compared(name, files, {**generated, **dict.fromkeys(obsolete)})
    compared += _compared("", files, _of_all(files, kit_pack.name, tuple(read.values())))
    return Generation(tuple(sorted(compared, key=lambda file: file.path)))


def _of_all(files: Files, pack: str, kits: Sequence[Kit]) -> dict[PurePosixPath, bytes]:
    """Return the generated files that are made of all kits."""
    checks = settings(files, kits)
    if is_hand_written(files, SETTINGS, checks[SETTINGS]):
        raise RefusedError(
            f"{SETTINGS}: was written by hand, and a generated file belongs there",
            hint=f"move keys of your own into {OWN}, one file each, then delete it",
        )
    return {**kinds(pack, kits), **order_policies(files, kits), **checks}


def apply_generation(pack: PackFolder, generation: Generation) -> None:
    """
    Write what differs, remove obsolete files. Idempotent; each file is written whole.

    Raises:
        OSError: The folder cannot be written.
    """
    for file in generation.differing:
        pack.write(file.path, file.after)


def _compared(
    kit: str,
    files: Mapping[PurePosixPath, bytes],
    generated: Mapping[PurePosixPath, bytes | None],
) -> Iterator[GeneratedFile]:
    for path, after in generated.items():
        before = files.get(path)
        yield GeneratedFile(kit, path, _action(before, after), before, after)


def _action(before: bytes | None, after: bytes | None) -> Action:
    if before == after:
        return "same"
    if after is None:
        return "removed"
    return "new" if before is None else "changed"
