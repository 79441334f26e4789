"""Leases of orders: grant, show, extend and sweep them."""
