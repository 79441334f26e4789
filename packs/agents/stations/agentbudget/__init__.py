"""The kit `agentbudget`: what an agent has spent, whether it may continue, and its replicas."""
