"""No message shows a value of a Secret that is hard to guess, nor the beginning of a cut one."""

from __future__ import annotations

import base64
import json
from random import Random
from string import ascii_letters, digits

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ground.errors import shorten
from ground.secrets import MASK, SHORTEST
from orderkit.core.secret_values import SecretTexts, is_searched, secrets_in, values_of

SECRETS = st.text(ascii_letters + digits, min_size=8, max_size=40).filter(is_searched)
ALPHABETS = {"letters and digits": ascii_letters + digits, "hexadecimal": "0123456789abcdef"}
KNOWN_TO_ALL = [
    "postgres", "postgresql", "administrator", "kubernetes", "production", "eu-west-1", "5432",
    "master-user", "rabbitmq", "default", "true", "require", "garage", "orders-db",
]  # fmt: skip
"""What Secrets have beside their secrets."""


@given(secret=SECRETS, before=st.integers(0, 30), shown=st.integers(SHORTEST, 40))
def test_the_beginning_of_a_cut_value_is_masked(secret: str, before: int, shown: int) -> None:
    text = "-" * before + secret
    message = shorten(text, limit=min(before + shown, len(text) - 1) + 1)
    cut = shorten(text + "!" * 99, limit=before + shown + 1)

    for each in (message, cut):
        assert secret[:SHORTEST] not in SecretTexts([secret]).redact(each)


def test_of_several_values_the_longest_beginning_is_masked() -> None:
    texts = SecretTexts(["wxyzabcdefgh", "abcdefghijklmnop"])

    assert texts.redact("wrong password wxyzabcd…") == f"wrong password {MASK}…"


def test_each_ellipsis_may_hide_the_rest_of_a_value() -> None:
    secret = "hunter2-hunter2"
    encoded = base64.b64encode(secret.encode()).decode()

    assert SecretTexts([secret]).redact(f"a hunter2…, b {encoded[:9]}… c") == (
        f"a {MASK}…, b {MASK}… c"
    )


@pytest.mark.parametrize("text", ["hunt…", "an … of others", "…", "nothing cut"])
def test_what_no_value_begins_with_stays(text: str) -> None:
    assert SecretTexts(["another-secret"]).redact(text) == text


def test_a_broken_address_is_a_value_as_it_stands() -> None:
    assert SecretTexts(["http://[broken"]).redact("at http://[broken") == f"at {MASK}"


def secret_of(**values: str) -> dict[str, object]:
    return {"apiVersion": "v1", "kind": "Secret", "metadata": {}, "stringData": values}


@pytest.mark.parametrize("alphabet", ALPHABETS.values(), ids=ALPHABETS)
@given(seed=st.integers(), length=st.integers(16, 60))
def test_a_random_value_is_masked_in_every_form(alphabet: str, seed: int, length: int) -> None:
    value = "".join(Random(seed).choices(alphabet, k=length))  # noqa: S311 - of a test
    texts = SecretTexts(values_of([secret_of(password=value)]))

    for text in (f"is {value}!", f"x{value}x", json.dumps({"a": value}), value.encode().hex()):
        assert MASK in texts.redact(text)
        assert value not in texts.redact(text)


@pytest.mark.parametrize("value", KNOWN_TO_ALL)
@pytest.mark.parametrize("key", ["username", "password", "anything"])
def test_what_everybody_knows_stays_in_texts(value: str, key: str) -> None:
    texts = SecretTexts(values_of([secret_of(**{key: value})]))

    assert texts.redact(f"image {value}:16, {value}-0 and {value}") == (
        f"image {value}:16, {value}-0 and {value}"
    )


@given(text=st.text(max_size=60), value=st.sampled_from(KNOWN_TO_ALL))
def test_no_text_changes_by_a_value_that_everybody_knows(text: str, value: str) -> None:
    assert SecretTexts(values_of([secret_of(username=value)])).redact(text) == text


@pytest.mark.parametrize(
    ("key", "value", "is_found", "reason"),
    [
        ("password", "correct-horse-battery", True, "a sentence of words is long enough"),
        ("database", "garage_production_eu", False, "words, and the key names something public"),
        ("DB_HOST", "garage.c9akciq32xyz.eu-west-1.rds.amazonaws.com", False, "a host name"),
        ("endpoint", "https://garage.example.org/orders", False, "an address"),
        ("endpoint", "https://u:pw12x9Qz7@garage.example.org", True, "an address with a password"),
        ("endpoint", "https://example.org/hooks/T0x9Qz7LmP", True, "an address with a random path"),
        ("userName", "v-token-x7Kq2Lm9Zt", True, "a random user name"),
        ("token", "abcdef.0123456789abcdef.eu", True, "no host name under such a key"),
        ("hostPassword", "garage.example.org.of.eve", True, "the key says that it is a secret"),
        ("pgpass", "db:5432:app:app:x7Kq2Lm9Zt", True, "structured"),
        ("config", json.dumps({"host": "db.example.org", "pass": "x7Kq2Lm9Zt"}), True, "a part"),
    ],
)
def test_the_key_of_a_value_says_what_is_public(
    key: str, value: str, *, is_found: bool, reason: str
) -> None:
    texts = SecretTexts(values_of([secret_of(**{key: value})]))

    assert texts.in_text(f"the value {value} of it") is is_found, reason


def test_a_declared_public_key_is_not_searched_for() -> None:
    secret = secret_of(motto="x7Kq2Lm9Zt", password="Zt9mL2qK7x")

    texts = SecretTexts(values_of([secret], public={"motto"}))

    assert texts.redact("x7Kq2Lm9Zt Zt9mL2qK7x") == f"x7Kq2Lm9Zt {MASK}"


def test_the_host_in_a_structured_value_is_public() -> None:
    value = json.dumps({"host": "garage.example.org", "password": "x7Kq2Lm9Zt"})
    texts = SecretTexts(values_of([secret_of(config=value)]))

    assert texts.redact("x7Kq2Lm9Zt at garage.example.org") == f"{MASK} at garage.example.org"


@pytest.mark.parametrize("beside", ["Secret", "ExternalSecret", {1, 2}, 3.0, None])
def test_a_secret_is_found_beside_anything(beside: object) -> None:
    """Also beside what no wire carries."""
    secret = {"apiVersion": "v1", "kind": "Secret", "data": {}}

    assert list(secrets_in({"beside": beside, "list": [{"in": secret}]})) == [secret]
    assert not list(secrets_in({"kind": beside, "list": [{"apiVersion": "v1"}]}))
