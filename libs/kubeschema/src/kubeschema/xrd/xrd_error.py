"""The error of ``xrd``."""

from __future__ import annotations

from ground.errors import OrderkitError


class BrokenXrdError(OrderkitError):
    """No CRD can be made from this XRD, or the API server would refuse it."""

    def __init__(self, message: str, *, hint: str = "", steps: tuple[str, ...] = ()) -> None:
        """
        Make an error with its position in the XRD.

        Args:
            steps: Path in the XRD; empty for the whole XRD.
        """
        super().__init__(message, hint=hint)
        self.steps = steps
