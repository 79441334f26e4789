"""No registered secret survives `redact`, in whatever form it appears."""

from __future__ import annotations

import base64
import html
import json
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ground import secrets as registry
from ground.secrets import MASK, SHORTEST, redact, register

SECRET = "p@ss/word +1?"


@contextmanager
def forgetting() -> Iterator[None]:
    """Leave no secret behind: other tests of this process read messages."""
    before = registry._forms  # noqa: SLF001  the registry has no way to forget, on purpose
    try:
        yield
    finally:
        registry._forms = before  # noqa: SLF001


@pytest.fixture(autouse=True)
def _forget() -> Iterator[None]:
    with forgetting():
        yield


@pytest.mark.parametrize(
    ("form", "reason"),
    [
        (SECRET, "plain"),
        (quote(SECRET, safe=""), "in a path"),
        (quote_plus(SECRET), "in a query"),
        (base64.b64encode(SECRET.encode()).decode(), "in a Secret of Kubernetes"),
        (base64.urlsafe_b64encode(SECRET.encode()).decode().rstrip("="), "in a JWT-like text"),
        ("p%40ss%2fword%20%2b1%3f", "in a path of other programs"),
        (SECRET.encode().hex().upper(), "in hexadecimal"),
        (SECRET.replace("/", "\\/"), "in JSON of PHP"),
    ],
)
def test_every_form_is_masked(form: str, reason: str) -> None:
    register(SECRET)

    assert redact(f"before {form} after") == f"before {MASK} after", reason


@pytest.mark.parametrize(
    "form",
    [
        'pa\\"ss\\u003cw\\u003e\\u00261',
        json.dumps(json.dumps('pa"ss<w>&1'))[3:-3],
        html.escape('pa"ss<w>&1'),
    ],
    ids=["JSON of Go", "JSON in JSON", "HTML"],
)
def test_what_formats_escape_is_masked(form: str) -> None:
    register('pa"ss<w>&1')

    assert redact(f"before {form} after") == f"before {MASK} after"


def test_base64_of_base64_is_masked() -> None:
    register("Kan4rie-vogel/7")
    encoded = base64.b64encode(base64.b64encode(b"Kan4rie-vogel/7"))

    assert encoded.decode() not in redact(encoded.decode())


def test_a_secret_inside_another_is_masked_with_it() -> None:
    register("hunter22")
    register("user:hunter22")

    assert redact("user:hunter22 hunter22") == f"{MASK} {MASK}"


def test_registering_nothing_masks_nothing() -> None:
    register("")
    register("abc")

    assert redact("abc and the rest") == "abc and the rest"


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.text(min_size=SHORTEST), st.text(), st.text())
def test_no_registered_secret_is_left(secret: str, before: str, after: str) -> None:
    with forgetting():
        register(secret)

        assert secret not in redact(before + secret + after) or secret in MASK
