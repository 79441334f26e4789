"""
GitHub's dialect of the embedded forge, over the same repositories, users and pull requests.

Read from GitHub's OpenAPI description (Enterprise Server 3.19) and its GraphQL schema; only the
calls that our client sends. Each endpoint turns the call into one of the forge's own, and its
answer into GitHub's shape.
"""
