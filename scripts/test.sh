#!/bin/sh
# Run the tests with one worker more than there are cores, at most eight: a quarter of the time of two
# workers on two cores was waiting. Arguments go to pytest. With -n 0 everything runs in one process:
# for a debugger.
set -eu
cd "$(dirname "$0")/.."
cores=$(getconf _NPROCESSORS_ONLN)
workers=$((cores < 8 ? cores + 1 : 8))
exec .venv/bin/python -m pytest -n "$workers" "$@"
