"""
Real systems as plain processes: Gitea, a Kubernetes API server, Argo CD, Prometheus, Backstage.

The subfolders say how each is built or installed (``scripts/lab.sh``, ``scripts/backstage.sh``).
Used by the tests, by ``make lab`` and by ``make portal``; no part of the product.
"""
