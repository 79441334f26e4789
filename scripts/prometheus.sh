#!/bin/sh
# Fetch Prometheus from Debian's packages and unpack it and promtool into .cache/prometheus; nothing is
# installed and no service is started. At once when it is there. Needs apt; other systems: put it on PATH.
set -eu
cd "$(dirname "$0")/.."
cache=$PWD/.cache/prometheus

there() {
  [ -x "$cache/$1" ] || command -v "$1" >/dev/null 2>&1
}

if there prometheus && there promtool; then
  exit 0
fi
if ! command -v apt-get >/dev/null 2>&1; then
  echo "error: prometheus or promtool is not on PATH, and there is no apt-get to fetch them" >&2
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
for program in promtool prometheus; do
  mv "$work/usr/bin/$program" "$cache/$program.part"
  mv "$cache/$program.part" "$cache/$program"   # whole or not there
done
