"""The collector is off inside and as it was afterwards, whoever ends first and however."""

from __future__ import annotations

import gc

import pytest

from orderkit.core.gc_pause import uncollected


def test_nothing_is_collected_inside_and_all_is_as_before_afterwards() -> None:
    assert gc.isenabled()
    with uncollected():
        assert not gc.isenabled()
        with uncollected():
            assert not gc.isenabled()
        assert not gc.isenabled(), "what began it ends it"
    assert gc.isenabled()


def test_a_failure_inside_ends_it_too() -> None:
    with pytest.raises(ValueError, match="inside"), uncollected():
        raise ValueError("inside")
    assert gc.isenabled()


def test_a_collector_that_was_off_stays_off() -> None:
    gc.disable()
    try:
        with uncollected():
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()


def test_two_that_overlap_leave_it_on_whichever_ends_first() -> None:
    first, second = uncollected(), uncollected()
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    assert gc.isenabled()
    second.__exit__(None, None, None)
    assert gc.isenabled()
