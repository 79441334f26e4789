"""In which order the tests of a run begin."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
LONG, QUICK = "tests/component/test_story_counts.py", "tests/unit/harness/test_affected.py"


@pytest.mark.parametrize(("limit", "first"), [((), LONG), (("--leave-after", "600"), QUICK)])
def test_what_answers_quickly_begins_first_if_time_is_limited(
    limit: tuple[str, ...], first: str
) -> None:
    collect = ("-n", "0", "--collect-only", "-q", "-p", "no:cacheprovider", *limit, QUICK, LONG)
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *collect],
        capture_output=True,
        text=True,
        check=True,
        cwd=ROOT,
    )

    assert done.stdout.startswith(first)
