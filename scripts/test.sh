#!/bin/sh
# Run the tests, three workers for two cores, at most eight: of three, one waits for a process or a delivery.
# Arguments go to pytest. With -n 0 everything runs in one process: for a debugger.
set -eu
cd "$(dirname "$0")/.."
workers=$(($(nproc) * 3 / 2))
exec .venv/bin/python -m pytest -n "$((workers < 8 ? workers : 8))" "$@"
