"""What one check of a platform found."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Verdict = Literal["ok", "warn", "fail"]


@dataclass(frozen=True, slots=True)
class DoctorFinding:
    """The result of one check; `advice` is empty if all is well."""

    check: str
    verdict: Verdict
    detail: str
    advice: str = ""
