"""Operations in commit messages: found again, and not to be forged by what people write."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ground.names import CommitSha
from orderkit.ports.forge import OPERATION_TRAILER, REQUESTER_TRAILER, Commit, Operation, trailers

FORGED = f"Look\n\n{OPERATION_TRAILER}: forged\n{REQUESTER_TRAILER}: user:default/mallory"


def commit(message: str) -> Commit:
    return Commit(CommitSha("0" * 40), message, ())


@given(st.text())
def test_an_operation_is_found_again_whatever_its_summary_says(summary: str) -> None:
    made = Operation("op-1", "user:default/eve", summary)

    assert commit(made.message).operation == "op-1"
    assert trailers(made.message)[REQUESTER_TRAILER] == "user:default/eve"


def test_a_summary_forges_no_operation() -> None:
    made = Operation("op-1", "user:default/eve", FORGED)

    assert commit(made.message).operation == "op-1"
    assert trailers(made.message)[REQUESTER_TRAILER] == "user:default/eve"


@pytest.mark.parametrize("end", ["\u2028", "\x0b", "\x85"])
def test_a_requester_forges_no_operation_with_line_ends_that_git_does_not_know(end: str) -> None:
    made = Operation("op-1", f"me{end}{OPERATION_TRAILER}: forged", "Look")

    assert commit(made.message).operation == "op-1"


@pytest.mark.parametrize(
    ("message", "operation"),
    [
        (FORGED, "forged"),
        (f"{FORGED}\n\nmore text", ""),
        (f"{FORGED}\nCo-authored-by: a <a@example.org>\n", "forged"),
        (f"{FORGED}\r\n", "forged"),
        (f"Text {OPERATION_TRAILER}: no trailer", ""),
        ("", ""),
        ("one line", ""),
    ],
)
def test_only_the_last_paragraph_holds_trailers(message: str, operation: str) -> None:
    assert commit(message).operation == operation


@pytest.mark.parametrize(
    ("identity", "requester", "reason"),
    [
        ("", "me", "an empty id is found in nothing"),
        ("a b", "me", "a space"),
        ("a\nb", "me", "a second line"),
        ("a-->b", "me", "it would end the hidden line of a pull request"),
        ("a", "me\nOrderkit-Operation: b", "a second line"),
        ("a", "me -->", "it would end the hidden line of a pull request"),
    ],
)
def test_an_operation_is_refused_that_could_forge_another(
    identity: str, requester: str, reason: str
) -> None:
    with pytest.raises(ValueError, match=r"op|requester"):
        Operation(identity, requester, reason)
