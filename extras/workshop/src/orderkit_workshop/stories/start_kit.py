"""
Add a kit to a pack: drafted from a few fields, or from an existing XRD.

The kit is created, generated and tested in a copy of the pack. Only then its files are written to
the pack. The text of ``pack.yaml`` stays byte for byte; one entry is added.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import PurePosixPath

from ground.errors import OrderkitError, RefusedError
from ground.names import NAME_MAX, Files, check_label
from kubeschema.validate.findings import Finding, FindingSeverity, Located
from kubeschema.xrd import xr_kind
from orderkit.core.kit.field_names import spelt_out
from orderkit.core.kit.pack import Pack, read_pack
from orderkit_workshop.generate.kit_draft import Draft, skeleton_values, xrd_of
from orderkit_workshop.ports.pack_folder import PackFolder, SkeletonRenderer
from orderkit_workshop.stories import check_kits, generate_kits
from orderkit_workshop.stories.test_kits import ROOM, VALUES, TestSelection, run_tests
from yamlfiles.edit import Edit, Op, edit

PACK = PurePosixPath("pack.yaml")


class FailsItselfError(OrderkitError):
    """The new kit fails its own test. Nothing was written."""

    def __init__(self, scenario: str, why: str) -> None:
        super().__init__(f"the kit was not added: scenario {scenario} fails: {why}")
        self.why = why


@dataclass(frozen=True, slots=True)
class KitAdded:
    """A kit that is in the pack now. `written` are new files, `changed` those that had others."""

    name: str
    new_files: tuple[PurePosixPath, ...]
    changed: tuple[PurePosixPath, ...]
    scenarios: int
    findings: tuple[str, ...]
    """What ``kit check`` says of it."""


def new_kit(pack: PackFolder, draft: Draft, render_skeleton: SkeletonRenderer) -> KitAdded:
    """
    Add a kit that works: XRD, Composition, station, tests, and what is generated.

    Raises:
        InvalidInputError: A name is none, or the pack is broken.
        RefusedError: The pack has such a kit, or files where its rooms would be.
        FailsItselfError: What was made does not pass its own test.
    """
    xrd = xrd_of(draft)
    title = draft.title or spelt_out(draft.name)
    values = skeleton_values(draft.name, title, xrd)
    rendered = render_skeleton("kit", values)
    return add_kit(pack, draft.name, {path: file.data for path, file in rendered.items()})


def group_of(pack: PackFolder) -> str:
    """Return the API group of the pack's kits, or one made from the pack's name."""
    pack_read = read_pack(pack.files())
    groups = [xr_kind(kit.xrd).group for kit in pack_read.kits()]
    return max(groups, key=groups.count) if groups else f"{pack_read.name}.example.org"


def add_kit(pack: PackFolder, name: str, files: Files) -> KitAdded:
    """
    Put a kit's own files into a pack, with everything that follows from them.

    Raises:
        InvalidInputError: The name is none, or a file is broken.
        RefusedError: Something is in its place.
        FailsItselfError: It does not pass its own test.
    """
    check_label("name", name, longest=NAME_MAX)
    before = _read(pack)
    _check_free(pack, read_pack(before), name, files)
    listed = edit(before[PACK], [Edit(("spec", "kits"), Op.ADD, name)], name=str(PACK))
    with pack.scratch({**before, **files, PACK: listed}) as copy:
        generate_kits.apply_generation(copy, generate_kits.plan_generation(copy, [name]))
        report = run_tests(TestSelection(copy, [name], update=True))
        for case in report.cases:
            if not case.ok:
                raise FailsItselfError(case.name, case.message.partition("; if it must")[0])
        findings = tuple(map(_finding_line, check_kits.check_pack(copy, [name]).findings))
        after = copy.files_below(PurePosixPath())
    added = {path: data for path, data in after.items() if before.get(path) != data}
    _place(pack, added, before)
    return KitAdded(
        name,
        tuple(sorted(path for path in added if path not in before)),
        tuple(sorted(path for path in added if path in before)),
        len(report.cases),
        findings,
    )


def _finding_line(entry: Located) -> str:
    severity = check_kits.severity_of(entry)
    line = f"{entry.file}:{entry.line or 1}: {severity.value}: {entry.about}"
    if isinstance(entry.about, Finding) and severity is FindingSeverity.ERROR and entry.about.hint:
        return f"{line}: {entry.about.hint}"
    return line


def _read(pack: PackFolder) -> Files:
    files = pack.files(docs=True)
    values = pack.file(ROOM / VALUES)
    return files if values is None else {**files, ROOM / VALUES: values}


def _check_free(
    pack: PackFolder, pack_read: Pack, name: str, files: Iterable[PurePosixPath]
) -> None:
    if name in pack_read.kit_names:
        raise RefusedError(
            f"pack '{pack_read.name}' has a kit '{name}'", hint="choose another name"
        )
    rooms = {
        *(PurePosixPath("templates", name), PurePosixPath("stations", name)),
        *(PurePosixPath("day2", name), PurePosixPath("gitops", "apis", name), ROOM / name),
        *files,
    }
    for path in sorted(rooms):
        if pack.exists(path):
            raise RefusedError(
                f"{path} exists, and no kit '{name}' is listed in pack.yaml",
                hint="move it away, or list the kit in pack.yaml if it is one",
            )


def _place(pack: PackFolder, added: Files, before: Files) -> None:
    """Write into the pack; on failure, undo what was written."""
    touched: list[PurePosixPath] = []
    try:
        # pack.yaml last, so that a broken kit never enters the pack
        for path in sorted(added, key=lambda path: (path == PACK, path)):
            touched.append(path)
            pack.write(path, added[path])
    except BaseException:
        for path in touched:
            pack.write(path, before.get(path))
        raise
