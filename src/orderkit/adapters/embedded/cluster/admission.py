"""
The one place where a write can be refused for a reason beyond its schema.

The embedded cluster stores ValidatingAdmissionPolicies and does not enforce them yet: an
enforcing `Admission` is given to ``EmbeddedCluster`` and called for every create, update and
delete, dry runs included, after defaulting and validation and before anything is stored.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from orderkit.core.objects import Kind, Manifest

Operation = Literal["CREATE", "UPDATE", "DELETE"]


@dataclass(frozen=True, slots=True)
class AdmissionRequest:
    """What is about to happen. The manifests are shared: admission must not change them."""

    operation: Operation
    kind: Kind
    plural: str
    subresource: str
    owner: str
    new: Manifest | None
    old: Manifest | None


Admission = Callable[[AdmissionRequest], None]
"""Return to admit; raise ``refusals.Forbidden`` or ``refusals.Invalid`` to refuse."""


def admit_all(_request: AdmissionRequest) -> None:
    """Admit everything."""
