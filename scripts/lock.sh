#!/bin/sh
# Write the lock files from the pyproject.toml of the tool and of the packs' own programs: what users run, what developers
# add to it, the image of the controllers, the environments' tools with their tests. With --check: fail if a dependency
# is not in them. Needs no network then.
set -eu
cd "$(dirname "$0")/.."

if [ "${1:-}" = --check ]; then
  exec .venv/bin/python scripts/locked.py
fi

controllers=packs/agents/controllers
# `orderkit` itself, on which the controllers depend, is this checkout (tool.uv.sources) and in no lock.
compile() {
  .venv/bin/uv pip compile --quiet --generate-hashes --no-header --no-annotate --no-strip-markers --no-emit-package orderkit \
    --python-version 3.11 "$@" $controllers/pyproject.toml
}
compile -o requirements.lock --all-extras pyproject.toml
compile -o requirements-dev.lock --all-extras --group dev --constraint requirements.lock pyproject.toml
compile -o $controllers/requirements.lock $controllers/requirements.in

tools=packs/environments/tools
.venv/bin/uv pip compile --quiet --generate-hashes --no-header --no-annotate --no-strip-markers --python-version 3.11 \
  -o $tools/requirements-test.lock --group $tools/pyproject.toml:test $tools/pyproject.toml
