"""Tokens that prove who calls the service: Orderkit's own, OpenID Connect, Backstage."""
