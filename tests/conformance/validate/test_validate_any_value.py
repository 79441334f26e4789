"""Whatever JSON an object holds, validation gives a report: it never breaks down."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.conformance.validate.cases import Case
from tests.conformance.validate.productions import generated

from kubeschema.validate import Validator

SCHEMAS = 15
SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=12)
    | st.sampled_from(["2020-01-01T00:00:00Z", "1h", "1Gi", "10.0.0.1", "a"])
)
JSON = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.text(max_size=6) | st.sampled_from(["i", "s", "name"]), inner, max_size=4
        )
    ),
    max_leaves=12,
)
SPECS = st.dictionaries(st.sampled_from(["f0", "f1", "other"]), JSON)


def _validators() -> list[tuple[Case, Validator]]:
    cases = {case.schema_key: case for case in generated(random.Random("any"), SCHEMAS)}  # noqa: S311 - no secrets
    return [(case, Validator(case.definition())) for case in cases.values()]


VALIDATORS = _validators()


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.sampled_from(VALIDATORS), SPECS, SPECS)
def test_any_value_and_any_change_get_a_report(
    chosen: tuple[Case, Validator], new: dict[str, Any], old: dict[str, Any]
) -> None:
    case, validator = chosen
    before = validator.check(case.manifest(old)).result

    report = validator.check(case.manifest(new), before)

    assert all(finding.message for finding in report.findings)
    assert all(gap.why for gap in report.not_evaluated)


@settings(max_examples=100, deadline=None)
@given(st.sampled_from(VALIDATORS), SPECS)
def test_what_was_stored_is_valid_as_it_is(
    chosen: tuple[Case, Validator], new: dict[str, Any]
) -> None:
    """Defaulting and pruning are idempotent, and a verdict does not depend on them."""
    case, validator = chosen
    first = validator.check(case.manifest(new))
    again = validator.check(first.result)

    assert again.result == first.result
    assert again.pruned == ()
    assert again.defaulted == ()
    kept = [f for f in first.findings if f.path not in first.pruned]
    assert [replace(f, value="") for f in again.findings] == [replace(f, value="") for f in kept]
