"""
Plan what a change will do, down to composed resources, before it is committed.

``published_pack`` loads the platform's pack into this process, ``order_plan`` runs it on an order
before and after, ``cluster_verdicts`` checks the outcome against the cluster. ``pull_requests``
plans what merging would do; ``announcing`` reports it on the forge and is the only module here that
writes. ``fleet_planning`` plans all orders of a kit, with ``parallel_planning`` in several
processes; ``recording`` and ``replaying`` make plans repeatable.
"""

from orderkit.flows.plan.order_plan import plan_order

__all__ = ["plan_order"]
