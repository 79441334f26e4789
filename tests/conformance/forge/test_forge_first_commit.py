"""The client of a repository's first commit goes away while the forge is at it."""

from __future__ import annotations

import base64
import json
import socket
import time
from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import pytest

from ground.names import RepoId
from orderkit.ports.forge import Operation

if TYPE_CHECKING:
    from tests.conformance.forge.conftest import Workshop

FILES = {"a.txt": "hello\n", "dir/b.txt": "b\n"}
SETTLED_S = {False: 0.1, True: 1.0}
"""How long a forge (real?) may still be at a request whose client went away, at least."""
SLOWNESS = 10
"""The same by how long it takes to make a repository: it may be starved."""


@pytest.mark.parametrize("after_ms", [0, 5, 20, 80, 200, 320, 400, 440, 500])
def test_f95_a_first_write_that_was_cut_off_is_finished_by_repeating_it(
    shop: Workshop, after_ms: int
) -> None:
    """Gitea cancels the push it makes inside, and may forget that git holds the commit."""
    begun_s = time.monotonic()
    repo, operation = shop.empty_repo(), shop.op()
    took_s = time.monotonic() - begun_s
    cut_off(shop, repo, operation, after_ms)
    time.sleep(max(SETTLED_S[shop.target.real], SLOWNESS * took_s))

    shop.forge.write(repo, [shop.new(path, text) for path, text in FILES.items()], operation)

    assert _texts(shop, repo) == FILES
    history = shop.forge.commits(repo)
    assert [each.operation for each in history].count(operation.id) == 1
    others = [each.operation for each in history if each.operation != operation.id]
    assert others in ([], [f"{operation.id}-noted"])
    found = shop.forge.repo(repo)
    assert found is not None
    assert not found.empty


@pytest.mark.parametrize("after_ms", [200, 400])
def test_f96_another_write_after_one_that_was_cut_off_sees_what_is_there(
    shop: Workshop, after_ms: int
) -> None:
    begun_s = time.monotonic()
    repo = shop.empty_repo()
    took_s = time.monotonic() - begun_s
    cut_off(shop, repo, shop.op(), after_ms)
    time.sleep(max(SETTLED_S[shop.target.real], SLOWNESS * took_s))

    shop.forge.write(repo, [shop.new("other", "1")], shop.op())

    texts = _texts(shop, repo)
    assert texts in ({"other": "1"}, {**FILES, "other": "1"})


def _texts(shop: Workshop, repo: RepoId) -> Mapping[str, str]:
    head = shop.forge.head(repo)
    assert head is not None
    found = {path: shop.forge.read(repo, path, "main") for path in shop.forge.tree(repo, head)}
    return {str(path): file.text for path, file in found.items() if file}


def cut_off(shop: Workshop, repo: RepoId, operation: Operation, after_ms: int) -> None:
    """Send the first write and hang up after a while, whatever has come of it."""
    entries = [
        {
            "operation": "create",
            "path": str(PurePosixPath(path)),
            "content": base64.b64encode(text.encode()).decode(),
        }
        for path, text in FILES.items()
    ]
    body = json.dumps({"branch": "main", "message": operation.message, "files": entries})
    host = urlsplit(shop.target.url)
    head = (
        f"POST /api/v1/repos/{repo}/contents HTTP/1.1\r\nHost: {host.netloc}\r\n"
        f"Authorization: token {shop.target.token}\r\nContent-Type: application/json\r\n"
        f"Content-Length: {len(body)}\r\n\r\n"
    )
    with socket.create_connection((host.hostname or "", host.port or 80)) as sock:
        sock.sendall((head + body).encode())
        time.sleep(after_ms / 1000)
