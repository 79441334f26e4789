"""A value for a field with a pattern is made, so that an XRD of others has an example order."""

from __future__ import annotations

import pytest

from kubeschema.samples import NoSampleError, sample


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        (r"^vpc-[a-z0-9]{8,17}$", "vpc-aaaaaaaa"),
        (r"^arn:aws:iam::[0-9]{12}:role/[\w+=,.@-]+$", "arn:aws:iam::999999999999:role/w"),
        (r"^[A-Z]{3}-\d{4}x?$", "AAA-1111"),
        (r"^x\.[\]]y*$", "x.]"),
    ],
)
def test_a_pattern_without_choices_is_spelled(pattern: str, text: str) -> None:
    assert sample({"type": "string", "pattern": pattern}) == text


def test_a_pattern_that_cannot_be_spelled_has_no_sample() -> None:
    with pytest.raises(NoSampleError):
        sample({"type": "string", "pattern": r"^projects/[^/]+/(a|b)$"})
