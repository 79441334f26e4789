"""The one error of ``core.schema.xrd``."""

from __future__ import annotations

from orderkit.core.errors import OrderkitError


class BrokenXrdError(OrderkitError):
    """No CRD can be made of this XRD, or the API server would refuse it."""

    def __init__(self, message: str, *, hint: str = "", steps: tuple[str, ...] = ()) -> None:
        """
        Tell what is broken.

        Args:
            steps: Where in the XRD; empty if it is the whole of it.
        """
        super().__init__(message, hint=hint)
        self.steps = steps
