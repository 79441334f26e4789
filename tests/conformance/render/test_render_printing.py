"""Numbers and texts print and dump as JavaScript's, compared with Node itself."""

from __future__ import annotations

import math
import random
import struct

import pytest
from chances import Chances
from tests.engines.process import Engines

from softwaretemplates.render import javascript as js

NUMBERS, TEXTS = 60_000, 20_000


def _double(choices: random.Random) -> float:
    """Return any double, or one near where the layout of digits changes."""
    if choices.random() < 0.4:
        (found,) = struct.unpack(">d", choices.randbytes(8))
        return found if math.isfinite(found) else 0.0
    scale = 10.0 ** choices.randint(-9, 23)
    return choices.choice((-1, 1)) * round(choices.random(), choices.randint(0, 17)) * scale


def _text(choices: random.Random) -> str:
    kinds = ((0, 0x7F), (0, 0x2FF), (0x2000, 0x2100), (0, 0xFFFF), (0x1F300, 0x1F700))
    text = "".join(
        chr(choices.randint(*choices.choice(kinds))) for _ in range(choices.randint(0, 12))
    )
    # two halves that meet are one character, as everywhere that texts come from
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass")


def test_numbers_print_alike(engines: Engines, chances: Chances) -> None:
    choices = chances.random("numbers")
    numbers = [_double(choices) for _ in range(NUMBERS)]
    numbers += [float(n) for n in (0, 1, -1, 2**53, 2**53 + 2, 1e21, 1e-7, 5e-324)]
    found = engines.ask("print", numbers=[repr(number) for number in numbers], texts=[])["numbers"]

    ours = [[js.text(number), js.to_json(number)] for number in map(js.normal, numbers)]
    assert [pair for pair in zip(numbers, found, ours, strict=True) if pair[1] != pair[2]] == []


def test_texts_dump_alike(engines: Engines, chances: Chances) -> None:
    choices = chances.random("texts")
    texts = [_text(choices) for _ in range(TEXTS)]
    found = engines.ask("print", numbers=[], texts=texts)["texts"]

    ours = [js.to_json(text) for text in texts]
    assert [pair for pair in zip(texts, found, ours, strict=True) if pair[1] != pair[2]] == []


@pytest.mark.parametrize("parts", [("0", "1", "9", ".", "e", "-", "+", " ", "x", "_", "Infinity")])
def test_texts_become_the_same_numbers(
    engines: Engines, chances: Chances, parts: tuple[str, ...]
) -> None:
    choices = chances.random("numbers in texts")
    texts = ["".join(choices.choices(parts, k=choices.randint(0, 5))) for _ in range(TEXTS // 4)]
    texts += [
        "\u00a012\ufeff",
        "\x1f1",
        "\u0661",
        "0b11",
        "0o17",
        "0xfF",
        "-0x1",
        "1n",
        "NaN",
        "1e400",
    ]
    found = engines.ask("read", texts=texts)

    ours = [js.number_text(js.normal(js.number(text))) for text in texts]
    assert [pair for pair in zip(texts, found, ours, strict=True) if pair[1] != pair[2]] == []
