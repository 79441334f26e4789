#!/bin/sh
# Install a lock file's packages, every house of Orderkit and the agents' controllers into .venv: install.sh PYTHON LOCKFILE
set -eu
cd "$(dirname "$0")/.."
python=$1 lock=$2

if ! "$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))'; then
  echo "error: $python is older than 3.11; set PYTHON=python3.11 or newer" >&2
  exit 1
fi
if [ ! -x .venv/bin/pip ] && ! "$python" -m venv .venv; then
  echo "error: cannot make a virtual environment; on Debian: apt-get install python3-venv" >&2
  exit 1
fi
.venv/bin/pip install --quiet --disable-pip-version-check --require-hashes -r "$lock" -r requirements-build.lock
set --
for house in libs/* extras/* . packs/agents/controllers; do
  set -- "$@" --editable "$house"
done
.venv/bin/pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation "$@"
