"""Packs in folders of this machine."""
