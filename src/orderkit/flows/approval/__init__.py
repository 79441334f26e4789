"""Agreements to orders and changes: who has to agree, who did, and what follows from it."""
