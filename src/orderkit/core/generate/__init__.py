"""Everything that is generated from a kit."""
