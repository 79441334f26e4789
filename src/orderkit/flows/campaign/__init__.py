"""
Campaigns: one change over many orders, in waves, carried out by whoever starts or resumes it.

``campaign_reads`` reads and writes the ledger and finds the orders, ``order_work`` changes one
order and takes one back, ``files_kinds`` does it for generated files, ``wave_facts`` finds out how
the orders of a wave are, ``running`` goes from step to step, ``planning`` says beforehand what will
happen. Decisions are made in ``core.campaign``.
"""
