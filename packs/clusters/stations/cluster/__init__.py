"""The kit `cluster`: one order for a Kubernetes cluster in any of the clouds below `clouds`."""
