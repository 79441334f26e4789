"""Notify people and programs about orders: derive events, deliver them, remember what was told."""
