"""
Repositories of any forge as the embedded Argo CD wants them: fetched over HTTP by the real git.

A mirror per repository, brought up to date whenever a branch is asked for, as Argo CD's
repo-server does; the rest is `BareRepositories`. Slower than reading the forge's own folder, so
the embedded platform does not use it. For tests whose forge is a real one.
"""

from __future__ import annotations

import base64
import os
import re
import shutil
import subprocess
import threading
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import urlsplit

from ground.names import CommitSha
from orderkit_standins.argocd import BareRepositories, SourceError

_FULL_SHA = re.compile(r"[0-9a-f]{40}")
_EVERYTHING = ("+refs/heads/*:refs/heads/*", "+refs/tags/*:refs/tags/*")
_FETCH_S = 120


class FetchedRepositories:
    """`Sources` of one forge, by mirrors in a folder. Safe to use from several threads."""

    def __init__(self, base_url: str, folder: Path, *, user: str, token: str) -> None:
        self._base_url, self._folder = base_url, folder
        self._mirrors = BareRepositories(base_url, folder)
        self._locks: defaultdict[Path, threading.Lock] = defaultdict(threading.Lock)
        self._environment = _environment(base_url, f"{user}:{token}", home=folder)
        folder.mkdir(parents=True)

    def resolve(self, repo_url: str, revision: str) -> CommitSha:
        """See `Sources.resolve`; asks the forge unless `revision` is a commit id."""
        if not _FULL_SHA.fullmatch(revision):
            self._fetch(repo_url)
        return self._mirrors.resolve(repo_url, revision)

    def read(
        self, repo_url: str, commit: CommitSha, path: str, *, recurse: bool
    ) -> Mapping[str, bytes]:
        """See `Sources.read`; a commit that no branch led to is fetched here."""
        mirror = self._mirror(repo_url)
        if self._git("-C", str(mirror), "cat-file", "-e", commit).returncode:
            self._fetch(repo_url)
        return self._mirrors.read(repo_url, commit, path, recurse=recurse)

    def changed(self, repo_url: str, old: str, new: CommitSha) -> frozenset[str] | None:
        """See `Sources.changed`."""
        return self._mirrors.changed(repo_url, old, new)

    def _fetch(self, repo_url: str) -> None:
        mirror = self._mirror(repo_url)
        with self._locks[mirror]:
            if not mirror.exists():
                self._git("init", "--quiet", "--bare", "--initial-branch=main", str(mirror))
            done = self._git(
                "-C", str(mirror), "fetch", "--quiet", "--prune", repo_url, *_EVERYTHING
            )
            if done.returncode and "not found" in done.stderr:
                shutil.rmtree(mirror)
                raise SourceError("failed to list refs: repository not found")
            if done.returncode:
                raise SourceError(f"failed to list refs: {done.stderr.strip()}")

    def _mirror(self, repo_url: str) -> Path:
        path = urlsplit(repo_url).path.strip("/").removesuffix(".git")
        if not repo_url.startswith(f"{self._base_url}/") or ".." in path or path.count("/") != 1:
            raise SourceError("failed to list refs: repository not found")
        return self._folder / f"{path}.git"

    def _git(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["git", *arguments],
            env=self._environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=_FETCH_S,
        )


def _environment(base_url: str, pair: str, *, home: Path) -> dict[str, str]:
    """Let git show the credential to this forge only, and see no settings of the machine."""
    return {
        "PATH": os.environ["PATH"],
        "HOME": str(home),
        "LC_ALL": "C",
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_CONFIG_COUNT": "1",
        "GIT_CONFIG_KEY_0": f"http.{base_url}/.extraHeader",
        "GIT_CONFIG_VALUE_0": f"Authorization: Basic {base64.b64encode(pair.encode()).decode()}",
    }
