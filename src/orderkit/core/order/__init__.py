"""An order as files: its record, its state, the ledger, its limits, its end."""
