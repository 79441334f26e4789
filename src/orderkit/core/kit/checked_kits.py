"""
Read a kit whose author may have made mistakes: kit.yaml and XRD have to agree.

Called when a pack is published (``flows.install.pack_rendering``), by ``kit check``, ``kit
generate``, ``kit test`` and plans of a pack that is not published yet. A published kit was checked
then and is only read (``core.kit.pack``).
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import PurePosixPath

from ground.errors import InvalidInputError
from ground.names import Files
from ground.objects.kube_objects import Manifest, dig
from kubeschema.xrd import BrokenXrdError
from orderkit.core.kit.consistency import problems
from orderkit.core.kit.field_problems import KitProblem, Steps
from orderkit.core.kit.model import Kit
from orderkit.core.kit.pack import Pack, definition_path, kit_path, kit_spec, read_kit, read_pack
from yamlfiles import yaml11


def checked_kit(name: str, files: Files) -> Kit:
    """
    Read one kit of a pack whose author may have made mistakes.

    Raises:
        InvalidInputError: A file is missing or broken, or the first of `refusals`.
    """
    for refusal in refusals(name, files):
        raise refusal
    return read_kit(name, files)


def checked_kits(pack: Pack) -> tuple[Kit, ...]:
    """Read every kit of such a pack; raises like `checked_kit`."""
    return tuple(checked_kit(name, pack.files) for name in pack.kit_names)


def refusals(name: str, files: Files) -> Iterator[InvalidInputError]:
    """
    Yield everything that is wrong with a kit as errors that name file and line.

    Raises:
        InvalidInputError: A file is missing or not well-formed, so that nothing more can be said.
    """
    path = definition_path(name)
    try:
        kit = read_kit(name, files)
        taken = kind_problems(name, kit.xrd, files)
        for problem in (*taken, *problems(kit, kit_spec(name, files))):
            yield _refusal(problem, name, files)
    except BrokenXrdError as error:
        location = yaml11.field_location(str(path), files[path], error.steps)
        raise InvalidInputError(location, None, f"is refused: {error}", hint=error.hint) from error


def kind_problems(name: str, xrd: Manifest, files: Files) -> Iterator[KitProblem]:
    """
    Yield what a kit's XRD defines although a kit before it in ``pack.yaml`` does.

    The cluster holds one definition of a kind: one kit would be judged by the fields of the other.
    """
    kits = read_pack(files).kit_names if PurePosixPath("pack.yaml") in files else ()
    paths = [(kit, definition_path(kit), kit_path(kit)) for kit in kits]
    described = ((kit, files.get(xrd_path), files.get(path)) for kit, xrd_path, path in paths)
    owners = _owners(tuple(described)) if name in kits else {}
    taken = {
        steps: served
        for steps, served in _served_names(xrd).items()
        if owners.get(served, name) != name
    }
    for steps, served in taken.items():
        if steps[-1] == "kind" or (*steps[:-1], "kind") not in taken:
            owner = owners[served]
            hint = f"give it another {steps[-1]} or group, or remove kit {owner}"
            yield KitProblem("xrd", steps, served, f"is defined by kit {owner} already", hint)


@functools.lru_cache(maxsize=2)  # asked for each kit of a pack in turn
def _owners(described: tuple[tuple[str, bytes | None, bytes | None], ...]) -> Mapping[str, str]:
    """Return the first kit that defines each kind and plural; kits are name, XRD and kit.yaml."""
    owners: dict[str, str] = {}
    for name, definition, kit in described:
        texts = {definition_path(name): definition, kit_path(name): kit}
        files = {path: data for path, data in texts.items() if data is not None}
        with suppress(InvalidInputError):  # that kit's own refusal
            owners = dict.fromkeys(_served_names(read_kit(name, files).xrd).values(), name) | owners
    return owners


def _served_names(xrd: Manifest) -> dict[Steps, str]:
    """Return the kinds and plurals that an XRD has the API server serve, by their place."""
    return {
        ("spec", names, key): f"{dig(xrd, 'spec', names, key)}.{dig(xrd, 'spec', 'group')}"
        for names in ("names", "claimNames")
        for key in ("kind", "plural")
        if dig(xrd, "spec", names, key)
    }


def _refusal(problem: KitProblem, name: str, files: Files) -> InvalidInputError:
    path = definition_path(name) if problem.file == "xrd" else kit_path(name)
    location = (
        yaml11.field_location(str(path), files[path], problem.steps) if path in files else str(path)
    )
    return InvalidInputError(location, problem.value, problem.rule, hint=problem.hint)
