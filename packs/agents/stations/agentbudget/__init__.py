"""The kit `agentbudget`: what an agent has spent, whether it may go on, and its replicas."""
