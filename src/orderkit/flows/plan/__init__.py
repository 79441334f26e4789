"""
Plan what a change will do, down to composed resources, before it is committed.

``order_plan`` plans an order, new or before and after, with what ``flows.composing`` computes.
``pull_requests`` plans what merging would do, reports it on the forge, and is the only module here
that writes. ``fleet_planning`` plans all orders of a kit, with
``parallel_planning`` in several processes; ``replaying`` repeats recorded plans.
"""
