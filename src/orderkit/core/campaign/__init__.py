"""
Campaigns as data: one change over many orders, in waves, with a stop rule.

``definition`` is the file that people write, ``record`` what the ledger keeps of a run and which
order is in which wave, ``computing`` which values an order gets, ``deciding`` what comes next,
``three_way`` how a generated file follows its skeleton. Pure: no forge, no cluster, no clock.
"""
