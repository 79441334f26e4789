"""Argo CD: the state of Applications, the order of a sync, and health checks."""
