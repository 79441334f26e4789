"""What the workshop needs from the machine and from registries: small Protocols."""
