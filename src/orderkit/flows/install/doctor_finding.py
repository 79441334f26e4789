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
    source: str = ""
    """Where on this machine our credentials are: for its terminal, never for a page."""

    @property
    def full_detail(self) -> str:
        """The detail with its source, for a person on this machine."""
        return f"{self.detail} ({self.source})" if self.source else self.detail
