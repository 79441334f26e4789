"""Folders on this machine: packs, stations, schemas, templates, and rendered skeletons."""
