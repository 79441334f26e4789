"""
The programs of functions on this machine: images taken apart, each in a folder named by its digest.

A program gets here by ``orderkit functions add`` and in no other way, so a pack can only choose
among what a person of this machine has added. A folder is put in place as a whole and then stays.

    $XDG_CACHE_HOME/orderkit/functions/<digest>/
      program.json      command, environment and working directory of the image
      root/             its files
"""

from __future__ import annotations

import gzip
import hashlib
import json
import os
import re
import shutil
import stat
import sys
import tarfile
import tempfile
import zlib
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path, PurePosixPath
from typing import IO, Any

from ground.errors import RefusedError, shorten
from orderkit.adapters.processes.confined_program import PROXY_PORT, ProgramStart

UNPACKED_MAX_BYTES = 3 << 30
_MEMBERS_MAX, _LINKS_MAX, _DEPTH_MAX = 200_000, 40, 100
_OPAQUE, _WHITEOUT = ".wh..wh..opq", ".wh."
_MOUNTED = ("tmp", "dev", "proc")
"""Folders that confinement mounts something on."""
_DIGEST = re.compile(r"sha256:[0-9a-f]{64}\Z")
_CHUNK = 1 << 20
_GZIP, _ZSTD = b"\x1f\x8b", b"\x28\xb5\x2f\xfd"
_WINDOW_LOG = 27
"""128 MB, what zstd itself unpacks without being asked for more."""


@dataclass(frozen=True, slots=True)
class StoredProgram:
    """A program on this machine."""

    digest: str
    """Of the manifest of its image, or of the file that it came from."""
    root: Path
    start: ProgramStart


def store_folder() -> Path:
    """Return where programs lie (XDG cache folder)."""
    home = os.environ.get("XDG_CACHE_HOME")
    base = Path(home) if home else Path.home() / ".cache"
    return base / "orderkit" / "functions"


def stored_program(digest: str) -> StoredProgram | None:
    """Return a program that was added on this machine; None if it was not."""
    # a pack names it: anything but a digest could lead out of the store
    if not _DIGEST.match(digest):
        return None
    folder = store_folder() / digest.partition(":")[2]
    try:
        start = ProgramStart(**json.loads((folder / "program.json").read_text("utf-8")))
    except (OSError, ValueError, TypeError):
        return None
    return StoredProgram(digest, folder / "root", start)


def program_start(config: Mapping[str, Any], network: Sequence[str] = ()) -> ProgramStart:
    """
    Read how an image's program is started, with the option that every function understands.

    Args:
        network: What it may reach (`granted_network.granted_host`).

    Raises:
        RefusedError: The image says nothing that could be started.
    """
    command = config.get("Entrypoint") or config.get("Cmd") or []
    if not (isinstance(command, list) and command and all(isinstance(t, str) for t in command)):
        raise RefusedError(
            "the image names no program to start",
            hint="is it a package of a function, with its program (crossplane xpkg build)?",
        )
    pairs = (str(entry).partition("=") for entry in config.get("Env") or ())
    environment = {"HOME": "/tmp", "PATH": "/usr/local/bin:/usr/bin:/bin"}  # noqa: S108 - in there
    environment |= {name: text for name, _, text in pairs}
    if network:
        proxy = f"http://127.0.0.1:{PROXY_PORT}"
        environment |= dict.fromkeys(("HTTPS_PROXY", "https_proxy"), proxy)
    folder = config.get("WorkingDir") or "/"
    # every function understands it: no certificates, over a socket that only this user can reach
    return ProgramStart([*command, "--insecure"], environment, folder, tuple(network))


def add_program(
    digest: str, start: ProgramStart, layers: Iterable[IO[bytes]]
) -> tuple[StoredProgram, bytes]:
    """
    Take an image apart and keep it; return its ``package.yaml`` too, empty if it has none.

    Idempotent; what was interrupted leaves nothing that counts.

    Args:
        layers: From the lowest to the highest, each a tar archive that may be compressed.

    Raises:
        RefusedError: A layer is no such archive, names something outside, or is too large.
    """
    store = store_folder()
    store.mkdir(parents=True, exist_ok=True)
    draft = Path(tempfile.mkdtemp(prefix=".draft-", dir=store))
    try:
        # whoever runs the program is not its owner
        draft.chmod(0o755)
        root = draft / "root"
        _make_folder(root)
        unpacking = _Unpacking(root)
        for layer in layers:
            unpacking.add(layer)
        for name in _MOUNTED:
            unpacking.make_folder(name)
        (draft / "program.json").write_text(json.dumps(asdict(start)), encoding="utf-8")
        package = unpacking.read("package.yaml")
        final = store / digest.partition(":")[2]
        with suppress(OSError):  # it is there already, and has the same files
            draft.rename(final)
        if draft.exists():  # but perhaps another network
            (draft / "program.json").replace(final / "program.json")
    finally:
        shutil.rmtree(draft, ignore_errors=True)
    return StoredProgram(digest, final / "root", start), package


@dataclass(slots=True)
class _Unpacking:
    """Unpacks layers over each other. Every path stays below `root`, whatever links say."""

    root: Path
    bytes_left: int = UNPACKED_MAX_BYTES
    members_left: int = _MEMBERS_MAX
    _of_layer: set[Path] = field(default_factory=set)

    def add(self, layer: IO[bytes]) -> None:
        self._of_layer = set()
        try:
            with tarfile.open(fileobj=_Bounded(layer), mode="r|") as tar:  # type: ignore[call-overload]  # any object with read() will do
                for member in tar:
                    self._take(tar, member)
        # RecursionError: tarfile calls itself for each of several extended headers in a row
        except (tarfile.TarError, EOFError, OSError, RecursionError, ValueError, zlib.error) as e:
            raise RefusedError(
                f"a layer of the image cannot be unpacked: {shorten(str(e))}",
                hint="layers are tar archives, plain or compressed with gzip or zstd",
            ) from e

    def read(self, name: str) -> bytes:
        """Return a plain file at the root, at most 4 MB of it; empty if there is none."""
        path = self.root / name
        if path.is_symlink() or not path.is_file():
            return b""
        with path.open("rb") as stream:
            return stream.read(4 << 20)

    def make_folder(self, name: str) -> None:
        path = self.root / name
        if path.is_symlink() or not path.is_dir():
            self._remove(path)
            _make_folder(path)

    def _take(self, tar: tarfile.TarFile, member: tarfile.TarInfo) -> None:
        self.members_left -= 1
        self.bytes_left -= max(member.size, 0)
        if self.members_left < 0 or self.bytes_left < 0:
            raise RefusedError(
                f"the image has more than {_MEMBERS_MAX:,} files or {UNPACKED_MAX_BYTES >> 30} GiB"
            )
        steps = _steps(member.name)
        if not steps:
            return
        parent = self._inside(steps[:-1], make=True)
        name, path = steps[-1], parent / steps[-1]
        if name == _OPAQUE:
            # it hides what the layers below brought, not what this one has brought (OCI image
            # layers)
            for entry in parent.iterdir():
                if entry not in self._of_layer:
                    self._remove(entry)
        elif name.startswith(_WHITEOUT):
            self._remove(parent / _checked(name.removeprefix(_WHITEOUT)))
        elif member.isdir():
            if path.is_symlink() or not path.is_dir():
                self._remove(path)
                _make_folder(path)
            self._note(path)
        elif member.issym() or member.islnk() or member.isreg():
            self._remove(path)
            self._make(tar, member, path)
            self._note(path)

    def _make(self, tar: tarfile.TarFile, member: tarfile.TarInfo, path: Path) -> None:
        if member.issym():
            path.symlink_to(member.linkname)
            return
        if member.islnk():
            *above, last = _steps(member.linkname) or ("",)
            target = self._inside(above, make=False) / last
            if target.is_symlink() or not target.is_file():
                raise RefusedError(f"{member.name} is a link to {member.linkname}, no file of it")
            os.link(target, path, follow_symlinks=False)
            return
        source = tar.extractfile(member)
        # "x": a link in the file's place is not followed
        with path.open("xb") as file:
            while source is not None and (data := source.read(_CHUNK)):
                file.write(data)
        path.chmod(0o755 if member.mode & 0o111 else 0o644)
        changed_s = int(member.mtime) if 0 <= member.mtime < 1 << 32 else 0
        os.utime(path, (changed_s, changed_s))  # Python uses a compiled module of just this time

    def _note(self, path: Path) -> None:
        while path != self.root:
            self._of_layer.add(path)
            path = path.parent

    def _inside(self, steps: Sequence[str], *, make: bool) -> Path:
        """Return a folder, links followed as if the root were the machine's."""
        todo, done, links = list(steps), list[str](), 0
        while todo:
            step = todo.pop(0)
            if step == "..":
                done = done[:-1]
                continue
            path = self.root.joinpath(*done, step)
            try:
                mode = path.lstat().st_mode
            except FileNotFoundError:
                if not make:
                    raise RefusedError(f"{'/'.join(steps)} is not in the image") from None
                _make_folder(path)
                mode = stat.S_IFDIR
            if stat.S_ISLNK(mode):
                links += 1
                target = PurePosixPath(path.readlink())
                parts = [part for part in target.parts if part != "/"]
                if links > _LINKS_MAX or len(parts) + len(todo) > _DEPTH_MAX:
                    raise RefusedError(f"{'/'.join(steps)} has more than {_LINKS_MAX} links")
                done = [] if target.is_absolute() else done
                todo = [*parts, *todo]
            elif stat.S_ISDIR(mode):
                done.append(step)
            else:
                raise RefusedError(f"{'/'.join(steps)} is below a file")
        return self.root.joinpath(*done)

    def _remove(self, path: Path) -> None:
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)


class _Bounded:
    """Reads a layer, unzipped, and fails beyond `UNPACKED_MAX_BYTES`."""

    def __init__(self, layer: IO[bytes]) -> None:
        magic = layer.read(len(_ZSTD))
        layer.seek(0)
        self._source: Any = layer
        self._errors: tuple[type[Exception], ...] = ()
        if magic.startswith(_GZIP):
            self._source = gzip.GzipFile(fileobj=layer)
        elif magic == _ZSTD:
            self._source, self._errors = _unpacked_zstd(layer)
        self._left = UNPACKED_MAX_BYTES

    def read(self, size: int) -> bytes:
        try:
            data: bytes = self._source.read(size)
        except self._errors as error:
            raise ValueError(str(error)) from error
        self._left -= len(data)
        if self._left < 0:
            raise ValueError(f"it is larger than {UNPACKED_MAX_BYTES >> 30} GiB")
        return data


def _unpacked_zstd(layer: IO[bytes]) -> tuple[Any, tuple[type[Exception], ...]]:
    try:
        if sys.version_info >= (3, 14):
            from compression import zstd
        else:
            from backports import zstd
    except ImportError as error:
        raise RefusedError(
            "a layer of the image is compressed with zstd, which this Python cannot read",
            hint="pip install 'orderkit[functions]'",
        ) from error
    # its window is what unpacking keeps in memory; the format allows gigabytes
    options: dict[int, int] = {zstd.DecompressionParameter.window_log_max: _WINDOW_LOG}
    return zstd.ZstdFile(layer, options=options), (zstd.ZstdError,)


def _make_folder(path: Path) -> None:
    path.mkdir()
    path.chmod(0o755)  # whoever runs the program is not its owner


def _steps(name: str) -> tuple[str, ...]:
    """Return the steps of a member's path."""
    steps = tuple(step for step in name.split("/") if step not in ("", "."))
    if ".." in steps or len(steps) > _DEPTH_MAX:
        raise RefusedError(f"a layer of the image names {name!r}, which is outside of it")
    return steps


def _checked(name: str) -> str:
    if name in ("", ".", ".."):
        raise RefusedError(f"a layer of the image removes {name!r}, which is outside of it")
    return name


def digest_of(file: Path) -> str:
    """Return what identifies a file."""
    with file.open("rb") as stream:
        return f"sha256:{hashlib.file_digest(stream, 'sha256').hexdigest()}"
