"""YAML as text and as data: readers for YAML 1.1 and 1.2, positions, and edits with proof."""
