"""End an order and prove that it is gone."""
