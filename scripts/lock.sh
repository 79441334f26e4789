#!/bin/sh
# Write the lock files from pyproject.toml: what users run, what developers add to it, and the image of the controllers.
# With --check: fail if a dependency of pyproject.toml is not in them. Needs no network then.
set -eu
cd "$(dirname "$0")/.."

if [ "${1:-}" = --check ]; then
  exec .venv/bin/python scripts/locked.py
fi

compile() {
  .venv/bin/uv pip compile --quiet --generate-hashes --no-header --no-annotate --no-strip-markers \
    --python-version 3.11 "$@" pyproject.toml
}
compile -o requirements.lock --all-extras
compile -o requirements-dev.lock --all-extras --group dev --constraint requirements.lock
controllers=packs/agents/controllers
compile -o $controllers/requirements.lock --extra datasets $controllers/requirements.in
