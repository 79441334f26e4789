"""
Notify by a comment on each open pull request about an order.

These are the pull requests of the order's repository, and the one of the ledger that proposes the
order if it waits for approval. There is one comment for each topic, found by its marker and updated
in place; without an open pull request there is nothing to say, and the event counts as told.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from ground.errors import ConflictError, NotFoundError
from ground.names import OrderId, RepoId, TeamName
from orderkit.core.notify.event_texts import Message, to_markdown
from orderkit.core.notify.order_event import OrderEvent
from orderkit.core.order.ledger import OrderEntry
from orderkit.ports.forge import Forge

_PULLS_MAX = 20


class PullComments:
    """Comments on the forge."""

    def __init__(self, forge: Forge, ledger: RepoId) -> None:
        self._forge, self._ledger = forge, ledger

    def send(self, message: Message) -> None:
        """
        Say it on the open pull requests of the orders. Idempotent.

        Raises:
            OrderkitError: The forge cannot be asked, or refuses.
        """
        for event in message.events:
            for repo, number in self._pulls(event):
                marker = f"orderkit/notify/{event.topic}"
                self._forge.comment(repo, number, to_markdown(message), marker=marker)

    def _pulls(self, event: OrderEvent) -> Iterator[tuple[RepoId, int]]:
        entry = OrderEntry(TeamName(event.team), OrderId(event.order))
        proposal = re.compile(rf"orderkit/{re.escape(event.order)}-[0-9a-f]{{10}}")
        for repo in (entry.repository, self._ledger):
            count = 0
            try:
                for pull in self._forge.pulls(repo, state="open"):
                    if repo == self._ledger and not proposal.fullmatch(pull.head):
                        continue
                    yield repo, pull.number
                    count += 1
                    if count >= _PULLS_MAX:
                        break
            except (NotFoundError, ConflictError):  # gone or renamed: nobody reads it there
                continue
