"""One installation: platform.yaml, the values baked into a pack, and the delivery tree."""
