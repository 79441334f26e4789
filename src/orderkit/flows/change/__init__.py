"""
Change fields of a living order through Git: read, compare, judge, edit, write once.

Every step is safe to repeat. Nothing is written unless the person's base still holds for the
fields of this change, the XRD and the kit's rules accept old → new, and the edit of the text is
proved. The write carries the blob id that was read, so a race is noticed and the round begins
anew; a lost answer is cleared up by the operation id in the commit. Other people's commits to
other fields are no obstacle.

``request`` has the values, ``planning`` thinks a change through, ``proposing`` offers it as a
pull request, ``running`` is the whole. Waiting for the delivery is ``flows.order.delivering``'s.

Called by ``orderkit change``, by the service, by the revert of a commit and by the end of an order.
"""

from orderkit.flows.change.applying import change
from orderkit.flows.change.request import Changed, ChangeRequest

__all__ = ["ChangeRequest", "Changed", "change"]
