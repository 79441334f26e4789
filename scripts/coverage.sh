#!/bin/sh
# Print which part of the houses the tests run, of lines and of branches, processes that they start included; arguments
# go to pytest (none: all that `make test-all` runs). The tests take twice as long as without.
set -eu
cd "$(dirname "$0")/.."
rm -rf .cache/coverage
mkdir -p .cache/coverage
[ $# -gt 0 ] || set -- libs/*/tests extras/*/tests tests
failed=0
COVERAGE_PROCESS_START=$PWD/pyproject.toml scripts/test.sh "$@" || failed=$?
.venv/bin/python -m coverage combine --quiet
.venv/bin/python -m coverage json --quiet -o .cache/coverage/report.json
.venv/bin/python -c '
import json
totals = json.load(open(".cache/coverage/report.json"))["totals"]
lines, branches = (totals[f"percent_{kind}_covered"] for kind in ("statements", "branches"))
print(f"lines {lines:.1f} %, branches {branches:.1f} %")'
exit $failed
