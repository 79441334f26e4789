"""The demo: the whole life of an order, each stage proved."""
