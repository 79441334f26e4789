"""GitLab behind ``ports.forge``: GitLab.com and self-managed, read from GitLab's description."""

from orderkit.adapters.gitlab.client import GitLabForge

__all__ = ["GitLabForge"]
