"""Which patterns a backtracking engine needs too many tries for."""

from __future__ import annotations

import pytest

from ground.js_backtracking import backtracks

SLOW = {
    "a group whose end is optional": "^([a-z0-9]+-?)+$",
    "a repeated repetition": "^(a+)+$",
    "a repeated repetition of nothing": "^(a*)*$",
    "repetitions beside each other": "^(x+x+)+y$",
    "equal alternatives": "^(a|a)*$",
    "alternatives that overlap": "^(a|b|ab)*$",
    "equal words": "^(?:abcdef|abcdef)*$",
    "words and optional spaces": r"^(\w+\s?)*$",
    "a repetition with a high count": "^(a+){1,30}$",
    "a repetition with a low count": "^(a+){8}$",
    "items until a comma": "^(.*?,){11}P$",
    "many optional characters": "^(a?){30}a{30}$",
    "inside a look-ahead": "^(?=(a+)+b)a",
    "before a look-ahead": "^(a+)+(?=b)",
    "before a word's end": r"(a+)+\b",
    "an e-mail address": r"^([a-zA-Z0-9])(([\-.]|[_]+)?([a-zA-Z0-9]+))*@[a-z0-9]+[.][a-z]{2,3}$",
}
QUICK = {
    "nothing": "",
    "the same language, written once": "^[a-z0-9]+(-[a-z0-9]+)*-?$",
    "a label": "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$",
    "a long label": "^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$",
    "a subdomain": r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$",
    "nothing refuses the rest": "^(a+)+",
    "two ways in all": "^.+@.+$",
    "an address": r"^(25[0-5]|2[0-4]\d|1?\d?\d)(\.(25[0-5]|2[0-4]\d|1?\d?\d)){3}$",
    "a reference": "^[A-Za-z]+:[A-Za-z0-9][-A-Za-z0-9_.]*/[A-Za-z0-9][-A-Za-z0-9_.@+]*$",
    "a link": r"^(https?://)?([\w-]+\.)+[\w-]+(/[\w./?%&=-]*)?$",
    "counts": r"^([a-z0-9]{1,63}\.){1,10}[a-z]{2,63}$",
    "a look-ahead": "^(?!__).+$",
    "a back reference": r"^(a)\1$",
}


@pytest.mark.parametrize("pattern", SLOW.values(), ids=SLOW)
def test_a_slow_pattern_is_recognised(pattern: str) -> None:
    assert backtracks(pattern)


@pytest.mark.parametrize("pattern", QUICK.values(), ids=QUICK)
def test_a_quick_pattern_is_not_accused(pattern: str) -> None:
    assert not backtracks(pattern)
