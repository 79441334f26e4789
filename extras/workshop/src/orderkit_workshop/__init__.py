"""The kit workshop: start, import, generate, check and test kits."""
