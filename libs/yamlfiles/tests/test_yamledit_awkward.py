"""``yamlfiles.edit`` on awkward texts: exactly these bytes, or exactly this refusal."""

from __future__ import annotations

import pytest
from yamlblocks import POSSIBLE
from yamlcases import CASES, Case

from yamlfiles import assignments
from yamlfiles.edit import EditRefusal, EditRefusedError, edit


@pytest.mark.parametrize(
    ("text", "wish", "after"), [case[1:] for case in POSSIBLE], ids=[case[0] for case in POSSIBLE]
)
def test_what_can_be_edited_is_edited_exactly(text: str, wish: str, after: str) -> None:
    assert edit(text.encode(), [assignments.parse(wish).edit()]).decode() == after


def test_a_comma_inside_a_comment_stays() -> None:
    text = "a: {\n  x: 1 # b, c\n  ,\n  why: 2\n}\n"

    with pytest.raises(EditRefusedError) as refused:
        edit(text.encode(), [assignments.parse("a.why-").edit()])

    assert refused.value.code is EditRefusal.COMMENT


def test_what_libyaml_cannot_read_is_said_to_be_possible_in_yaml_1_2() -> None:
    """Example 6.4 of the specification has a tab where libyaml wants blanks."""
    with pytest.raises(EditRefusedError) as refused:
        edit(b"a:\n  - x\n  -\ty: 1\n\t- z\n", [assignments.parse("a[0]=b").edit()])

    assert "is not valid YAML" in str(refused.value)
    assert "YAML 1.2 may allow more" in str(refused.value)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.reason)
def test_an_awkward_text_is_edited_exactly_or_refused(case: Case) -> None:
    wish = assignments.parse(case.edit).edit()
    if isinstance(case.after, EditRefusal):
        with pytest.raises(EditRefusedError) as refused:
            edit(case.text.encode(), [wish])
        assert refused.value.code is case.after
        return
    assert edit(case.text.encode(), [wish]).decode() == case.after


def test_there_are_enough_of_them() -> None:
    assert len({case.reason for case in CASES}) == len(CASES) >= 55
