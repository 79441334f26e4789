"""
The Kubernetes API over HTTP: what kubectl and the official Python client talk to.

Not here: TLS, users and authorisation, aggregated discovery, paging (``limit`` is accepted,
everything comes at once), protobuf answers, ``exec``/``log``/``proxy``, the ``scale`` subresource.
"""

from orderkit_standins.cluster.http.app import cluster_app, kubeconfig

__all__ = ["cluster_app", "kubeconfig"]
