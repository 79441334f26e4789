"""What long-running commands serve: the embedded platform, the service, stations over gRPC."""
