"""
What a platform team does with kits: start and import them, generate, check and test.

Each module is one story of ``orderkit kit``; ``probing`` and ``trying`` run a kit's pipeline for
those that check and test.
"""
