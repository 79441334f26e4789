"""Crossplane: stations, the pipeline and its simulation, and twins of third-party functions."""
