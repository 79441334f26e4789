"""Git over HTTP with the real git."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.conformance.forge.conftest import Workshop


def commit(shop: Workshop, copy: Path, name: str, text: str) -> str:
    (copy / name).write_text(text)
    assert shop.git("add", ".", cwd=copy).returncode == 0
    assert shop.git("commit", "-qm", f"Add {name}", cwd=copy).returncode == 0
    return shop.git("rev-parse", "HEAD", cwd=copy).stdout.strip()


@pytest.mark.parametrize("protocol", ["0", "1", "2"])
def test_s01_clone_without_credentials(shop: Workshop, protocol: str) -> None:
    repo = shop.seeded_repo()
    folder = shop.scratch / f"{repo.name}-{protocol}"

    done = shop.git(
        "-c", f"protocol.version={protocol}", "clone", "-q", shop.remote(repo), str(folder)
    )

    assert done.returncode == 0, done.stderr
    assert (folder / "dir" / "a.txt").read_text() == "a\n"


def test_s02_push_arrives_and_fetch_sees_it(shop: Workshop) -> None:
    repo = shop.seeded_repo()
    copy, other = shop.clone(repo), shop.clone(repo)
    made = commit(shop, copy, "pushed.txt", "1")

    pushed = shop.git("push", "-q", "origin", "HEAD:main", cwd=copy)
    fetched = shop.git("pull", "-q", cwd=other)

    assert (pushed.returncode, fetched.returncode) == (0, 0), pushed.stderr + fetched.stderr
    assert shop.forge.head(repo) == made
    assert (other / "pushed.txt").read_text() == "1"


def test_s03_push_to_an_empty_repository_names_the_default_branch(shop: Workshop) -> None:
    repo = shop.empty_repo()
    copy = shop.clone(repo)
    made = commit(shop, copy, "a", "1")

    assert shop.git("push", "-q", "origin", "HEAD:master", cwd=copy).returncode == 0

    shop.eventually(lambda: not shop.api("GET", f"/repos/{repo}").json()["empty"])
    found = shop.forge.repo(repo)
    assert found is not None
    assert found.default_branch == "master"
    assert shop.forge.head(repo, "master") == made


def test_s04_a_push_that_is_not_fast_forward_is_rejected(shop: Workshop) -> None:
    repo = shop.seeded_repo()
    copy = shop.clone(repo)
    shop.forge.write(repo, [shop.new("meanwhile", "1")], shop.op())
    head = shop.forge.head(repo)
    commit(shop, copy, "late", "1")

    done = shop.git("push", "-q", "origin", "HEAD:main", cwd=copy)

    assert done.returncode != 0
    assert "fetch first" in done.stderr
    assert shop.forge.head(repo) == head


def test_s05_push_without_credentials_is_401(shop: Workshop) -> None:
    repo = shop.seeded_repo()

    answer = shop.call("GET", f"/{repo}.git/info/refs?service=git-receive-pack", auth=None)

    assert answer.status_code == 401
    assert answer.headers["WWW-Authenticate"].startswith("Basic")


def test_s06_a_private_repository_asks_strangers_for_credentials(shop: Workshop) -> None:
    repo = shop.seeded_repo(private=True)
    address = f"/{repo}.git/info/refs?service=git-upload-pack"

    assert shop.call("GET", address, auth=None).status_code == 401
    assert shop.call("GET", address, auth=shop.outsider).status_code in (403, 404)
    assert shop.call("GET", address, auth=shop.admin).status_code == 200


def test_s07_push_without_the_right_is_denied(shop: Workshop) -> None:
    """By 403 here, by the pre-receive hook in Gitea 1.26.0."""
    repo = shop.seeded_repo()
    head = shop.forge.head(repo)
    copy = shop.clone(repo)
    commit(shop, copy, "a", "1")

    done = shop.git("push", "-q", shop.remote(repo, auth=shop.outsider), "HEAD:main", cwd=copy)

    assert done.returncode != 0
    assert "403" in done.stderr or "permission denied" in done.stderr
    assert shop.forge.head(repo) == head


def test_s08_push_to_an_archived_repository_is_403_and_clone_works(shop: Workshop) -> None:
    repo = shop.seeded_repo()
    copy = shop.clone(repo)
    commit(shop, copy, "a", "1")
    shop.forge.archive(repo)

    done = shop.git("push", "-q", "origin", "HEAD:main", cwd=copy)

    assert done.returncode != 0
    assert "403" in done.stderr
    assert (shop.clone(repo) / "README.md").exists()


def test_s09_a_token_serves_as_password(shop: Workshop) -> None:
    repo = shop.seeded_repo()
    copy = shop.clone(repo)
    commit(shop, copy, "a", "1")
    reader, writer = (shop.token(f"{verb}:repository")[6:] for verb in ("read", "write"))

    denied = shop.git("push", "-q", shop.remote(repo, auth=("x", reader)), "HEAD:main", cwd=copy)
    pushed = shop.git("push", "-q", shop.remote(repo, auth=("x", writer)), "HEAD:main", cwd=copy)

    assert denied.returncode != 0
    assert pushed.returncode == 0, pushed.stderr


def test_s10_branches_are_made_and_removed_by_push(shop: Workshop) -> None:
    repo = shop.seeded_repo()
    copy = shop.clone(repo)

    assert shop.git("push", "-q", "origin", "HEAD:topic/x", cwd=copy).returncode == 0
    assert shop.forge.head(repo, "topic/x") == shop.forge.head(repo)
    assert shop.git("push", "-q", "origin", ":topic/x", cwd=copy).returncode == 0
    assert shop.forge.head(repo, "topic/x") is None


def test_s11_a_large_push_arrives_whole(shop: Workshop) -> None:
    repo = shop.empty_repo()
    copy = shop.clone(repo)
    text = "".join(f"{number * 7919 % 1000003}\n" for number in range(900_000))
    commit(shop, copy, "large.txt", text)

    assert shop.git("push", "-q", "origin", "HEAD:main", cwd=copy).returncode == 0

    assert (shop.clone(repo) / "large.txt").read_text() == text


def test_s12_the_name_works_without_its_suffix(shop: Workshop) -> None:
    repo = shop.seeded_repo()
    url = shop.remote(repo).removesuffix(".git")

    assert shop.git("ls-remote", url).stdout.count("refs/heads/") == 2


def test_s13_a_repository_that_does_not_exist_looks_like_a_private_one(shop: Workshop) -> None:
    address = f"/{shop.org()}/none.git/info/refs?service=git-upload-pack"
    nobody = "/no-such-owner/none.git/info/refs?service=git-upload-pack"

    assert shop.call("GET", address, auth=None).status_code == 401
    assert shop.call("GET", address, auth=shop.admin).status_code == 404
    assert shop.call("GET", nobody, auth=None).status_code == 404
