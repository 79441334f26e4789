#!/bin/sh
# Everything that can be judged without running the product.
set -eu
cd "$(dirname "$0")/.."
bin=.venv/bin

say() { printf '%-14s' "$1"; }

say format;    $bin/ruff format --check --quiet && echo ok
say lint;      $bin/ruff check --quiet && echo ok
say types;     $bin/mypy --no-error-summary && echo ok
say types-2;   $bin/pyrefly check --summary=none >/dev/null && echo ok
say layers;    $bin/lint-imports >.cache/layers.log 2>&1 && echo ok || { cat .cache/layers.log; exit 1; }
say yaml;      $bin/yamllint --strict . && echo ok
say sizes;     $bin/python scripts/sizes.py
