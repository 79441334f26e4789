"""
The controllers of the agents' pack: what keeps facts in the cluster that stations only read.

``python -m whisperops watch`` keeps the registry of datasets, ``python -m whisperops meter`` the
spend of agents. Both stand above Orderkit's ports, adapters and flows; nothing in Orderkit
imports them.
"""
