#!/bin/sh
# Run the tests, two workers beside each other (as many as there are cores, at most eight); arguments
# go to pytest. With -n 0 everything runs in one process: for a debugger.
set -eu
cd "$(dirname "$0")/.."
exec .venv/bin/python -m pytest -n auto --maxprocesses 8 "$@"
