"""Files on this machine: packs, stations, schemas, templates, skeletons, recordings, manifests."""
