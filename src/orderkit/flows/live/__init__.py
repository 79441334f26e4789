"""The live model: what watches and the ledger say about every order, kept in memory."""
