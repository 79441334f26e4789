"""Renamed repositories, users and organisations, as Gitea 1.26.0 answers (observed)."""

from __future__ import annotations

import secrets
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from tests.conformance.forge.conftest import Workshop

    from ground.names import RepoId

PASSWORD = "Pw-12345678"


def new_name() -> str:
    return f"n-{secrets.token_hex(3)}"


def new_user(shop: Workshop) -> str:
    name = new_name()
    body = {
        "username": name,
        "password": PASSWORD,
        "email": f"{name}@example.org",
        "must_change_password": False,
    }
    assert shop.api("POST", "/admin/users", body).status_code == 201
    return name


def renamed(shop: Workshop, repo: RepoId) -> str:
    """Rename a repository and return its new full name."""
    name = new_name()
    answer = shop.api("PATCH", f"/repos/{repo}", {"name": name})
    assert (answer.status_code, answer.json()["full_name"]) == (200, f"{repo.owner}/{name}")
    return f"{repo.owner}/{name}"


def test_n01_a_renamed_repository_keeps_what_it_has(shop: Workshop) -> None:
    repo = shop.seeded_repo()
    head = shop.forge.head(repo)

    now = renamed(shop, repo)

    assert shop.api("GET", f"/repos/{now}/branches/main").json()["commit"]["id"] == head
    assert shop.api("GET", f"/repos/{now}").json()["clone_url"].endswith(f"/{now}.git")
    written = shop.api("POST", f"/repos/{now}/contents/n", {"content": ""})
    assert written.status_code == 201


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("GET", "", None),
        ("GET", "/contents/README.md?ref=main", None),
        ("POST", "/contents/n", {"content": ""}),
        ("PATCH", "", {"description": "x"}),
        ("DELETE", "", None),
    ],
)
def test_n02_its_old_address_answers_301(shop: Workshop, method: str, path: str, body: Any) -> None:
    repo = shop.seeded_repo()
    now = renamed(shop, repo)

    answer = shop.api(method, f"/repos/{repo}{path}", body)

    assert answer.status_code == 301
    assert answer.headers["Location"] == f"/api/v1/repos/{now}{path}"
    assert shop.api("GET", f"/repos/{now}").status_code == 200


def test_n03_git_and_pages_are_led_on(shop: Workshop, tmp_path: Path) -> None:
    repo = shop.seeded_repo()
    copy = shop.clone(repo)
    now = renamed(shop, repo)

    info = shop.call("GET", f"/{repo}.git/info/refs?service=git-upload-pack", auth=None)
    page = shop.call("GET", f"/{repo}", auth=None)
    cloned = shop.git("clone", "-q", shop.remote(repo), str(tmp_path / "copy"))
    (copy / "n").write_text("1")
    shop.git("add", ".", cwd=copy)
    shop.git("commit", "-qm", "n", cwd=copy)
    pushed = shop.git("push", "-q", "origin", "HEAD:main", cwd=copy)

    assert info.status_code == 301
    assert info.headers["Location"].startswith(f"/{now}")
    assert info.headers["Location"].endswith("/info/refs?service=git-upload-pack")
    assert (page.status_code, page.headers["Location"]) == (301, f"/{now}")
    assert cloned.returncode == 0, cloned.stderr
    assert pushed.returncode == 0, pushed.stderr
    assert shop.api("GET", f"/repos/{now}/contents/n").status_code == 200


def test_n04_an_old_name_is_free_again(shop: Workshop) -> None:
    repo = shop.seeded_repo()
    now = renamed(shop, repo)

    made = shop.api("POST", f"/orgs/{repo.owner}/repos", {"name": repo.name})

    assert made.status_code == 201
    assert shop.api("GET", f"/repos/{repo}").json()["id"] == made.json()["id"]
    assert shop.api("GET", f"/repos/{now}/contents/README.md").status_code == 200


def test_n05_a_repository_may_have_its_old_name_back(shop: Workshop) -> None:
    repo = shop.seeded_repo()
    now = renamed(shop, repo)

    back = shop.api("PATCH", f"/repos/{now}", {"name": repo.name})

    assert back.status_code == 200
    assert shop.api("GET", f"/repos/{repo}").status_code == 200
    assert shop.api("GET", f"/repos/{now}").status_code == 301


def test_n06_the_case_of_a_name_is_changed_without_a_trace(shop: Workshop) -> None:
    repo = shop.seeded_repo()

    changed = shop.api("PATCH", f"/repos/{repo}", {"name": repo.name.upper()})

    assert changed.json()["name"] == repo.name.upper()
    assert shop.api("GET", f"/repos/{repo}/contents/README.md").status_code == 200


@pytest.mark.parametrize("name", ["a b", "x.git", "..", "-", "taken"])
def test_n07_what_is_no_name_for_a_repository_is_422(shop: Workshop, name: str) -> None:
    repo = shop.seeded_repo()
    shop.api("POST", f"/orgs/{repo.owner}/repos", {"name": "Taken"})

    assert shop.api("PATCH", f"/repos/{repo}", {"name": name}).status_code in (422, 500)
    assert shop.api("GET", f"/repos/{repo}/contents/README.md").status_code == 200


def test_n08_repositories_are_renamed_by_their_admins(shop: Workshop) -> None:
    repo = shop.seeded_repo()

    refused = shop.api("PATCH", f"/repos/{repo}", {"name": "other"}, auth=shop.outsider)

    assert refused.status_code == 403
    assert shop.api("GET", f"/repos/{repo}").status_code == 200
