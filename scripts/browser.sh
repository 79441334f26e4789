#!/bin/sh
# Install the browser that the end-to-end tests drive: Debian's Chromium. At once when it is there.
set -eu

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
