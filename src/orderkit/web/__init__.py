"""The HTTP service that a portal's template step calls."""
