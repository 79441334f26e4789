"""``backup.yaml``: which repositories a backup has, and what git does not know of them. Pure."""

from __future__ import annotations

from ground.errors import InvalidInputError
from ground.names import CommitSha, RepoId
from ground.shapes import StrictShape
from orderkit.core.documents import read_document, write_document

BACKUP_FILE = "backup.yaml"


class MirroredRepository(StrictShape, frozen=True):
    """One repository as the forge had it."""

    name: str
    """``OWNER/NAME``."""
    head: CommitSha = CommitSha("")
    """The commit of ``main``; empty: it had none."""
    description: str = ""
    private: bool = False
    archived: bool = False

    @property
    def id(self) -> RepoId:
        """
        Return what it is called on the forge.

        Raises:
            InvalidInputError: That is no name of a repository.
        """
        repo = RepoId.parse(self.name)
        if repo is None:
            raise InvalidInputError(
                f"{BACKUP_FILE}: name",
                self.name,
                "is no OWNER/NAME",
                hint="make the backup again: orderkit backup FOLDER",
            )
        return repo


class Backup(StrictShape, frozen=True, kw_only=True):
    """A backup of one platform."""

    platform: str
    taken: str
    """When it began, RFC 3339: what was written later may be missing."""
    release: str
    """Of the Orderkit that made it."""
    forge: str
    repositories: tuple[MirroredRepository, ...] = ()

    def to_yaml(self) -> str:
        """Write the file."""
        return write_document("Backup", self, named="platform")


def parse(text: str) -> Backup:
    """
    Read the file.

    Raises:
        InvalidInputError: A key or value is refused.
        RefusedError: A newer Orderkit wrote it.
    """
    return read_document(Backup, text, name=BACKUP_FILE, kinds=("Backup",), named="platform")
