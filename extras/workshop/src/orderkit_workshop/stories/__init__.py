"""
Work on kits: create and import them, generate, check and test.

Each module is one command of ``orderkit kit`` or ``orderkit init``; ``try_scenario`` runs a kit's
pipeline for tests.
"""
