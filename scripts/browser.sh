#!/bin/sh
# Install the browser that the end-to-end tests drive (Debian's Chromium) and what judges the
# accessibility of pages in it (axe-core, pinned in lab/browser). At once when they are there.
set -eu
cd "$(dirname "$0")/.."

axe=.cache/axe
if ! cmp -s lab/browser/package-lock.json $axe/installed && command -v npm >/dev/null 2>&1; then
  mkdir -p $axe
  cp lab/browser/package.json lab/browser/package-lock.json lab/browser/.npmrc $axe/
  (cd $axe && npm ci --ignore-scripts --silent --no-progress)
  cp $axe/package-lock.json $axe/installed
fi

if command -v chromium >/dev/null 2>&1; then
  exit 0
fi
if [ "$(id -u)" -ne 0 ] || ! command -v apt-get >/dev/null 2>&1; then
  echo "note: no chromium here and no right to install it; the browser tests will fail" >&2
  exit 0
fi
apt-get update -qq
DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=600 install -qq -y --no-install-recommends \
  chromium >/dev/null
