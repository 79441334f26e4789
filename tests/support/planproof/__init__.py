"""
Plan, then apply, then compare: what a plan foretells, held against what a cluster then holds.

``orders`` makes orders and changes of them, ``grounds`` a cluster on which they come true,
``reading`` looks at it with a client of its own, ``comparing`` says what differs, ``proving`` is
the whole round. ``bugs`` breaks the runner on purpose, so that it is known to be seen.

What is compared shares no code with what plans and applies: objects are found by owner, not by
the XR's references; their fields by who owns them in ``managedFields``, not by what was sent.
"""
