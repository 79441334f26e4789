#!/bin/sh
# Fetch Prometheus from Debian's packages and unpack its one program into .cache/prometheus; nothing is
# installed and no service is started. At once when it is there. Needs apt; other systems: put it on PATH.
set -eu
cd "$(dirname "$0")/.."
cache=$PWD/.cache/prometheus

if [ -x "$cache/prometheus" ] || command -v prometheus >/dev/null 2>&1; then
  exit 0
fi
if ! command -v apt-get >/dev/null 2>&1; then
  echo "error: no prometheus on PATH, and no apt-get to fetch it with" >&2
  exit 1
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
(
  cd "$work"
  apt-get download -qq prometheus >/dev/null 2>&1 || {
    apt-get update -qq
    apt-get download -qq prometheus >/dev/null
  }
  dpkg-deb --extract ./*.deb .
)
mkdir -p "$cache"
mv "$work/usr/bin/prometheus" "$cache/prometheus.part"
mv "$cache/prometheus.part" "$cache/prometheus"   # whole or not there
