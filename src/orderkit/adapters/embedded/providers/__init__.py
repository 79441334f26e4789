"""
Twins of Crossplane's providers: what they do to the cluster's objects, without the world behind.

A twin runs where a Provider object asks for it by the annotation
``embedded.orderkit.dev/twin`` (``packages``). There are two: ``objects`` plays
provider-kubernetes, ``cloud`` any provider whose things take a while to come to exist. They work
through the Cluster port alone, on the embedded cluster and on a real API server alike.

What they do not do stands at the top of each module and in docs/embedded-platform.md. Started by
``adapters.embedded.platform``.
"""

from orderkit.adapters.embedded.providers.packages import Providers

__all__ = ["Providers"]
