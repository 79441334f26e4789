"""
The agents' story on an embedded platform: ``python -m whisperops demo``, or ``make demo-agents``.

``story`` tells it; ``kagent`` plays kagent and Kyverno, ``counters`` the Prometheus that the meter
asks. Everything else is what a platform runs: watcher, meter, flows, the service over HTTP.
"""
