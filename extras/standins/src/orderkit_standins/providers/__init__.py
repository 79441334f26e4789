"""
Twins of Crossplane's providers: what they do to the cluster's objects, without the world behind.

A twin runs where a Provider object asks for it by the annotation ``embedded.orderkit.dev/twin``
(``provider_objects``), or where `Providers.ask_for` makes one. ``plain_twins`` plays
provider-kubernetes, ``cloud_twin`` every other provider, by the pack's ``schemas/``. They work
through the Cluster port alone, on the embedded cluster and on a real API server alike.

What they do not do stands at the top of each module and in docs/embedded-platform.md.
"""

from orderkit_standins.providers.played_kinds import ManagedLibrary
from orderkit_standins.providers.provider_objects import Providers, read_twins

__all__ = ["ManagedLibrary", "Providers", "read_twins"]
