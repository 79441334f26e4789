"""
The ``Cluster`` port on any Kubernetes API server, through the official client.

Import `KubeCluster` from ``orderkit.adapters.kube.cluster``. Importing this package or that
module does not import the client (0.2 s, 25 MB); creating the first `KubeCluster` does.
"""
