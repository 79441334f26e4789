"""``orderkit up`` and ``orderkit demo``."""
