#!/bin/sh
# Run the tests; arguments go to pytest.
set -eu
cd "$(dirname "$0")/.."
scripts/test-tools.sh
scripts/engines.sh
exec .venv/bin/python -m pytest "$@"
