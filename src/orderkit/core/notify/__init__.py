"""What orders notify people and programs about, and where each event goes."""
