"""The HTTP side of the embedded forge: Gitea's API, git smart HTTP and a few pages."""
