"""
Any Kubernetes API server as a ``Cluster``, through the official client.

Import `KubeCluster` from ``orderkit.adapters.kube.cluster``. Importing this package, or that
module, does not import the client yet (0.2 s, 25 MB): the first `KubeCluster` does.
"""
