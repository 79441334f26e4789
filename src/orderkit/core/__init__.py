"""Pure code: no I/O, no clients, no clock. Everything above may import it."""
