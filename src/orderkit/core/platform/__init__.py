"""One installation: platform.yaml, what is baked into a pack, and the delivery tree."""
