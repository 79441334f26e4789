"""Receivers of notifications: Backstage, signed webhooks, and what Apprise reaches."""
