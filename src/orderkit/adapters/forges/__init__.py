"""What the clients of all forges share: HTTP, retries, caches, and how a write is made sure."""
