"""Benchmarks: figures with their peer, measured in the same run. ``make bench``."""
