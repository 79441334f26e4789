"""
A kit's page in ``docs/kits``: what it is, its fields, how it is ordered.

Called by ``core.kit.generating``.
"""

from __future__ import annotations

from pathlib import PurePosixPath

from orderkit.core.kit.marking import html_comment
from orderkit.core.kit.model import Kit


def page(kit: Kit) -> dict[PurePosixPath, bytes]:
    """Return the page of a kit."""
    lines = [f"# {kit.title}", "", kit.description, ""]
    text = html_comment(kit.name) + "\n".join(lines)
    return {PurePosixPath("docs", "kits", f"{kit.name}.md"): text.encode()}
