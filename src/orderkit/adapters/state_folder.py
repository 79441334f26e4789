"""
The state folder of an embedded platform: version, lock, credentials, addresses.

    state.json          schema and version, written first
    lock                held by the process that runs the platform
    platform.yaml       addresses and credential files, for every other command
    kubeconfig          for kubectl
    ports.json          the ports, because what Git holds names them
    credentials/*       one secret a file, readable by the owner only
    forge/ cluster/ catalog/

Stopping and starting loses nothing; a folder of a newer Orderkit is refused, not damaged.
"""

from __future__ import annotations

import fcntl
import json
import os
import secrets
from collections.abc import Mapping
from io import TextIOWrapper
from pathlib import Path

from ground.errors import ConflictError, RefusedError
from orderkit.adapters.commit_signatures import new_signing_key

VERSION = 1
SCHEMA = "orderkit.state"
PLATFORM_FILE = "platform.yaml"
_DRAFTS = ".*.draft"


def default_state() -> Path:
    """Return where the embedded platform lives unless told otherwise (XDG state folder)."""
    base = os.environ.get("XDG_STATE_HOME") or str(Path.home() / ".local" / "state")
    return Path(base) / "orderkit"


def write_atomically(path: Path, text: str, *, mode: int = 0o644) -> None:
    """Write to a sibling and rename, so that nobody ever reads half a file."""
    draft = path.with_name(f".{path.name}.{os.getpid()}.draft")
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode)
    with os.fdopen(descriptor, "w", encoding="utf-8") as stream:
        stream.write(text)
    draft.replace(path)


class StateFolder:
    """An opened state folder, locked for this process until `close`."""

    def __init__(self, folder: Path) -> None:
        """
        Open or create the folder.

        Raises:
            RefusedError: It belongs to a newer version, or holds something else.
            ConflictError: Another process runs on it.
        """
        self.folder = folder
        _check_version(folder)
        self._lock = _lock(folder)
        (folder / "credentials").mkdir(mode=0o700, exist_ok=True)
        for draft in (*folder.glob(_DRAFTS), *folder.glob(f"*/{_DRAFTS}")):
            draft.unlink()  # of a writer that was killed; the lock says that nobody writes now
        if not (folder / "state.json").exists():
            text = json.dumps({"schema": SCHEMA, "version": VERSION}) + "\n"
            write_atomically(folder / "state.json", text)

    def part(self, name: str) -> Path:
        """Return the folder of one part, made if missing."""
        path = self.folder / name
        path.mkdir(mode=0o700, exist_ok=True)
        return path

    def credential(self, name: str) -> str:
        """Return a secret, made once and kept."""
        path = self.folder / "credentials" / name
        if not path.exists():
            write_atomically(path, secrets.token_hex(20) + "\n", mode=0o600)
        return path.read_text(encoding="utf-8").strip()

    def credential_path(self, name: str) -> Path:
        self.credential(name)
        return self.folder / "credentials" / name

    def signing_key_path(self) -> Path:
        """Return the file of the key that signs commits, made once and kept."""
        path = self.folder / "credentials" / "signing-key.pem"
        if not path.exists():
            write_atomically(path, new_signing_key(), mode=0o600)
        return path

    def remembered_ports(self) -> dict[str, int]:
        """Return the ports this platform used before; empty on the first start."""
        path = self.folder / "ports.json"
        if not path.exists():
            return {}
        ports = json.loads(path.read_text(encoding="utf-8"))
        return {str(server): int(port) for server, port in ports.items()}

    def remember_ports(self, ports: Mapping[str, int]) -> None:
        """Keep the ports: repositories, the ledger and kubeconfigs name them."""
        write_atomically(self.folder / "ports.json", json.dumps(dict(ports)) + "\n")

    def close(self) -> None:
        self._lock.close()


def _check_version(folder: Path) -> None:
    try:
        state = json.loads((folder / "state.json").read_text(encoding="utf-8"))
    except FileNotFoundError:
        _check_empty(folder)
        return
    except (OSError, ValueError) as error:
        raise RefusedError(
            f"{folder}/state.json cannot be read: {error}", hint="choose another --state folder"
        ) from error
    version = state.get("version") if isinstance(state, dict) else None
    if not isinstance(version, int) or state.get("schema") != SCHEMA:
        raise RefusedError(
            f"{folder} is not a state folder of Orderkit", hint="choose another --state folder"
        )
    if version > VERSION:
        raise RefusedError(
            f"{folder} has version {version}, this Orderkit knows up to {VERSION}",
            hint="run the newer Orderkit, or choose another --state folder",
        )


def _check_empty(folder: Path) -> None:
    """A folder without state.json is fine if missing, empty, or just begun when killed."""
    first_files = ("lock", "credentials", ".")
    if folder.is_dir() and not all(e.name.startswith(first_files) for e in folder.iterdir()):
        raise RefusedError(
            f"{folder} holds other files and no state.json",
            hint="choose an empty or new folder with --state",
        )


def _lock(folder: Path) -> TextIOWrapper:
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    stream = (folder / "lock").open("a")
    try:
        fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        stream.close()
        raise ConflictError(
            f"another process runs the platform in {folder}",
            hint="use it as it is, stop it, or choose another --state folder",
        ) from error
    return stream
