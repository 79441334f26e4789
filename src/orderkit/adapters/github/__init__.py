"""
The GitHub client: `ports.forge.Forge` over GitHub's REST and GraphQL APIs.

For GitHub.com and GitHub Enterprise Server 3.17 and newer, read from GitHub's descriptions; the
embedded forge speaks the same dialect. No message contains a token.
"""

from orderkit.adapters.github.client import GitHubForge

__all__ = ["GitHubForge"]
