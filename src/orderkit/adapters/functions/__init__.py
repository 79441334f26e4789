"""
Serve a pack's stations to a real Crossplane: the function protocol over gRPC.

``messages`` translates between the wire and ``core.crossplane.station``; ``nursery`` runs stations,
each request in a process that can be stopped; ``workers`` keeps those processes; ``server``
listens. Only ``server`` needs gRPC, and only this package the extra ``functions``.

Called by ``orderkit function``.
"""
