"""
The GitLab face of the embedded forge: ``/api/v4`` over the same repositories, users and teams.

It answers what ``orderkit.adapters.gitlab`` asks, as GitLab's description says, and nothing more.
"""
