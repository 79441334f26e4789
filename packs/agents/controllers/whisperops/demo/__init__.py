"""
The agents' demo on an embedded platform: ``python -m whisperops demo``, or ``make demo-agents``.

``story`` runs all stages; ``budgetstages`` and ``datasetstages`` hold most of them. ``kagent``
imitates kagent and Kyverno, ``counters`` imitates the Prometheus that the meter queries.
Everything else is real: watcher, meter, orders, and the service over HTTP.
"""
