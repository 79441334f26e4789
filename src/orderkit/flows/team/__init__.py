"""Teams: create, inspect and remove them, and hold orders to their limits."""
