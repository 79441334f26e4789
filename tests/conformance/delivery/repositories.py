"""
Real repositories over HTTP: the embedded forge, which git clients and Argo CD clone from alike.

Repositories are made through the forge's API. Commits are written straight into the bare
repository, as a push leaves them: scenarios make many, and how a commit comes in is not the point.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pygit2

from ground.names import RepoId
from orderkit.adapters.gitea import GiteaForge
from orderkit.web.serving import HttpServer, bind
from orderkit_standins.forge import EmbeddedForge

_TOKEN = "c" * 40
_LOGIN = ("suite", "suite-password")


@dataclass(frozen=True, slots=True)
class Repositories:
    """A forge that serves repositories, and their folders on disk."""

    client: GiteaForge
    root: Path
    url: str
    login: tuple[str, str] = _LOGIN

    def make(self, repo: RepoId) -> str:
        """Make an empty repository, once; return the address one clones it from."""
        self.client.ensure_org(repo.owner)
        self.client.ensure_repo(repo, description="", private=False)
        return f"{self.url}/{repo}.git"

    def commit(self, repo: RepoId, files: Mapping[str, str | None], *, branch: str = "main") -> str:
        """Commit files (None removes one) on top of a branch; return the commit."""
        repository = self._open(repo)
        index = pygit2.Index()
        reference = f"refs/heads/{branch}"
        parents = []
        if reference in repository.references:
            parents = [repository.references[reference].target]
            index.read_tree(repository[parents[0]].peel(pygit2.Tree))
        for path, text in files.items():
            if text is None:
                index.remove(path)
            else:
                blob = repository.create_blob(text.encode())
                index.add(pygit2.IndexEntry(path, blob, pygit2.enums.FileMode.BLOB))
        who = pygit2.Signature("a", "a@example.org")
        tree = index.write_tree(repository)
        made = repository.create_commit(reference, who, who, "change", tree, parents)
        repository.free()
        return str(made)

    def tag(self, repo: RepoId, name: str, commit: str) -> None:
        """Put a lightweight tag on a commit, or move it there."""
        repository = self._open(repo)
        repository.references.create(f"refs/tags/{name}", pygit2.Oid(hex=commit), force=True)
        repository.free()

    def _open(self, repo: RepoId) -> pygit2.Repository:
        return pygit2.Repository(str(self.root / repo.owner / f"{repo.name}.git"))


@contextlib.contextmanager
def serving(folder: Path) -> Iterator[Repositories]:
    """Start a forge with its state in `folder`; it ends with the block."""
    with contextlib.ExitStack() as undo:
        forge = EmbeddedForge(folder)
        undo.callback(forge.close)
        server = HttpServer(forge.app, bind("forge", 0))
        server.start()
        undo.callback(server.stop)
        forge.set_base_url(server.url)
        forge.ensure_user(*_LOGIN, admin=True)
        forge.ensure_token(_LOGIN[0], "suite", _TOKEN, ["all"])
        client = GiteaForge(server.url, token=_TOKEN)
        undo.callback(client.close)
        yield Repositories(client, folder / "repos", server.url)
