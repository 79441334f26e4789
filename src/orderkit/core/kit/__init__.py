"""A kit: its model, how it is read from XRD and kit.yaml, and what forms need of it."""
