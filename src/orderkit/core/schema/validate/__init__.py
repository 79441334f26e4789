"""
Judge XRs and custom objects as the API server will, before anything is written.

One `Validator` per XRD or CRD; `Validator.check` gives a `ValidationReport` of findings (unknown
fields, structure, CEL rules, transitions, names), what defaulting would add, and the rules that
could not be evaluated. ``definitions`` judges XRDs themselves, with places and advice. The form's
values, the order, ``orderkit validate`` and CI all use this, so a fault is told in the same words
wherever it is met.

Stricter than the server in one point: an unknown field is a finding (the server drops it, or
refuses it if asked to be strict, as Argo CD asks). No I/O; no admission policies, no cost limits,
no ratcheting (the server forgives old faults in fields that an update leaves alone).
"""

from orderkit.core.schema.validate.findings import (
    DefaultedValue,
    Finding,
    FindingSeverity,
    Reason,
    ValidationReport,
)
from orderkit.core.schema.validate.object_check import Validator

__all__ = [
    "DefaultedValue",
    "Finding",
    "FindingSeverity",
    "Reason",
    "ValidationReport",
    "Validator",
]
