"""A figure in seconds is judged by a fixed piece of work of the same run, not by the clock."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from bench.figure import Figure
from bench.yardstick import REFERENCE_S, Yardstick, measured, work

USUAL = Yardstick(REFERENCE_S, REFERENCE_S)
SLOW = Yardstick(3 * REFERENCE_S, 2 * REFERENCE_S)


@pytest.mark.parametrize(
    ("figure", "usual", "slow"),
    [
        (Figure("a time", 2.5, "s", aim="<= 1"), False, True),
        (Figure("the same in ms", 2500, "ms", aim="<= 1000"), False, True),
        (Figure("too long for a slow machine, too", 3.5, "s", aim="<= 1"), False, False),
        (Figure("a rate", 4, "per s", aim=">= 10"), False, True),
        (Figure("no rate at all", 0, "per s", aim=">= 10"), False, False),
        (Figure("processor time", 1.9, "s of CPU", aim="<= 1"), False, True),
        (Figure("more of it", 2.5, "s of CPU", aim="<= 1"), False, False),
        (Figure("a count", 5, "requests", aim="<= 4"), False, False),
        (Figure("memory", 300, "MB", aim="<= 400"), True, True),
        (Figure("a ratio", 9, "s", ratio=1.4, aim="<= 1.5", aim_of="ratio"), True, True),
        (Figure("only informs", 9, "s"), None, None),
    ],
    ids=lambda value: value.name if isinstance(value, Figure) else str(value),
)
def test_a_slow_machine_gets_more_time_and_nothing_else(
    figure: Figure, usual: object, slow: object
) -> None:
    assert replace(figure, yardstick=USUAL).met is usual
    assert replace(figure, yardstick=SLOW).met is slow


def test_a_line_shows_what_was_judged() -> None:
    line = json.loads(Figure("list", 4.29, "s", aim="<= 2", yardstick=SLOW).line())

    assert (line["value"], line["yardsticks"], line["aim"]) == (4.29, 1000, "yardsticks <= 1399")
    assert line["met"] is True


def test_the_yardstick_is_the_same_work_each_time() -> None:
    assert work() == work()
    found = measured()
    assert 0 < found.cpu_s <= found.wall_s * 1.5
