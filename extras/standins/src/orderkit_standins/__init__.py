"""
The embedded platform: small stand-ins for forge, API server, Argo CD, Crossplane and catalog.

Each says at its top what it does not do, and passes the same contract suite as the system
it stands for. Only ``platform`` assembles them; flows never import this package.
"""
