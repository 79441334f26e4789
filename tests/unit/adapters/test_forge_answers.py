"""What the answers of a forge become: fields, texts, errors and their hints."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from ground.errors import (
    AccessError,
    NotFoundError,
    RefusedError,
    RemoteError,
)
from orderkit.adapters.forges.answers import (
    ForgeResponse,
    GarbledError,
    ServerError,
    missing_scope,
    moved,
    refusal,
    untrusted,
)
from orderkit.adapters.forges.calls import (
    bytes_in,
    checked,
    is_commit_id,
    list_in,
    number_in,
    object_in,
    text_in,
    user_in,
)
from orderkit.adapters.forges.reading import misleading
from orderkit.ports.forge import ForgeUser


def answer(status: int, body: object = b"", **headers: str) -> ForgeResponse:
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    return ForgeResponse(status, headers, data)


SCOPES = "token does not have at least one of required scope(s), required=[write:repository]"
REFUSALS: list[tuple[str, int, object, type[Exception], str, str]] = [
    ("no credentials", 401, {"message": "who?"}, AccessError, "bad credentials: do: 401 who?", "t"),
    ("a right", 403, {"message": "no"}, AccessError, "no right: do: 403 no", "write access"),
    ("a scope", 403, {"message": SCOPES}, AccessError, "missing scope: do: 403", "write:repo"),
    ("GitLab's scope", 403, {"error": "insufficient_scope", "scope": "api"}, AccessError,
     "missing scope: do: 403", "with scope api"),
    ("nothing there", 404, {}, NotFoundError, "do: 404", "hidden from these credentials"),
    ("an archive", 423, {"message": "x"}, RefusedError, "archived, hence read-only: do: 423 x",
     "unarchive"),
    ("a failure", 500, b"oops", ServerError, "do: 500 oops", "forge's log"),
    ("a gateway", 502, b"", ServerError, "do: 502", "forge's log"),
    ("a success that is none", 200, b"hello", GarbledError, "do: 200 hello", "forge.url"),
    ("another refusal", 400, {"error": "e"}, RemoteError, "do: 400 e", ""),
]  # fmt: skip


@pytest.mark.parametrize(
    ("status", "body", "error", "text", "hint"),
    [pytest.param(*case[1:], id=case[0]) for case in REFUSALS],
)
def test_a_refusal_is_told_by_its_status(
    status: int, body: object, error: type[Exception], text: str, hint: str
) -> None:
    found = refusal(answer(status, body), "do")

    assert type(found) is error
    assert str(found).startswith(text)
    assert hint in getattr(found, "hint", "")


def test_a_scope_is_missing_only_where_the_forge_forbids() -> None:
    said = {"message": SCOPES}

    assert missing_scope(answer(403, said)) == "write:repository"
    assert missing_scope(answer(403, {"message": "required scope"})).startswith("the one named")
    assert missing_scope(answer(403, {"error": "insufficient_scope"})) == "api"
    assert missing_scope(answer(403, {"error": "insufficient_scope", "scope": "x y"})) == "x y"
    assert missing_scope(answer(403, {"error": "other", "scope": "x"})) == ""
    assert missing_scope(answer(403, b"<html>")) == ""
    assert missing_scope(answer(403, ["insufficient_scope"])) == ""
    assert missing_scope(answer(422, said)) == ""


def test_only_statuses_of_the_two_hundreds_are_a_success() -> None:
    assert [status for status in range(100, 600) if answer(status).ok] == list(range(200, 300))


TEXTS = [
    ({"message": "a", "error": "b"}, "a"),
    ({"error": "b"}, "b"),
    ({"message": "a", "errors": ["c", "d"]}, "a: c: d"),
    ({"errors": ["c"]}, "c"),
    ({"errors": "none"}, ""),
    (["a"], '["a"]'),
    (b"no JSON\nat all", "no JSON at all"),
]


@pytest.mark.parametrize(("body", "text"), TEXTS)
def test_the_words_of_an_answer_are_its_message_and_its_errors(body: object, text: str) -> None:
    assert answer(400, body).text == text


def test_an_answer_without_a_body_may_be_a_commit_that_is_no_utf8() -> None:
    with pytest.raises(GarbledError) as empty:
        answer(200).json()
    with pytest.raises(GarbledError) as page:
        answer(200, b"<html>").json()

    assert "UTF-8" in empty.value.hint
    assert "forge.url" in page.value.hint


def test_a_page_is_no_success_even_if_it_says_so() -> None:
    page = answer(200, b"{}", **{"content-type": "text/html; charset=utf-8"})

    with pytest.raises(GarbledError, match="a page came back"):
        checked(page, "do")
    assert checked(answer(200, b"{}", **{"content-type": "application/json"}), "do").ok
    assert checked(answer(204), "do").ok


def test_a_redirect_names_the_new_repository_if_it_says_so() -> None:
    new = moved("/repos/a/b", answer(301, location="http://forge/api/v1/repos/c/d/branches"))
    other = moved("/repos/a/b", answer(302, location="/login"))

    assert (new.place, other.place) == ("c/d", "")
    assert "it is c/d now" in new.hint
    assert "/login (302)" in str(other)


TLS = [
    ("expired", "certificate verify failed: certificate has expired (_ssl.c:1)", "renew"),
    ("another name", "certificate verify failed: Hostname mismatch, x (_ssl.c:1)", "the name that"),
    ("another address", "certificate verify failed: not valid for 'x' (_ssl.c:1)", "the name that"),
    ("unknown", "certificate verify failed: unable to get issuer (_ssl.c:1)", "forge.caFile"),
    ("no TLS", "[SSL: WRONG_VERSION_NUMBER] wrong version", "http://"),
    ("no TLS, in newer words", "[SSL: RECORD_LAYER_FAILURE] failure", "http://"),
    ("something else", "[SSL: NO_CIPHERS] none", "TLS settings"),
]


@pytest.mark.parametrize(("text", "hint"), [pytest.param(t, h, id=r) for r, t, h in TLS])
def test_a_connection_that_is_not_trusted_says_what_to_do(text: str, hint: str) -> None:
    found = untrusted("https://forge", Exception(text))

    assert "https://forge" in str(found)
    assert hint in found.hint
    assert "_ssl" not in str(found)


WITHOUT: list[tuple[str, Callable[[Any], object], Any]] = [
    ("no text", lambda x: text_in(x, "a"), {"b": "c"}),
    ("an empty text", lambda x: text_in(x, "a"), {"a": ""}),
    ("a number for a text", lambda x: text_in(x, "a"), {"a": 1}),
    ("a text of no object", lambda x: text_in(x, "a"), ["a"]),
    ("no number", lambda x: number_in(x, "a"), {"b": 1}),
    ("a truth for a number", lambda x: number_in(x, "a"), {"a": True}),
    ("a number of no object", lambda x: number_in(x, "a"), "a"),
    ("no list", list_in, {"a": 1}),
    ("no object", lambda x: object_in(x, "do"), answer(200, ["a"])),
    ("no user", user_in, {"id": 1, "login": "eve"}),
    ("a user without a name", user_in, {"user": {"id": 1}}),
    ("no base64", bytes_in, {"content": "abc"}),
]


@pytest.mark.parametrize(("read", "given"), [pytest.param(r, g, id=i) for i, r, g in WITHOUT])
def test_a_field_that_is_not_there_is_told(read: Callable[[Any], object], given: Any) -> None:
    with pytest.raises(GarbledError, match="the forge"):
        read(given)


def test_fields_are_read_as_they_are() -> None:
    assert text_in({"a": "b"}, "a") == "b"
    assert number_in({"a": 0}, "a") == 0
    assert list_in([{"a": 1}, "b", None]) == [{"a": 1}]
    assert object_in(answer(200, {"a": 1}), "do") == {"a": 1}
    assert bytes_in({"content": "aGk="}) == b"hi"
    assert bytes_in({"content": None}) == b""


@pytest.mark.parametrize(
    ("given", "is_machine"),
    [
        ({"id": 7, "login": "eve"}, False),
        ({"id": 7, "login": "eve", "type": "User"}, False),
        ({"id": 7, "login": "app[bot]", "type": "Bot"}, True),
        ({"id": -2, "login": "actions"}, True),
        ({"id": 0, "login": "ghost"}, False),
    ],
)
def test_an_account_of_a_machine_is_known_by_its_type_or_number(
    given: dict[str, Any], *, is_machine: bool
) -> None:
    assert user_in({"user": given}) == ForgeUser(given["id"], given["login"], is_machine=is_machine)


@pytest.mark.parametrize(
    ("text", "is_one"),
    [
        ("a" * 40, True),
        ("0" * 64, True),
        ("a" * 39, False),
        ("a" * 41, False),
        ("A" * 40, False),
        ("main", False),
    ],
)
def test_only_a_full_id_is_a_commit(text: str, *, is_one: bool) -> None:
    assert is_commit_id(text) is is_one


def test_refs_that_may_be_taken_for_a_branch_are_told_from_others() -> None:
    taken = {
        *("refs/tags/main", "refs/tags/heads/main", "refs/tags/refs/heads/main"),
        *("refs/heads/heads/main", "refs/heads/refs/heads/main", "refs/heads/main\u3000x"),
        "refs/tags/main\u00a0x",
    }
    others = {"refs/heads/main", "refs/heads/mainly", "refs/tags/v1", "refs/heads/x/main"}

    assert misleading("main", taken | others) == tuple(sorted(taken))
    assert misleading("release", taken | others) == ()
