"""Generate files from a kit: forms, skeletons, policies, roles, pages."""
