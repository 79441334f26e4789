"""One module per command: parse, call one flow, print one result."""
