"""Orders: their files, state, limits and end, and the ledger that lists them."""
