"""Topics, and the search for repositories, as Gitea 1.26.0 answers (observed)."""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

from orderkit.core.names import RepoId

if TYPE_CHECKING:
    from tests.conformance.forge.conftest import Workshop


@pytest.fixture(scope="module")
def repo(shop: Workshop) -> RepoId:
    return shop.empty_repo()


def topics(shop: Workshop, repo: RepoId) -> list[str]:
    found: list[str] = shop.api("GET", f"/repos/{repo}/topics").json()["topics"]
    return found


# Topics


def test_t01_topics_are_cleaned_sorted_and_counted(shop: Workshop, repo: RepoId) -> None:
    body = {"topics": ["Zeta", " alpha ", "alpha", "a.b-c", ""]}

    answer = shop.api("PUT", f"/repos/{repo}/topics", body)
    listed = shop.api("GET", f"/repos/{repo}/topics?limit=2")

    assert answer.status_code == 204
    assert topics(shop, repo) == ["a.b-c", "alpha", "zeta"]
    assert listed.json()["topics"] == ["a.b-c", "alpha"]
    assert listed.headers["X-Total-Count"] == "3"


def test_t02_no_topics_are_none(shop: Workshop, repo: RepoId) -> None:
    shop.api("PUT", f"/repos/{repo}/topics", {"topics": ["x"]})

    assert shop.api("PUT", f"/repos/{repo}/topics", {}).status_code == 204
    assert topics(shop, repo) == []


@pytest.mark.parametrize("bad", ["a b", "-a", "a_b", "ä", "x" * 36])
def test_t03_what_is_no_topic_changes_nothing(shop: Workshop, repo: RepoId, bad: str) -> None:
    shop.api("PUT", f"/repos/{repo}/topics", {"topics": ["kept"]})

    refused = shop.api("PUT", f"/repos/{repo}/topics", {"topics": ["fine", bad]})

    assert refused.status_code == 422
    assert refused.json()["invalidTopics"] == [bad]
    assert topics(shop, repo) == ["kept"]


def test_t04_one_topic_is_added_and_removed(shop: Workshop, repo: RepoId) -> None:
    shop.api("PUT", f"/repos/{repo}/topics", {"topics": []})
    one = f"/repos/{repo}/topics"

    assert [shop.api("PUT", f"{one}/New").status_code for _ in range(2)] == [204, 204]
    assert topics(shop, repo) == ["new"]
    assert shop.api("PUT", f"{one}/a%20b").json()["invalidTopics"] == "a b"
    assert shop.api("DELETE", f"{one}/NEW").status_code == 204
    assert shop.api("DELETE", f"{one}/new").status_code == 404
    assert shop.api("DELETE", f"{one}/a%20b").status_code == 422


def test_t05_more_than_25_are_refused_even_one_that_is_there(shop: Workshop, repo: RepoId) -> None:
    full = [f"t{number}" for number in range(25)]
    assert shop.api("PUT", f"/repos/{repo}/topics", {"topics": full}).status_code == 204

    assert shop.api("PUT", f"/repos/{repo}/topics/more").status_code == 422
    assert shop.api("PUT", f"/repos/{repo}/topics/t1").status_code == 422
    over = shop.api("PUT", f"/repos/{repo}/topics", {"topics": [*full, "more"]})
    assert over.status_code == 422
    assert len(topics(shop, repo)) == 25


def test_t06_topics_are_for_admins_also_in_an_archive(shop: Workshop) -> None:
    repo = shop.empty_repo()
    path, body = f"/repos/{repo}/topics", {"topics": ["x"]}
    shop.api("PATCH", f"/repos/{repo}", {"archived": True})

    assert shop.api("PUT", path, body, auth=shop.outsider).status_code == 403
    assert shop.api("PUT", path, body, auth=None).status_code == 401
    assert shop.api("PUT", path, body).status_code == 204
    assert shop.api("PUT", f"{path}/y").status_code == 204


# Search


@dataclass(frozen=True)
class Field:
    """
    An organisation with four repositories whose descriptions hold a word.

    `a` and `c` (private) have the topic `first`, `b` (archived) and `c` have `second`.
    """

    uid: int
    first: str
    second: str
    word: str


@pytest.fixture(scope="module")
def field(shop: Workshop) -> Field:
    org = shop.org()
    found = Field(
        shop.api("GET", f"/orgs/{org}").json()["id"],
        *(f"{prefix}{secrets.token_hex(4)}" for prefix in "xyz"),
    )
    wanted: dict[str, list[str]] = {
        "d-1": [],
        "a-1": [found.first, "other"],
        "c-1": [found.first, found.second],
        "b-1": [found.second],
    }
    for name, its in wanted.items():
        body = {"name": name, "description": f"has {found.word.upper()}", "private": name == "c-1"}
        assert shop.api("POST", f"/orgs/{org}/repos", body).status_code == 201
        shop.api("PUT", f"/repos/{org}/{name}/topics", {"topics": its})
    shop.api("PATCH", f"/repos/{org}/b-1", {"archived": True})
    return found


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("q={first}&topic=true", "a-1 c-1"),
        ("q={first},{second}&topic=true", "a-1 b-1 c-1"),
        ("q=+{second}+&topic=true", "b-1 c-1"),
        ("q={second},&topic=true", "b-1 c-1"),
        ("q={second}+,{second}+&topic=true", "b-1 c-1"),
        ("q={second}+,&topic=true", ""),
        ("q={part}&topic=true", ""),
        ("q={upper}&topic=true", "a-1 c-1"),
        ("q={word}&topic=true&includeDesc=true", ""),
        ("q={first}", "a-1 c-1"),
        ("q={part}", "a-1 c-1"),
        ("q={word}", ""),
        ("q={word}&includeDesc=true", "a-1 b-1 c-1 d-1"),
        ("uid={uid}", "a-1 b-1 c-1 d-1"),
        ("uid={uid}&topic=true", "a-1 b-1 c-1 d-1"),
        ("uid={uid}&q=A-", "a-1"),
        ("uid={uid}&q=a-1,d-1", "a-1 d-1"),
        ("uid={uid}&exclusive=true", "a-1 b-1 c-1 d-1"),
        ("uid={uid}&private=false", "a-1 b-1 d-1"),
        ("uid={uid}&is_private=true", "c-1"),
        ("uid={uid}&archived=true", "b-1"),
        ("uid={uid}&archived=false", "a-1 c-1 d-1"),
        ("uid={uid}&sort=id", "d-1 a-1 c-1 b-1"),
        ("uid={uid}&sort=id&order=desc", "b-1 c-1 a-1 d-1"),
        ("uid={uid}&sort=alpha&order=desc", "d-1 c-1 b-1 a-1"),
        ("uid={uid}&order=desc", "a-1 b-1 c-1 d-1"),
        ("uid={uid}&order=nope", "a-1 b-1 c-1 d-1"),
        ("uid={uid}&mode=source", "a-1 b-1 c-1 d-1"),
        ("uid={uid}&mode=fork", ""),
        ("uid=99999999", ""),
    ],
)
def test_t10_search(shop: Workshop, field: Field, query: str, found: str) -> None:
    asked = query.format(
        uid=field.uid,
        first=field.first,
        second=field.second,
        word=field.word,
        part=field.first[:-1],
        upper=field.first.upper(),
    )

    answer = shop.api("GET", f"/repos/search?{asked}")

    assert answer.json()["ok"] is True
    assert [each["name"] for each in answer.json()["data"]] == found.split()
    assert answer.headers["X-Total-Count"] == str(len(found.split()))


@pytest.mark.parametrize("query", ["sort=nope", "sort=id&order=nope", "mode=nope"])
def test_t11_an_unknown_order_is_422(shop: Workshop, query: str) -> None:
    assert shop.api("GET", f"/repos/search?{query}").status_code == 422


def test_t12_search_is_paged_and_its_links_keep_the_question(shop: Workshop, field: Field) -> None:
    base = f"/repos/search?limit=3&sort=id&uid={field.uid}"

    first, second, third = (shop.api("GET", f"{base}&page={number}") for number in (1, 2, 9))

    names = [[each["name"] for each in page.json()["data"]] for page in (first, second, third)]
    assert names == [["d-1", "a-1", "c-1"], ["b-1"], []]
    assert first.headers["X-Total-Count"] == third.headers["X-Total-Count"] == "4"
    link = f'/api/v1/repos/search?limit=3&page=2&sort=id&uid={field.uid}>; rel="next"'
    assert link in first.headers["Link"]


def test_t13_strangers_do_not_find_what_is_hidden(shop: Workshop, field: Field) -> None:
    query = f"/repos/search?uid={field.uid}"

    for auth in (shop.outsider, None):
        found: Any = shop.api("GET", query, auth=auth).json()
        assert [each["name"] for each in found["data"]] == ["a-1", "b-1", "d-1"]
