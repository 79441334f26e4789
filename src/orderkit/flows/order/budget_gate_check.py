"""
Tell a program whether an XR's user may continue, from the cluster alone.

A chat front end asks before each request, so the forge is not needed once the kit is known: the kit
is cached for a minute, and longer while the forge cannot be reached. The XR itself is read each
time. If the answer cannot be determined, that is an `UnknownGateError`, never a verdict.
"""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass

from ground.errors import (
    InvalidInputError,
    NotFoundError,
    OrderkitError,
    RemoteError,
    UnreachableError,
)
from ground.names import TeamName
from ground.objects.kube_objects import (
    TRACKING_ID,
    Kind,
    Manifest,
    ObjectKey,
    annotations_of,
    controller,
    dig,
    metadata,
)
from orderkit.core.kit.budget_gate import GateVerdict, verdict_of
from orderkit.core.kit.model import Kit
from orderkit.flows.argocd.refreshing import application_key
from orderkit.flows.platform import Platform, published_kit
from orderkit.ports.cluster import Cluster, NoSuchKindError

_KIT_KEPT_S = 60.0
_DEPTH_MAX = 8
"""Bound on the number of XRs above an XR."""


class UnknownGateError(UnreachableError):
    """Whether the user may continue cannot be determined now; asking again can help."""


@dataclass(frozen=True, slots=True)
class GateRequest:
    """The XR in question. `namespace` may be empty if only one namespace has the name."""

    kit: str
    name: str
    namespace: str = ""


class Gates:
    """The gates of one platform. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._kits: dict[str, tuple[float, Kit]] = {}

    def kit(self, platform: Platform, name: str) -> Kit:
        """
        Return a kit that has a gate.

        Raises:
            NotFoundError: The pack has no such kit, or it has no gate.
            UnknownGateError: It cannot be read and is not in the cache.
        """
        now_s = time.monotonic()
        with self._lock:
            kept_s, kit = self._kits.get(name, (float("-inf"), None))
        if kit is None or now_s - kept_s > _KIT_KEPT_S:
            try:
                kit = published_kit(platform, name)
            except NotFoundError:
                # an answer, not a failure: a kept kit does not count any more
                raise
            except OrderkitError as error:
                # a kept kit counts longer while the forge cannot be reached
                if kit is None:
                    raise UnknownGateError(f"kit '{name}' cannot be read now: {error}") from error
            with self._lock:
                self._kits[name] = now_s, kit
        if kit.gate is None:
            raise NotFoundError(f"kit '{name}' has no gate", hint="kit.yaml: spec.gate")
        return kit

    def xr(self, platform: Platform, gate_query: GateRequest) -> Manifest | None:
        """
        Return the XR as it is now; None if it does not exist.

        Raises:
            NotFoundError: As `kit`. UnknownGateError: as `kit`, or the cluster cannot say.
            InvalidInputError: Several namespaces have one of this name.
        """
        kit = self.kit(platform, gate_query.kit)
        try:
            if gate_query.namespace or not kit.namespaced:
                home = gate_query.namespace if kit.namespaced else ""
                return platform.cluster.get(ObjectKey(kit.kind, gate_query.name, home))
            xrs = [
                xr
                for xr in platform.cluster.list(kit.kind).items
                if metadata(xr).get("name") == gate_query.name
            ]
        except (RemoteError, NoSuchKindError) as error:
            raise UnknownGateError(f"{kit.kind} cannot be read now: {error}") from error
        if len(xrs) > 1:
            places = ", ".join(sorted(str(metadata(xr).get("namespace")) for xr in xrs))
            raise InvalidInputError(
                "query.namespace", "", f"is needed: {gate_query.name} is in {places}"
            )
        return xrs[0] if xrs else None

    def verdict(self, platform: Platform, gate_query: GateRequest, xr: Manifest) -> GateVerdict:
        """Return what the XR's status says; raises as `kit`."""
        gate = self.kit(platform, gate_query.kit).gate
        if gate is None:  # `kit` refuses those
            raise NotFoundError(
                f"kit '{gate_query.kit}' has no gate",
                hint="kit.yaml: spec.gate",
            )
        return verdict_of(gate, xr)


def team_of(cluster: Cluster, xr: Manifest) -> TeamName | None:
    """
    Return the team whose order an XR belongs to, nested ones included; None if no team's.

    Read in the cluster: the Application that delivers the outermost XR has the team as project.

    Raises:
        UnknownGateError: The cluster cannot say.
    """
    try:
        root = _root(cluster, xr)
        order = annotations_of(root).get(TRACKING_ID, "").partition(":")[0]
        application = cluster.get(application_key(order)) if order else None
    except OrderkitError as error:
        raise UnknownGateError(f"the XR's team cannot be read now: {error}") from error
    team = dig(application or {}, "spec", "project", default="")
    return TeamName(team) if team else None


def _root(cluster: Cluster, xr: Manifest) -> Manifest:
    for _ in range(_DEPTH_MAX):
        owner = controller(xr)
        if owner is None:
            break
        kind = Kind.parse(owner["apiVersion"], owner["kind"])
        home = metadata(xr).get("namespace", "") if cluster.is_namespaced(kind) else ""
        above = cluster.get(ObjectKey(kind, owner["name"], home))
        if above is None:
            break
        xr = above
    return xr
