"""
Whether git could merge a file that two branches changed: tried here, without the forge.

For a forge that answers the same while it checks and for a conflict.
"""

from __future__ import annotations

import tempfile
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pygit2

_MAX_BYTES = 1_000_000
"""Of a file: whoever pushes decides how large it is, and comparing takes its time."""


def conflicts(before: bytes | None, ours: bytes, theirs: bytes) -> bool:
    """
    Say whether git's three-way merge of a file leaves a conflict. False if it is over a megabyte.

    Args:
        before: What it held where the branches parted; None: both added it.
    """
    if any(len(data) > _MAX_BYTES for data in (before or b"", ours, theirs)):
        return False
    import pygit2

    with tempfile.TemporaryDirectory() as folder:
        repository = pygit2.init_repository(folder, bare=True)
        ancestor, base, head = (_tree(repository, data) for data in (before, ours, theirs))
        return bool(repository.merge_trees(ancestor, base, head).conflicts)


def _tree(repository: pygit2.Repository, data: bytes | None) -> pygit2.Oid:
    import pygit2

    tree = repository.TreeBuilder()
    if data is not None:
        tree.insert("file", repository.create_blob(data), pygit2.enums.FileMode.BLOB)
    return tree.write()
