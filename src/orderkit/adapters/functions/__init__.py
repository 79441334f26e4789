"""
Serve a pack's stations to a real Crossplane: the function protocol over gRPC.

``function_messages`` translates between the wire and ``compositions.station``, and
``function_server`` listens. ``station_answers`` runs stations, each request in a process that can
be stopped (``adapters.processes``). ``local_functions`` loads stations and calls functions of
others for plans and tests. Only this package needs the extra ``functions``.
"""
