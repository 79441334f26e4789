"""A member with push rights: real git, real pushes, any message, author and date."""

from __future__ import annotations

import os
import subprocess
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

MALLORY = "Mallory <mallory@example.org>"


@dataclass(frozen=True)
class Pusher:
    """A clone of an order's repository, and its owner's credentials."""

    clone: Path

    @classmethod
    def cloned(cls, folder: Path, url: str, user: str, token: str) -> Pusher:
        """Clone ``http://HOST/OWNER/REPOSITORY.git`` into a new folder."""
        scheme, _, rest = url.partition("://")
        pusher = cls(folder / "clone")
        remote = f"{scheme}://{quote(user)}:{quote(token)}@{rest}"
        _git(folder, "clone", "--quiet", remote, str(pusher.clone))
        return pusher

    def git(self, *arguments: str) -> str:
        return _git(self.clone, *arguments)

    def commit(self, message: str, files: dict[str, str]) -> str:
        """Commit files with this message; return the commit's id."""
        for path, text in files.items():
            target = self.clone / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(text)
        self.git("add", "--all")
        self.git("commit", "--quiet", "--allow-empty", "--cleanup=verbatim", "-m", message)
        return self.git("rev-parse", "HEAD")

    def replace(self, path: str, old: str, new: str) -> dict[str, str]:
        """Return a file with a piece of its text replaced."""
        text = (self.clone / path).read_text()
        assert old in text, text
        return {path: text.replace(old, new)}

    def pull(self) -> None:
        self.git("pull", "--quiet", "--ff-only")

    def push(self, ref: str = "HEAD:main", *options: str) -> None:
        self.git("push", "--quiet", *options, "origin", ref)

    def message(self, commit: str) -> str:
        return self.git("log", "-1", "--format=%B", commit)


def _git(folder: Path, *arguments: str) -> str:
    environment = {
        **os.environ,
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_TERMINAL_PROMPT": "0",
        **{f"GIT_{role}_NAME": "Mallory" for role in ("AUTHOR", "COMMITTER")},
        **{f"GIT_{role}_EMAIL": "mallory@example.org" for role in ("AUTHOR", "COMMITTER")},
    }
    done = subprocess.run(
        ["git", *arguments],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()
