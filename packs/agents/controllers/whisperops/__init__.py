"""
The controllers of the agents' pack: they keep the facts in the cluster that stations read.

``python -m whisperops watch`` keeps the registry of datasets, ``python -m whisperops meter`` what
agents spend. Of Orderkit they use only the public API: ``orderkit.controllers`` and, for the demo,
``orderkit_standins.testing``. Nothing in Orderkit imports them.
"""
