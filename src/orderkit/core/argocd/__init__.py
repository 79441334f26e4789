"""Argo CD: what its Applications say, the order of a sync, and how it judges health."""
