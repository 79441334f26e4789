"""
The Gitea client: `ports.forge.Forge` over Gitea's HTTP API.

Works with Gitea 1.26 and newer, and with the embedded forge. It follows no redirects and no links
of answers, every request has a time-out, and no message contains a token.
"""

from orderkit.adapters.gitea.client import GiteaForge

__all__ = ["GiteaForge"]
