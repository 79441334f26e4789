"""
Read a pack from a folder on disk, and identify its commit.

The reference pack lies beside the sources in a checkout and inside the package in a wheel.
Only the rooms of a pack are read; symbolic links are refused, sizes are capped.
"""

from __future__ import annotations

import hashlib
import io
import stat
import subprocess
import tarfile
from pathlib import Path, PurePosixPath

import orderkit
from ground.errors import InvalidInputError, NotFoundError, OrderkitError, shorten
from ground.names import Files
from softwaretemplates.size_limit import MIB, SIZE_LIMIT

ROOMS = ("templates", "day2", "stations", "gitops")
SCHEMAS = "schemas"
"""Folder for CRDs that others deliver; plans use their schemas."""
DOCS = "docs/kits"
"""Folder of the kits' generated pages."""
_PACK_MAX_BYTES = 2 * SIZE_LIMIT
"""A pack is held in memory and published in one commit; a skeleton may have videos."""
_FILES_MAX = 5_000
_GIT_S = 60
_NOISE = {"__pycache__", ".DS_Store"}


def reference_pack() -> Path:
    """
    Return the folder of the pack that comes with Orderkit.

    Raises:
        NotFoundError: The installation lacks it.
    """
    package = Path(orderkit.__file__).parent
    for folder in (package / "reference_pack", package.parents[1]):
        if (folder / "pack.yaml").is_file():
            return folder
    raise NotFoundError(
        "the reference pack is missing in this installation", hint="install Orderkit again"
    )


def is_reference_pack(folder: Path) -> bool:
    """Say whether a skeleton belongs to the pack that comes with this installation."""
    rooms = [(reference_pack() / room).resolve() for room in ("templates", "day2", "skeletons")]
    return any(folder.resolve().is_relative_to(room) for room in rooms)


def read_folder(folder: Path, *, docs: bool = False) -> Files:
    """
    Read ``pack.yaml`` and the pack's rooms.

    Args:
        docs: Read the kits' pages too; they are no room, because they are never published.

    Raises:
        InvalidInputError: No pack there, a link, or more files or bytes than a pack may have.
    """
    if not (folder / "pack.yaml").is_file():
        hint = "go to your pack's folder, name it with --pack DIR, or start one: orderkit init DIR"
        raise InvalidInputError("pack", str(folder), "has no pack.yaml", hint=hint)
    files = {PurePosixPath("pack.yaml"): (folder / "pack.yaml").read_bytes()}
    for room in (*ROOMS, SCHEMAS, *((DOCS,) if docs else ())):
        files |= read_room(folder, room)
    if len(files) > _FILES_MAX:
        raise InvalidInputError(
            "pack",
            str(folder),
            f"has more than {_FILES_MAX} files",
            hint="move files that no kit needs out of the folder",
        )
    if sum(map(len, files.values())) > _PACK_MAX_BYTES:
        raise InvalidInputError(
            "pack",
            str(folder),
            f"has more than {_PACK_MAX_BYTES // MIB} MiB",
            hint="keep large files elsewhere, and fetch them with fetch:plain",
        )
    return files


def read_room(folder: Path, room: str) -> Files:
    """
    Read one folder of a pack; {} if it is missing.

    Raises:
        InvalidInputError: A link, or a file that is too large.
    """
    return {
        PurePosixPath(path.relative_to(folder)): _read(path)
        for path in sorted((folder / room).rglob("*"))
        if not path.is_dir() and _NOISE.isdisjoint(path.parts)
    }


def read_commit(folder: Path, ref: str) -> Files:
    """
    Read the pack in this folder as a commit of its git repository has it.

    Raises:
        NotFoundError: No git repository, no such commit, or no pack in this folder there.
        InvalidInputError: A link, or more files or bytes than a pack may have.
    """
    # --end-of-options: a ref never becomes an option of git
    commit = _git(folder, "rev-parse", "--verify", "--end-of-options", f"{ref}^{{commit}}")
    if not commit:
        raise NotFoundError(
            f"{folder}: git has no commit '{ref}'", hint="name a commit, tag or branch; fetch it"
        )
    archive = _git_bytes(folder, "archive", "--format=tar", commit)
    files = _unpacked(archive) if archive else {}
    if PurePosixPath("pack.yaml") not in files:
        raise NotFoundError(
            f"{folder}: no pack.yaml there at '{ref}'",
            hint="name a commit or branch that has pack.yaml",
        )
    return files


def _unpacked(archive: bytes) -> Files:
    files: dict[PurePosixPath, bytes] = {}
    with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
        for member in tar:
            path = PurePosixPath(member.name)
            inside = path.parts[0] in (*ROOMS, SCHEMAS) or path == PurePosixPath("pack.yaml")
            if member.isdir() or not (inside or path.is_relative_to(DOCS)):
                continue
            content = tar.extractfile(member) if member.isreg() else None
            if content is None or member.size > SIZE_LIMIT or len(files) == _FILES_MAX:
                raise InvalidInputError(
                    str(path), None, "is a link, is too large, or exceeds the number of files"
                )
            files[path] = content.read()
    return files


def write_file(folder: Path, path: PurePosixPath, data: bytes | None) -> None:
    """
    Put one file of a pack in place as a whole, or remove it (None) with folders left empty.

    Raises:
        InvalidInputError: A link stands in the way.
        OSError: It cannot be written.
    """
    target = folder / path
    for step in (target, *target.parents):
        if step == folder:
            break
        if step.is_symlink():
            raise InvalidInputError(str(step), None, "is a symbolic link; a pack has none")
    if data is None:
        target.unlink(missing_ok=True)
        _drop_empty(target.parent, folder)
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    beside = (
        folder / f".{target.name}.new"
    )  # outside the pack's folders, so a leftover of a kill is never published
    beside.write_bytes(data)
    beside.replace(target)


def _drop_empty(start: Path, root: Path) -> None:
    for step in (start, *start.parents):
        if step == root or any(step.iterdir()):
            return
        step.rmdir()


def _read(path: Path) -> bytes:
    if path.is_symlink():
        raise InvalidInputError(str(path), None, "is a symbolic link; a pack has none")
    if path.stat().st_size > SIZE_LIMIT:
        raise InvalidInputError(
            str(path), path.stat().st_size, f"bytes are more than {SIZE_LIMIT // MIB} MiB"
        )
    data = path.read_bytes()
    if "skeleton" in path.parts and data.startswith(b"#!") and path.stat().st_mode & stat.S_IXUSR:
        raise InvalidInputError(
            str(path),
            None,
            "is an executable script in a skeleton; the forge's API would publish a plain file",
            hint="make it a plain file (chmod -x) and run it as 'sh FILE'",
        )
    return data


def pack_commit(folder: Path, files: Files) -> str:
    """
    Return 40 hexadecimal digits that identify the pack.

    The checkout's HEAD if git has exactly these files; otherwise (a wheel, a dirty tree) a
    digest of the files, so that two different packs never have the same identity.
    """
    rooms = ["pack.yaml", *ROOMS, SCHEMAS]
    changed = _git(folder, "status", "--porcelain", "--", *rooms)
    # a dirty tree is not what HEAD names: two different packs never have the same identity
    if changed == "":
        head = _git(folder, "rev-parse", "HEAD")
        if head:
            return head
    digest = hashlib.sha256()
    for path in sorted(files):
        digest.update(str(path).encode() + b"\0" + files[path] + b"\0")
    return digest.hexdigest()[:40]


def _git(folder: Path, *arguments: str) -> str | None:
    output = _git_bytes(folder, *arguments)
    return None if output is None else output.decode().strip()


def _git_bytes(folder: Path, *arguments: str) -> bytes | None:
    try:
        return run_git(folder, *arguments)
    except OrderkitError:
        return None


def run_git(folder: Path, *arguments: str) -> bytes:
    """
    Run git in a folder and return what it prints.

    Raises:
        NotFoundError: git is missing. OrderkitError: git refuses.
    """
    try:
        process = subprocess.run(  # noqa: S603 - our own arguments
            ["git", "-C", str(folder), *arguments],  # noqa: S607 - git from PATH
            capture_output=True,
            check=True,
            timeout=_GIT_S,
        )
    except OSError as error:
        raise NotFoundError("git is not on PATH", hint="install git, or give --no-git") from error
    except subprocess.SubprocessError as error:
        stderr = error.stderr if isinstance(error, subprocess.CalledProcessError) else b""
        problem = shorten(stderr.decode(errors="replace").strip() or str(error))
        raise OrderkitError(f"git {arguments[0]}: {problem}", hint="or give --no-git") from error
    return process.stdout
