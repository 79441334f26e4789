#!/bin/sh
# Install what the tests need beyond Python: kubectl, to prove that people can use it, and a registry.
set -eu

missing=""
command -v kubectl >/dev/null 2>&1 || missing=" kubernetes-client"
command -v docker-registry >/dev/null 2>&1 || missing="$missing docker-registry"
if [ -z "$missing" ]; then
  exit 0
fi
if [ "$(id -u)" -ne 0 ] || ! command -v apt-get >/dev/null 2>&1; then
  echo "note: no$missing here and no right to install it; its tests will be skipped" >&2
  exit 0
fi
apt-get update -qq
# RUNLEVEL: the package of the registry would start one that listens to everybody
# shellcheck disable=SC2086  # several packages
RUNLEVEL=1 DEBIAN_FRONTEND=noninteractive \
  apt-get -o DPkg::Lock::Timeout=600 install -qq -y --no-install-recommends $missing >/dev/null
