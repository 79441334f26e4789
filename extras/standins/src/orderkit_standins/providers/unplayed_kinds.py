"""The kinds of a pack that the embedded cluster does not serve: nobody plays them."""

from __future__ import annotations

from contextlib import suppress

from compositions.managed_state import ManagedKinds
from ground.errors import IncompleteError
from ground.objects.kube_objects import Kind, condition
from orderkit.core.kit.pack import Pack
from orderkit.flows.waiting import until
from orderkit.ports.clock import SystemClock
from orderkit.ports.cluster import Cluster
from orderkit_standins.providers.provider_objects import PROVIDER

_PATIENCE_S = 10.0
"""For Providers of the start to say whether they are healthy."""


def unplayed_kinds(cluster: Cluster, pack: Pack) -> list[Kind]:
    """
    Return the kinds that kits compose, and the managed ones of ``schemas/``, that nothing serves.

    Raises:
        InvalidInputError: The pack cannot be read.
    """
    kinds = {Kind.parse(ref.api_version, ref.kind) for kit in pack.kits() for ref in kit.composes}
    for (group, name), known in ManagedKinds.of_pack(pack.files).layer.items():
        versions = known.validator.versions
        if not any(cluster.serves(Kind(group, version, name)) for version in versions):
            kinds |= {Kind(group, version, name) for version in versions[-1:]}
    if all(map(cluster.serves, kinds)):
        return []
    with suppress(IncompleteError):  # what is not served by then is named
        until(
            SystemClock(),
            lambda: cluster.list(PROVIDER).items,
            lambda providers: all(condition(each, "Healthy") for each in providers),
            timeout_s=_PATIENCE_S,
            goal="the health of the Providers",
        )
    return sorted(kind for kind in kinds if not cluster.serves(kind))
