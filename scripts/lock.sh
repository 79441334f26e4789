#!/bin/sh
# Write the lock files from the pyproject.toml of the tool and of the packs' own programs: what users run, what developers
# add to it, what builds our wheels and the site, the image of the controllers, the environments' tools with their tests. With --check: fail if a dependency
# is not in them. Needs no network then.
set -eu
cd "$(dirname "$0")/.."

if [ "${1:-}" = --check ]; then
  exec .venv/bin/python scripts/locked.py
fi

controllers=packs/agents/controllers
# The houses are this checkout (tool.uv.sources) and in no lock.
houses=$(sed -n 's/^name = "\(orderkit[a-z-]*\)"$/--no-emit-package \1/p' pyproject.toml libs/*/pyproject.toml extras/*/pyproject.toml)
compile() {
  # shellcheck disable=SC2086  each word of $houses is an argument
  .venv/bin/uv pip compile --quiet --generate-hashes --no-header --no-annotate --no-strip-markers $houses \
    --python-version 3.11 "$@" $controllers/pyproject.toml
}
compile -o requirements.lock --all-extras pyproject.toml
compile -o requirements-dev.lock --all-extras --group dev --constraint requirements.lock pyproject.toml
compile -o $controllers/requirements.lock $controllers/requirements.in
.venv/bin/uv pip compile --quiet --generate-hashes --no-header --no-annotate --python-version 3.11 \
  -o requirements-build.lock --group pyproject.toml:build
.venv/bin/uv pip compile --quiet --generate-hashes --no-header --no-annotate --no-strip-markers --python-version 3.11 \
  -o requirements-docs.lock --group pyproject.toml:docs

tools=packs/environments/tools
.venv/bin/uv pip compile --quiet --generate-hashes --no-header --no-annotate --no-strip-markers --python-version 3.11 \
  -o $tools/requirements-test.lock --group $tools/pyproject.toml:test $tools/pyproject.toml
