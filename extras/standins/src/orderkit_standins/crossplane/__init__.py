"""
Crossplane's part on the embedded platform: XRDs become APIs, XRs become composed resources.

Reconcilers over watches on the ``Cluster`` port; nothing is a script. The algorithm itself is pure
and lives in ``compositions.pipeline``, so a plan computes with the very code that runs here.

Not supported: pulling packages, and functions other than Python of this process; providers and
managed resources; claims, legacy connection secrets, Operations, EnvironmentConfigs; RBAC (missing
rights never show here); the circuit breaker; admission of XRDs and Compositions beyond their CRDs.

Assembled by ``platform``.
"""

from __future__ import annotations

from orderkit_standins.crossplane.controllers import EmbeddedCrossplane
from orderkit_standins.crossplane.crds import crossplane_crds

__all__ = ["EmbeddedCrossplane", "crossplane_crds"]
