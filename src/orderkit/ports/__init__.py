"""What stories need of the world: small Protocols, with a contract suite for foreign systems."""
