#!/bin/sh
# Run the tests, three workers for two cores, at most eight: of three, one waits for a process or a delivery;
# with real systems (--e2e) one for each core: each starts an API server, Gitea or Backstage of its own, and on a
# machine that is full those do not answer in time. Arguments go to pytest. With -n 0 everything runs in one process:
# for a debugger.
set -eu
cd "$(dirname "$0")/.."
case " $* " in
  *" --e2e "*) workers=$(($(nproc) > 2 ? $(nproc) : 2)) ;;
  *) workers=$(($(nproc) * 3 / 2)) ;;
esac
exec .venv/bin/python -m pytest -n "$((workers < 8 ? workers : 8))" "$@"
