"""
Change fields of a live order through Git: read, compare, judge, edit, write once.

Every step is safe to repeat. Nothing is written unless the fields of this change are unchanged
since the person's base commit, the XRD and the kit's rules accept old → new, and the edit of the
text is proved. The write carries the blob id that was read, so a race is detected and starts a new
round; after a lost answer, the operation id in the commit tells whether the write succeeded. Other
people's commits to other fields do not conflict.

``request`` has the values and the plan of their effects, ``edit_draft`` drafts the edit,
``proposing`` opens the pull request, ``applying`` runs the rounds. ``declared_order`` brings an
order to what a file says. ``flows.order.awaiting`` waits for the delivery.
"""

from orderkit.flows.change.applying import change, change_living
from orderkit.flows.change.request import Changed, ChangeRequest

__all__ = ["ChangeRequest", "Changed", "change", "change_living"]
