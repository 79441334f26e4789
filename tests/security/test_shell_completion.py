"""What Tab offers comes from kits and orders: a shell inserts it, and Enter would run it."""

from __future__ import annotations

import shlex
import subprocess

import pytest

from orderkit.cli import completion

HOSTILE = [
    "stage=$(touch pwned)",
    "stage=`touch pwned`",
    "stage=a;touch pwned",
    "stage=a&touch pwned",
    "stage=a|touch pwned",
    "stage=a\nplain,$(touch pwned)",
    "stage=a\rtouch pwned",
    "stage=a>pwned",
    "stage=*",
    "stage=~root",
    "stage=a'b",
    'stage=a"b',
    "stage=\x1b]0;title\x07",
    "stage=\u202egnp",
    "stage=a\\",
    "stage={a,b}",
    "stage=!!",
    "stage=#",
    "--platform=evil.yaml",
    "=cat",
    "",
]
HARMLESS = ["stage=stage1", "engine.power=", "garage-ae86", "image=a.example/b:1@sha256:ff"]


@pytest.mark.parametrize("word", HOSTILE, ids=range(len(HOSTILE)))
def test_tab_offers_no_word_that_a_shell_would_obey(word: str) -> None:
    assert completion._beginning("", lambda: [word]) == []  # noqa: SLF001  any kit's value


def test_what_tab_offers_is_literal_for_a_shell() -> None:
    offered = completion._beginning("", lambda: HARMLESS)  # noqa: SLF001  as above

    assert offered == HARMLESS
    echoed = subprocess.run(
        ["bash", "-c", "printf '%s\\n' " + " ".join(offered)],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert echoed.stdout.splitlines() == HARMLESS
    assert [shlex.split(word) for word in offered] == [[word] for word in offered]
