"""The kit `datasetagent`: an AI agent over one dataset, in 22 parts."""
