"""
Compose orders from the published pack: what they become, what they cost, what they must not show.

``published_pack`` loads the platform's pack into this process, ``planner`` runs it on an order
before and after, ``cluster_questions`` reads what that needs from the cluster and checks the
outcome against it, ``composed_order`` computes costs and finds Secrets. ``on_demand`` is for those
who seldom compose.
"""
