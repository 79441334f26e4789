"""Orders: place, register, adopt, list and trace them."""
