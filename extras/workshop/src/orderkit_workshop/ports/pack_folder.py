"""
A pack's working copy, as its authors have it on their machine.

Paths are relative to the pack. Implemented by ``folders.local_pack``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any, Protocol

from compositions.station import Station
from ground.errors import OrderkitError
from ground.names import Files

if TYPE_CHECKING:  # few flows of kits render
    from softwaretemplates.render import SkeletonFile

Fingerprints = Mapping[str, Mapping[str, Mapping[str, str]]]
"""Kit -> run -> part -> digest."""


class ProbeError(OrderkitError):
    """A process that runs pipelines did not answer."""


class PackFolder(Protocol):
    """The folder of one pack."""

    def files(self, *, docs: bool = False) -> Files:
        """
        Read ``pack.yaml`` and the pack's rooms.

        Args:
            docs: Read the kits' pages too; they are no room, because they are never published.

        Raises:
            InvalidInputError: It is not a pack, holds a link, or is too large.
        """
        ...

    def file(self, path: PurePosixPath) -> bytes | None:
        """Return one file, also outside the rooms; None if no plain file is there."""
        ...

    def files_below(self, path: PurePosixPath) -> dict[PurePosixPath, bytes]:
        """Return every file below a folder by its path relative to that folder, sorted."""
        ...

    def folders(self, path: PurePosixPath) -> list[str]:
        """Return the names of the folders in a folder, sorted; empty if it is not there."""
        ...

    def exists(self, path: PurePosixPath) -> bool:
        """Say whether anything is at a path."""
        ...

    def write(self, path: PurePosixPath, data: bytes | None) -> None:
        """
        Put one file in place as a whole, or remove it (None) with folders left empty.

        Raises:
            InvalidInputError: A link stands in the way. OSError: It cannot be written.
        """
        ...

    def stations(self) -> Mapping[str, Station]:
        """Load the pack's stations; one that cannot be refuses every order."""
        ...

    def programs(self, files: Files) -> Mapping[str, Station]:
        """Return the functions of a pack whose programs are on this machine, by their names."""
        ...

    def at_commit(self, ref: str) -> tuple[Files, Mapping[str, Station]]:
        """
        Read the pack as a commit of its git repository has it, and load its stations.

        Raises:
            NotFoundError: No git repository, no such commit, or no pack in this folder there.
            InvalidInputError: A link, or more files or bytes than a pack may have.
        """
        ...

    def scratch(self, files: Files) -> AbstractContextManager[PackFolder]:
        """Give a temporary folder with these files, in which a change can be tried."""
        ...

    def fingerprints(
        self, kits: Sequence[str], seeds: Sequence[str]
    ) -> AbstractContextManager[Callable[[], Sequence[Fingerprints]]]:
        """
        Start running kits' pipelines, in one process for each seed of Python's hashes.

        The context gives what waits for the results, seed by seed, and ends the processes. Waiting
        raises ProbeError if a process failed or took more than two minutes.
        """
        ...


class SkeletonRenderer(Protocol):
    """Renders the skeletons of new packs and kits that come with this installation."""

    def __call__(
        self, name: str, values: Mapping[str, Any]
    ) -> Mapping[PurePosixPath, SkeletonFile]:
        """
        Return the files of a skeleton.

        Raises:
            NotFoundError: The installation lacks it. InvalidInputError: It cannot be rendered.
        """
        ...
