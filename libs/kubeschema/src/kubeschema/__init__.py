"""Schemas and rules as the API server applies them: structural schemas, CEL, XRDs, admission."""
