"""What each story costs in requests, commits and calls is what docs/counts.md says."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from scripts import story_counts
from scripts.story_counts import Count, differences, growth, read_table, write_table

ORDER = Count({"forge": (65, 34), "pages": (3, 3), "cluster": (11, 7)}, commits=4, calls=27_000)


def compared(*sizes: int) -> subprocess.CompletedProcess[str]:
    words = [sys.executable, story_counts.__file__, *map(str, sizes)]
    return subprocess.run(words, capture_output=True, text=True, check=False)


@pytest.mark.timeout(600)
def test_beside_100_orders_each_story_costs_what_the_table_says() -> None:
    done = compared(100)

    assert done.returncode == 0, done.stderr


@pytest.mark.soak
@pytest.mark.parametrize("size", [1_000, 10_000])
def test_beside_more_orders_each_story_costs_what_the_table_says(size: int) -> None:
    done = compared(size)

    assert done.returncode == 0, done.stderr


def test_one_request_more_is_named_with_its_system_before_and_now() -> None:
    more = replace(ORDER, requests={**ORDER.requests, "forge": (66, 34)})

    assert list(differences(ORDER, more)) == ["forge: was 65 (34), is 66 (34)"]
    assert list(differences(ORDER, replace(ORDER, commits=5))) == ["commits: was 4, is 5"]
    assert list(differences(None, ORDER)) == ["is not in the table"]


def test_calls_may_differ_a_little() -> None:
    assert not list(differences(ORDER, replace(ORDER, calls=27_500)))
    assert list(differences(ORDER, replace(ORDER, calls=29_000))) == [
        "calls: was 27,000, is 29,000"
    ]


def test_what_grows_with_the_orders_of_others_is_named() -> None:
    pages = replace(ORDER, requests={**ORDER.requests, "pages": (13, 13)})
    forge = replace(ORDER, requests={**ORDER.requests, "forge": (75, 44)})
    calls = replace(ORDER, calls=1_000_000)

    def grown(story: str, count: Count) -> list[str]:
        return list(growth({(story, 100): ORDER, (story, 10_000): count}))

    assert not grown("order", pages)
    assert grown("order", forge) == ["order: forge grow with the orders of others"]
    assert grown("order", calls) == ["order: 98.3 calls for each order of others"]
    assert not grown("list", calls)


def test_the_table_is_read_as_it_was_written(tmp_path: Path) -> None:
    page = tmp_path / "counts.md"
    page.write_text(f"# Counts\n\n{story_counts.BEGIN}{story_counts.END}")
    whole = replace(ORDER, requests={**ORDER.requests, "portal": (0, 0), "service": (1, 1)})

    write_table({("order", 100): whole}, page)

    assert read_table(page) == {("order", 100): whole}
