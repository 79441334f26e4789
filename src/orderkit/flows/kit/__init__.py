"""
Work on kits: create and import them, generate, check and test.

Each module is one command of ``orderkit kit``; ``purity_probe`` and ``try_scenario`` run a kit's
pipeline for checks and tests.
"""
