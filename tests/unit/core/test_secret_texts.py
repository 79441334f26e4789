"""No message shows a value of a Secret, nor the beginning of one that a limit cut."""

from __future__ import annotations

import base64
from string import ascii_letters, digits

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ground.errors import shorten
from ground.secrets import MASK, SHORTEST
from orderkit.core.secret_values import SecretTexts

SECRETS = st.text(ascii_letters + digits, min_size=8, max_size=40)


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
