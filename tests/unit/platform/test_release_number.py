"""Release numbers in version texts, and whether a range of a known hole contains them."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orderkit.core.platform.neighbours import ReleaseNumber, read_range, read_release


@dataclass(frozen=True)
class Case:
    """A text, and its numbers with the marks that apply; None: not read."""

    reason: str
    text: str
    numbers: tuple[int, int, int] | None
    marks: str = "final exact plain"


CASES = [
    Case("Gitea's release", "1.27.3", (1, 27, 3)),
    Case("Argo CD's image tag", "v3.6.1", (3, 6, 1)),
    Case("Gitea since it was renumbered", "28.4.0", (28, 4, 0)),
    Case("a vendor's build", "v1.37.2-eks-a1b2c3d", (1, 37, 2), "final exact"),
    Case("another vendor's build", "v1.36.5+k3s1", (1, 36, 5), "final exact"),
    Case("a rebuilt package is no release candidate", "3.4.10-r2", (3, 4, 10), "final exact"),
    Case("Gitea's image tag", "1.24.3-rootless", (1, 24, 3), "final exact"),
    Case("Gitea's main branch", "1.28.0+dev-123-gabcdef0", (1, 28, 0), "between exact"),
    Case("commits after a release", "1.27.3+12-gabcdef0", (1, 27, 3), "final between exact"),
    Case("a release candidate", "v3.6.0-rc2", (3, 6, 0), "between exact"),
    Case("Kubernetes' pre-release", "v1.38.0-alpha.1.5+abc", (1, 38, 0), "between exact"),
    Case("no patch release", "3.4", (3, 4, 0), "final plain"),
    Case("a word", "latest", None),
    Case("nothing", "", None),
    Case("one number", "28", None),
    Case("four numbers are another scheme", "1.27.3.4", None),
    Case("a number that is none", "1.27.x", None),
    Case("a page of a proxy", "<html>1.27.3</html>", None),
    Case("longer than any release", "1." + "9" * 400, None),
    Case("digits of another script", "१.२७.३", None),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.reason)
def test_a_version_text_is_read(case: Case) -> None:
    found = read_release(case.text)

    assert (found and found.numbers) == case.numbers
    if found:
        marks = ("final", "between", "exact", "plain")
        assert [name for name in marks if getattr(found, name)] == case.marks.split()


IN_ORDER = ["1.27.0", "1.27.1-rc1", "1.27.1", "1.27.3", "1.28.0+dev-1-gabcd", "1.28.0", "28.0.0"]


def test_releases_are_ordered_as_they_were_published() -> None:
    numbers = [read_release(text) for text in reversed(IN_ORDER)]

    found = sorted(number for number in numbers if number)

    assert found == [read_release(text) for text in IN_ORDER]


NUMBERS = st.tuples(st.integers(0, 40), st.integers(0, 40), st.integers(0, 40))


@given(first=NUMBERS, fixed=NUMBERS, release=NUMBERS, is_final=st.booleans())
def test_a_release_is_affected_exactly_if_it_is_in_the_range(
    first: tuple[int, int, int],
    fixed: tuple[int, int, int],
    release: tuple[int, int, int],
    *,
    is_final: bool,
) -> None:
    """A candidate of the range's first release is affected; one of the fixed release too."""
    dotted = [".".join(map(str, numbers)) for numbers in (first, fixed, release)]
    place = release if is_final else (*release[:2], release[2] - 0.5)
    number = read_release(dotted[2] + ("" if is_final else "-rc1"))

    found = read_range(f">={dotted[0]} <{dotted[1]}")

    assert number is not None
    assert (number in found) == (first <= release and place < fixed)


@given(one=NUMBERS, other=NUMBERS)
def test_releases_compare_as_their_numbers(
    one: tuple[int, int, int], other: tuple[int, int, int]
) -> None:
    assert (ReleaseNumber(one) < ReleaseNumber(other)) == (one < other)


@pytest.mark.parametrize("text", ["<=1.26.1", ">1.0 <2.0", "1.27.1", "<1.27.x", ">=2.0.0", ""])
def test_a_range_of_another_form_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="no range of releases"):
        read_range(text)
