#!/bin/sh
# Build the real systems of lab/, each a Go module, into .cache/lab; at once
# when they are there. lab.sh [PART...]: all parts, or those named. Needs Go, and redis for Argo CD.
# With --check: build nothing, fail if a part is not there.
# ORDERKIT_LAB="PART=VERSION ...": other versions than go.mod's, from lab/PART/versions.
set -eu
cd "$(dirname "$0")/.."
cache=$PWD/.cache/lab

check=false
if [ "${1:-}" = --check ]; then
  check=true
  shift
fi
# need PROGRAM PACKAGE...: make sure of a program, or say what to do. A package of a server would start
# it; the lab starts its own.
need() {
  program=$1
  shift
  if command -v "$program" >/dev/null 2>&1; then
    return
  fi
  ! $check || exit 1
  if [ "$(id -u)" -ne 0 ] || ! command -v apt-get >/dev/null 2>&1; then
    echo "error: the lab needs $program; on Debian: apt-get install $*" >&2
    exit 1
  fi
  policy=/usr/sbin/policy-rc.d own=false
  if [ ! -e $policy ]; then
    own=true
    printf '#!/bin/sh\nexit 101\n' >$policy
    chmod +x $policy
  fi
  apt-get update -qq
  DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=600 install -qq -y --no-install-recommends "$@" >/dev/null ||
    { ! $own || rm $policy; exit 1; }
  ! $own || rm $policy
}

if [ $# -eq 0 ]; then
  for file in lab/*/go.mod; do
    part=$(basename "$(dirname "$file")")
    [ "$part" = node ] || set -- "$@" "$part"   # for make cluster alone: ten minutes of a core
  done
fi
for part in "$@"; do
  from=lab/$part
  mod=$from/go.mod
  for choice in ${ORDERKIT_LAB:-}; do
    if [ "${choice%%=*}" = "$part" ]; then
      mod=$from/versions/${choice#*=}.mod
    fi
  done
  own=$(find "$from" -maxdepth 1 -name '*.go' | LC_ALL=C sort)
  # shellcheck disable=SC2086  # the paths are words
  key=$(cat "$from/build.sh" "$mod" "${mod%.mod}.sum" $own | sha256sum | cut -c 1-16)
  if [ "$part" = argocd ]; then
    need redis-server redis-server
  fi
  if [ "$part" = node ]; then
    need containerd containerd runc containernetworking-plugins nftables dnsmasq-base socat busybox-static
    need buildah buildah mmdebstrap
  fi
  if [ -d "$cache/$key" ]; then
    $check || echo "lab: $part is built"
    continue
  fi
  ! $check || exit 1
  go=$(scripts/go.sh "$(sed -n 's/^go //p' "$mod")")
  echo "lab: building $part, once; minutes"
  begun=$(date +%s)
  rm -rf "$cache/$key.part"
  mkdir -p "$cache/$key.part"
  GOTOOLCHAIN=local GOFLAGS="${GOFLAGS:-} -modfile=$PWD/$mod" "$from/build.sh" "$go" "$cache/$key.part"
  mv "$cache/$key.part" "$cache/$key"   # whole or not there
  size=$(du -sm "$cache/$key" | cut -f 1)
  echo "lab: $part built in $(($(date +%s) - begun)) s, $size MB"
done
