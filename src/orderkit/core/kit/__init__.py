"""A kit: read from its XRD and kit.yaml, and everything that is generated from the two."""
