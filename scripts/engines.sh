#!/bin/sh
# Install Node 22 and what Backstage renders and validates with (tests/engines) into .cache/engines.
# Its package "absent" replaces @backstage/integration: 100 MB that nothing here calls.
# Quick and without a network when nothing changed since.
set -eu
cd "$(dirname "$0")/.."
from=tests/engines to=.cache/engines

wanted=$(cat $from/package.json $from/package-lock.json $from/.npmrc | cksum)
if [ "$(cat $to/.installed 2>/dev/null)" = "$wanted" ]; then
  exit 0
fi
if ! command -v npm >/dev/null 2>&1; then
  echo "note: no npm here; the comparison with Backstage's engines will be skipped" >&2
  exit 0
fi
mkdir -p $to
rm -f $to/.installed
cp -r $from/package.json $from/package-lock.json $from/.npmrc $from/absent $to/
npm --prefix $to ci --ignore-scripts --silent --no-progress
echo "$wanted" >$to/.installed
