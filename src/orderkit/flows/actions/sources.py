"""
Where files come from: a path beside template.yaml, or a URL on the platform's forge.

``../`` is refused, as Backstage does. A URL has the form of Gitea's pages,
``<base>/<owner>/<repo>/src/branch/<branch>/<path>``. Called by the ``fetch:*`` actions.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import PurePosixPath

from orderkit.core.errors import InvalidInputError
from orderkit.core.names import CommitSha, RepoId
from orderkit.core.render import SkeletonFile
from orderkit.flows.actions.context import ActionContext

_SOURCE_URL = re.compile(
    r"(?P<base>https?://.+)/(?P<owner>[^/]+)/(?P<repo>[^/]+)/src/(branch|commit|tag)/"
    r"(?P<ref>[^/]+)(?:/(?P<path>.*?))?/?\Z"
)


def source_tree(context: ActionContext, url: str) -> dict[PurePosixPath, SkeletonFile]:
    """
    Return the files of a folder by paths relative to it, with their modes.

    Raises:
        InvalidInputError: There is no such folder, or it is not on the platform's forge.
    """
    if "://" in url:
        repo, commit, folder = _on_forge(context, url)
        paths = context.services.forge.tree(repo, commit)
        inside = [path for path in paths if path.is_relative_to(folder)]
        read = _read(context, repo, commit, inside)
        found = {path.relative_to(folder): file for path, file in read.items()}
    else:
        found = dict(context.template.tree(_beside(url)))
    if not found:
        raise InvalidInputError("url", url, "holds no file", hint="check the folder's name")
    return found


def source_file(context: ActionContext, url: str) -> SkeletonFile:
    """
    Return one file with its mode.

    Raises:
        InvalidInputError: There is no such file, or it is not on the platform's forge.
    """
    if "://" in url:
        repo, commit, path = _on_forge(context, url)
        found = _read(context, repo, commit, [path]).get(path)
    else:
        found = context.template.read(_beside(url))
    if found is None:
        raise InvalidInputError("url", url, "is no file", hint="check its name")
    return found


def _beside(url: str) -> PurePosixPath:
    path = PurePosixPath(url)
    if ".." in path.parts or path.is_absolute():
        raise InvalidInputError(
            "url",
            url,
            "leaves the folder of template.yaml",
            hint="Backstage refuses it too: keep the skeleton beside template.yaml",
        )
    return path


def _on_forge(context: ActionContext, url: str) -> tuple[RepoId, CommitSha, PurePosixPath]:
    forge = context.services.forge
    found = _SOURCE_URL.match(url)
    if found is None or found["base"] != forge.base_url:
        raise InvalidInputError(
            "url",
            url,
            "is nothing on this platform's forge",
            hint=f"the form is {forge.base_url}/<owner>/<repo>/src/branch/<branch>/<path>",
        )
    repo = RepoId(found["owner"], found["repo"])
    commit = forge.head(repo, found["ref"])
    if commit is None:
        raise InvalidInputError("url", url, "names a repository or branch that does not exist")
    return repo, commit, PurePosixPath(found["path"] or ".")


def _read(
    context: ActionContext, repo: RepoId, commit: CommitSha, paths: Iterable[PurePosixPath]
) -> dict[PurePosixPath, SkeletonFile]:
    forge = context.services.forge
    revisions = {path: forge.read(repo, path, commit) for path in paths}
    return {path: SkeletonFile(found.data) for path, found in revisions.items() if found}
