"""
Bare copies of repositories, made with the user's git.

git gets the forge's credentials in its environment, which other users cannot read.
"""

from __future__ import annotations

import base64
import os
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from ground.errors import NotFoundError, RemoteError, shorten
from ground.names import CommitSha, RepoId
from ground.secrets import redact, register
from orderkit.core.platform.backup_file import BACKUP_FILE

_REFS = ("refs/heads/*:refs/heads/*", "refs/tags/*:refs/tags/*")
"""Not ``refs/pull``: those are the forge's, and it refuses them."""
_TIMEOUT_S = 600.0


@dataclass(frozen=True, slots=True)
class GitMirrors:
    """Copies below `folder`, as ``OWNER/NAME.git``."""

    folder: Path
    user: str
    password: str
    ca_file: Path | None = None

    def fetch(self, repo: RepoId, url: str) -> None:
        """
        Bring branches and tags up to date.

        Nothing is pruned or collected: who deletes or replaces a branch on the forge takes no
        commit out of the copy.
        """
        path = self._path(repo)
        if not (path / "HEAD").exists():
            path.mkdir(parents=True, exist_ok=True)
            self._git(path, "init", "--quiet", "--bare", "--template=", "--initial-branch=main")
            # nothing is collected, and reflogs (a bare repository has none) name what was replaced
            self._git(path, "config", "gc.auto", "0")
            self._git(path, "config", "core.logAllRefUpdates", "always")
        self._git(path, "fetch", "--quiet", "--no-write-fetch-head", url, *(f"+{r}" for r in _REFS))

    def push(self, repo: RepoId, url: str) -> None:
        """Write branches and tags to the forge."""
        path = self._path(repo)
        if not (path / "HEAD").exists():
            raise NotFoundError(
                f"the backup has no copy of {repo}", hint=f"look into {self.folder}"
            )
        self._git(path, "push", "--quiet", url, *_REFS)

    def head(self, repo: RepoId) -> CommitSha | None:
        """Return the commit of ``main``."""
        path = self._path(repo)
        if not (path / "HEAD").exists():
            return None
        answer = self._git(path, "for-each-ref", "--format=%(objectname)", "refs/heads/main")
        return CommitSha(answer) if answer else None

    def contains(self, repo: RepoId, commit: str) -> bool:
        """Say whether ``main`` has a commit in its history."""
        try:
            self._git(self._path(repo), "merge-base", "--is-ancestor", commit, "refs/heads/main")
        except RemoteError:  # git's answer is its exit code, also for a commit that it lacks
            return False
        return True

    def record(self) -> str | None:
        """Return the text of ``backup.yaml``."""
        try:
            return (self.folder / BACKUP_FILE).read_text(encoding="utf-8")
        except FileNotFoundError:
            return None

    def write_record(self, text: str) -> None:
        """Replace ``backup.yaml``."""
        new = self.folder / f".{BACKUP_FILE}.new"
        new.write_text(text, encoding="utf-8")
        new.replace(self.folder / BACKUP_FILE)

    def _path(self, repo: RepoId) -> Path:
        return self.folder.absolute() / repo.owner / f"{repo.name}.git"

    def _git(self, path: Path, *arguments: str) -> str:
        try:
            done = subprocess.run(  # noqa: S603 - our own arguments
                ["git", "-C", str(path), *arguments],  # noqa: S607 - git from PATH
                env=self._environment(),
                capture_output=True,
                check=False,
                timeout=_TIMEOUT_S,
            )
        except OSError as error:
            raise NotFoundError("git is not on PATH", hint="install git") from error
        except subprocess.TimeoutExpired as error:
            raise RemoteError(
                f"git {arguments[0]} took longer than {_TIMEOUT_S:.0f} s",
                hint="repeat the command",
            ) from error
        if done.returncode:
            lines = done.stderr.decode(errors="replace").strip().splitlines()
            problem = redact(shorten(lines[-1] if lines else f"exit {done.returncode}"))
            raise RemoteError(
                f"git {arguments[0]}: {problem}",
                hint="repeat the command; 'orderkit doctor' checks the forge",
            )
        return done.stdout.decode(errors="replace").strip()

    def _environment(self) -> Mapping[str, str]:
        pair = base64.b64encode(f"{self.user}:{self.password}".encode()).decode()
        register(pair)
        settings = {
            "http.extraHeader": f"Authorization: Basic {pair}",
            "http.followRedirects": "false",
        }
        if self.ca_file:
            settings["http.sslCAInfo"] = str(self.ca_file)
        kept = {name: text for name, text in os.environ.items() if not name.startswith("GIT_")}
        numbered = {
            f"GIT_CONFIG_{part}_{number}": text
            for number, entry in enumerate(settings.items())
            for part, text in zip(("KEY", "VALUE"), entry, strict=True)
        }
        # a credential helper or insteadOf in the configuration of the machine or the user would
        # decide where a backup comes from
        return {
            **kept,
            **numbered,
            "GIT_CONFIG_COUNT": str(len(settings)),
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_CONFIG_GLOBAL": os.devnull,
            "GIT_TERMINAL_PROMPT": "0",
            "GIT_ALLOW_PROTOCOL": "http:https",
        }
