"""Judge and edit files, without a platform."""
