"""Kubernetes objects as plain data: keys, conditions, values, quantities."""
