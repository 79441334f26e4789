#!/bin/sh
# Run the tests with one worker more than there are cores, at most eight: a fifth of the time of a worker
# is waiting. Real systems (--e2e) need the processor too, so then with as many workers as cores.
# Arguments go to pytest. With -n 0 everything runs in one process: for a debugger.
set -eu
cd "$(dirname "$0")/.."
workers=$(($(getconf _NPROCESSORS_ONLN) + 1))
case " $* " in
  *" --e2e "*) workers=$((workers - 1)) ;;
esac
exec .venv/bin/python -m pytest -n $((workers < 8 ? workers : 8)) "$@"
