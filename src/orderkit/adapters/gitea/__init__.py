"""
The Gitea client: `ports.forge.Forge` over Gitea's HTTP API.

Works against Gitea 1.26 and newer, and the embedded forge. It follows no redirect and no link
of an answer, never talks without time-outs, and never shows a token.

Called by the flows, which know only the port.
"""

from orderkit.adapters.gitea.client import GiteaForge

__all__ = ["GiteaForge"]
