"""One package per foreign system, each behind a port, plus the embedded platform."""
