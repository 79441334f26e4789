"""``core.yaml.edit`` on awkward texts: exactly these bytes, or exactly this refusal."""

from __future__ import annotations

import pytest
from yamlcases import CASES, Case

from orderkit.core.yaml import assignments
from orderkit.core.yaml.edit import EditRefusal, EditRefusedError, edit


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
