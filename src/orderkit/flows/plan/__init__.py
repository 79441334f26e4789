"""
The plan of a change: what it will do, down to composed resources, before it is committed.

``published`` makes the platform's pack run in this process, ``forecasting`` runs it on an order
before and after, ``judging`` holds the outcome against what the cluster says, ``requests`` reads
what a person may ask: edits, a whole XR, two commits. ``pullrequests`` plans what merging would do;
``announcing`` says it on the forge, the only thing here that writes. ``fleet`` plans all orders of
a kit, in ``lanes`` of processes; ``recording`` and ``replaying`` make plans repeatable. Called by
``orderkit plan``, by the service, and by the flow that changes.
"""

from orderkit.flows.plan.order_plan import plan_order

__all__ = ["plan_order"]
