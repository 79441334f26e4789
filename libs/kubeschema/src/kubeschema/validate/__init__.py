"""
Judge XRs and custom objects as the API server will, before anything is written.

There is one `Validator` per XRD or CRD. `Validator.check` returns a `ValidationReport` with
findings (unknown fields, structure, CEL rules, transitions, names), the values that defaulting
would add, and the rules that could not be evaluated. ``xrd_check`` judges XRDs themselves, with
positions and hints; ``file_check`` judges files of both. The form's values, the order, ``orderkit
validate`` and CI all use this package, so that a fault has the same message everywhere.

Stricter than the server in one respect: an unknown field is a finding (the server drops it, or
refuses it in strict mode, which Argo CD uses). No I/O; no admission policies, no cost limits, no
ratcheting (the server tolerates old faults in fields that an update leaves alone).
"""

from typing import TYPE_CHECKING

from kubeschema.validate.findings import (
    DefaultedValue,
    Finding,
    FindingSeverity,
    Reason,
    ValidationReport,
)

if TYPE_CHECKING:
    from kubeschema.validate.object_check import Validator

__all__ = [
    "DefaultedValue",
    "Finding",
    "FindingSeverity",
    "Reason",
    "ValidationReport",
    "Validator",
]


def __getattr__(name: str) -> object:
    """Import `Validator` when it is asked for: whoever only reads findings needs no schemas."""
    if name != "Validator":
        raise AttributeError(name)
    from kubeschema.validate.object_check import Validator

    return Validator
