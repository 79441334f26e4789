"""The kit `garage`: a bay (Namespace) for a team and the spec sheet on its wall."""
