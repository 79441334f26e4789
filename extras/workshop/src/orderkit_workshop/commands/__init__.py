"""``orderkit init`` and ``orderkit kit``."""
