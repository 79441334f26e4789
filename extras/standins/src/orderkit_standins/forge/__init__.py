"""
A forge on one machine: Gitea's API and git smart HTTP over real bare repositories.

What it is: the subset of Gitea 1.26 that the flows, Backstage's scaffolder and reader, and git
need, with Gitea's status codes, the unpleasant ones included (a lost race is a 403, identical
content is an empty commit). Every write survives kill -9 of the process.

What it does not do: reviews, forks, milestones, assignees, LFS, mirrors, SSH, TLS, sha256
repositories, signatures, garbage collection of git objects, durability against power loss, webhooks
of users, a second attempt for a webhook that failed or waited when the process ended. It listens on
loopback only (``web.serving``) and calls webhooks there only.
"""

from orderkit_standins.forge.forge import EmbeddedForge

__all__ = ["EmbeddedForge"]
