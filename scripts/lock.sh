#!/bin/sh
# Write the two lock files from pyproject.toml: what users run, and what developers add to it.
set -eu
cd "$(dirname "$0")/.."
compile() {
  .venv/bin/uv pip compile --quiet --generate-hashes --no-header --no-annotate \
    --python-version 3.11 --all-extras "$@" pyproject.toml
}
compile -o requirements.lock
compile -o requirements-dev.lock --group dev --constraint requirements.lock
