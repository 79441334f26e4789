#!/bin/sh
# Write the two lock files from pyproject.toml: what users run, and what developers add to it.
# With --check: fail if a dependency of pyproject.toml is not in them. Needs no network then.
set -eu
cd "$(dirname "$0")/.."

if [ "${1:-}" = --check ]; then
  exec .venv/bin/python scripts/locked.py
fi

compile() {
  .venv/bin/uv pip compile --quiet --generate-hashes --no-header --no-annotate --no-strip-markers \
    --python-version 3.11 --all-extras "$@" pyproject.toml
}
compile -o requirements.lock
compile -o requirements-dev.lock --group dev --constraint requirements.lock
