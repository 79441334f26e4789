"""Crossplane: stations, the pipeline, its simulation, and twins of other people's functions."""
